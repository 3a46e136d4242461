"""Creates an authorization key by Diffie-Hellman (core.telegram.org/mtproto/auth_key), on the server's side.

Each connection has its own Handshake, which receives the unencrypted requests in order. `key_store` keeps the key.
"""

import os
import secrets
import time
from hashlib import sha1
from typing import Any

import rsa
from telethon.crypto.rsa import get_byte_array
from telethon.extensions import BinaryReader
from telethon.helpers import generate_key_data_from_nonce
from telethon.tl import TLObject, functions, types

from sandbox.telegram.protocol import encryption
from sandbox.telegram.protocol.key_store import AuthKey, KeyStore
from sandbox.telegram.protocol.malformed import MalformedError

_EXPONENT = 65537
_P = int(
    "E4D94063102334BF5E8E5E827CBCE68DC89127C7C3438BB5B69C7915BE23B92B475332552D28CFA4B5F2790C828240D7"
    "624B279FB4A24BF1032C12D0CA13DFD4477D70828654C504A6CE17A3D8E74B3E8E9B483767517FD5DC34F818C9B88817"
    "C22F39ED37CA9430B1139615046C48AEF6ACE623AD88E683C3516799DD453B03",
    16,
)
_Q = int(
    "CB38D860C6E3F0876FB1C63844DA0AB71CD21A1F93D4C5858DEFA92FD544844EAADD2DDFA4176E88E7979A9E2BC33117"
    "3F2E2EB7DEFF82B5BCFA6FCB926053066F21BA2E7431BB7D25348C6B59E72DFCABBAAEBF83DEE2FBA501CD3A53E8793E"
    "725641625D37CE03C081FC641C5CF332E147F714FC2EB923CEBD220E643BAF8D",
    16,
)

SERVER_KEY: Any = rsa.PrivateKey(_P * _Q, _EXPONENT, pow(_EXPONENT, -1, (_P - 1) * (_Q - 1)), _P, _Q)

# RFC 3526, group 14 (2048 bits) with generator 2.
PRIME = int(
    "FFFFFFFFFFFFFFFFC90FDAA22168C234C4C6628B80DC1CD129024E088A67CC74020BBEA63B139B22514A08798E3404DD"
    "EF9519B3CD3A431B302B0A6DF25F14374FE1356D6D51C245E485B576625E7EC6F44C42E9A637ED6B0BFF5CB6F406B7ED"
    "EE386BFB5A899FA5AE9F24117C4B1FE649286651ECE45B3DC2007CB8A163BF0598DA48361C55D39A69163FA8FD24CF5F"
    "83655D23DCA3AD961C62F356208552BB9ED529077096966D670C354E4ABC9804F1746C08CA18217C32905E462E36CE3B"
    "E39E772C180E86039B2783A2EC07A28FB5C55DF06F4C52C9DE2BCBF6955817183995497CEA956AE515D2261898FA0510"
    "15728E5A8AACAA68FFFFFFFFFFFFFFFF",
    16,
)
GENERATOR = 2
# The client factors this product as a proof of work. One factor is small: a client of the sandbox need not work.
PRODUCT = 65537 * 70368744177643
# A key with leading zero bytes is refused, because clients disagree on whether those bytes belong to it.
_MIN_KEY = 1 << 2040


def public_key_pem() -> str:
    """Return the public key, as clients of Telegram read it (PKCS#1)."""
    public: bytes = rsa.PublicKey(SERVER_KEY.n, SERVER_KEY.e).save_pkcs1()
    return public.decode()


def fingerprint() -> int:
    """Return the lower 64 bits of SHA-1 over the key as TL bytes (mtproto/auth_key)."""
    parts = (TLObject.serialize_bytes(get_byte_array(part)) for part in (SERVER_KEY.n, SERVER_KEY.e))
    return int.from_bytes(sha1(b"".join(parts)).digest()[-8:], "little", signed=True)


