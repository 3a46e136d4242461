"""What a browser and its push service do with a message: check who has signed it (RFC 8292), and decrypt it (RFC 8291,
8188). Written after the RFCs, independently of the library with which a sender encrypts.
"""

import json
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

POINT = 65
"""Bytes of an uncompressed point."""
_SALT, _LENGTH, _NUMBER = 16, 4, 32
_LAST = b"\x02"
_DAY = 86400


class NotForUs(Exception):
    """The message cannot be decrypted, or its sender is another one."""


def base64url(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")


def from_base64url(text: str) -> bytes:
    return urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))


def point_of(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def decrypt(body: bytes, private: ec.EllipticCurvePrivateKey, auth: bytes) -> bytes:
    """Return the message. Raises NotForUs."""
    start = _SALT + _LENGTH + 1
    salt, size = body[:_SALT], body[start - 1 : start]
    if size != bytes([POINT]) or len(body) < start + POINT:
        raise NotForUs("the header has no public key")
    sender, sealed = body[start : start + POINT], body[start + POINT :]
    try:
        shared = private.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), sender))
        secret = _derived(auth, shared, b"WebPush: info\x00" + point_of(private.public_key()) + sender, 32)
        key = _derived(salt, secret, b"Content-Encoding: aes128gcm\x00", 16)
        nonce = _derived(salt, secret, b"Content-Encoding: nonce\x00", 12)
        padded = AESGCM(key).decrypt(nonce, sealed, None).rstrip(b"\x00")
    except (InvalidTag, ValueError) as fault:
        raise NotForUs("it cannot be decrypted") from fault
    if padded[-1:] != _LAST:
        raise NotForUs("the record is not the last one")
    return padded[:-1]


def _derived(salt: bytes, secret: bytes, info: bytes, length: int) -> bytes:
    return HKDF(SHA256(), length, salt, info).derive(secret)


def check_sender(authorization: str, application_key: str, origin: str) -> dict[str, Any]:
    """Return the claims of a signature of the sender for whom the browser has subscribed. Raises NotForUs."""
    scheme, _, rest = authorization.partition(" ")
    fields = dict(part.strip().partition("=")[::2] for part in rest.split(","))
    if scheme.lower() != "vapid" or fields.get("k") != application_key:
        raise NotForUs("another key than that of the subscription")
    try:
        signed, _, signature = fields.get("t", "").rpartition(".")
        numbers = from_base64url(signature)
        first, second = (int.from_bytes(one, "big") for one in (numbers[:_NUMBER], numbers[_NUMBER:]))
        key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), from_base64url(application_key))
        key.verify(encode_dss_signature(first, second), signed.encode(), ec.ECDSA(SHA256()))
        claims: dict[str, Any] = json.loads(from_base64url(signed.partition(".")[2]))
    except (InvalidSignature, ValueError) as fault:
        raise NotForUs("the signature is wrong") from fault
    if claims.get("aud") != origin or not time.time() < claims.get("exp", 0) <= time.time() + _DAY:
        raise NotForUs("the signature is for another service, or for too long")
    return claims