class Handshake:
    """The three steps of the exchange. Raises MalformedError for a wrong nonce or a step out of order."""

    def __init__(self, key_store: KeyStore) -> None:
        self._key_store = key_store
        self._nonce = self._server_nonce = self._new_nonce = 0
        self._exponent = secrets.randbits(256)  # Telegram takes 2048 bits, which take eight times as long

    def answer(self, request: Any) -> Any:
        """Return the answer to one request of the exchange."""
        match request:
            case functions.ReqPqMultiRequest() | functions.ReqPqRequest():
                return self._begin(request)
            case functions.ReqDHParamsRequest():
                return self._offer(request)
            case functions.SetClientDHParamsRequest():
                return self._finish(request)
        raise MalformedError(f"{type(request).__name__} without encryption")

    def _begin(self, request: Any) -> Any:
        self._nonce = request.nonce
        self._server_nonce = int.from_bytes(os.urandom(16), "little", signed=True)
        return types.ResPQ(self._nonce, self._server_nonce, get_byte_array(PRODUCT), [fingerprint()])

    def _offer(self, request: Any) -> Any:
        self._check(request)
        self._new_nonce = self._read_inner(request.encrypted_data).new_nonce
        inner = types.ServerDHInnerData(
            nonce=self._nonce,
            server_nonce=self._server_nonce,
            g=GENERATOR,
            dh_prime=get_byte_array(PRIME),
            g_a=get_byte_array(pow(GENERATOR, self._exponent, PRIME)),
            server_time=int(time.time()),
        )
        return types.ServerDHParamsOk(self._nonce, self._server_nonce, self._encrypt(bytes(inner)))

    def _read_inner(self, encrypted: bytes) -> Any:
        """Decrypt p_q_inner_data with the RSA key: SHA-1, data, padding."""
        number = int.from_bytes(encrypted, "big")
        if number >= SERVER_KEY.n:
            raise MalformedError("encrypted data larger than the RSA key")
        plain = SERVER_KEY.blinded_decrypt(number).to_bytes(256, "big")[1:]
        return self._read_hashed(plain)

    def _finish(self, request: Any) -> Any:
        self._check(request)
        inner = self._read_hashed(encryption.decrypt(request.encrypted_data, *self._temporary_key()))
        shared = pow(int.from_bytes(inner.g_b, "big"), self._exponent, PRIME)
        if shared < _MIN_KEY:
            return self._result(types.DhGenRetry, 2, bytes(256))
        key = AuthKey(shared.to_bytes(256, "big"))
        self._key_store.save_key(key)
        return self._result(types.DhGenOk, 1, key.secret)

    def _result(self, kind: Any, number: int, secret: bytes) -> Any:
        new_nonce = self._new_nonce.to_bytes(32, "little", signed=True)
        proof = sha1(new_nonce + bytes([number]) + sha1(secret).digest()[:8]).digest()[4:]
        return kind(self._nonce, self._server_nonce, int.from_bytes(proof, "little", signed=True))

    def _check(self, message: Any) -> None:
        if (message.nonce, message.server_nonce) != (self._nonce, self._server_nonce):
            raise MalformedError("a nonce of another exchange")

    def _read_hashed(self, plain: bytes) -> Any:
        """Return the object after its SHA-1. Raises MalformedError if the hash or a nonce is wrong."""
        inner = BinaryReader(plain[20:]).tgread_object()
        if sha1(bytes(inner)).digest() != plain[:20]:
            raise MalformedError("inner data with a wrong hash")
        self._check(inner)
        return inner

    def _encrypt(self, data: bytes) -> bytes:
        hashed = sha1(data).digest() + data
        return encryption.encrypt(hashed + os.urandom(-len(hashed) % 16), *self._temporary_key())

    def _temporary_key(self) -> tuple[bytes, bytes]:
        key, iv = generate_key_data_from_nonce(self._server_nonce, self._new_nonce)
        return key, iv
