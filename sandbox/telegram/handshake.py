"""Creating an authorization key by Diffie-Hellman (core.telegram.org/mtproto/auth_key), the server's side.

One Handshake belongs to one connection and is fed its plain requests in order. Before: envelope.py. After: vault.py
keeps the key that comes out.
"""

import os
import secrets
import time
from hashlib import sha1
from typing import Any

import rsa.core
from telethon.crypto.rsa import get_byte_array
from telethon.extensions import BinaryReader
from telethon.helpers import generate_key_data_from_nonce
from telethon.tl import functions, types

from sandbox.telegram import ige
from sandbox.telegram.key_store import AuthKey, Vault
from sandbox.telegram.malformed import MalformedError

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
# The client proves some work by factoring this product; any two primes will do (the example of the specification).
PRODUCT = 0x17ED48941A08F981
# A key with leading zero bytes is refused as unlucky, because clients disagree on whether those bytes belong to it.
_LEAST_KEY = 1 << 2040


class Handshake:
    """The three steps, each answered once; a wrong nonce or a step out of order raises MalformedError."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self._nonce = self._server_nonce = self._new_nonce = 0
        self._exponent = secrets.randbits(2048)

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
        return types.ResPQ(self._nonce, self._server_nonce, get_byte_array(PRODUCT), [self._vault.fingerprint])

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
        """Return p_q_inner_data: RSA over SHA-1, the data and padding."""
        number = int.from_bytes(encrypted, "big")
        key = self._vault.rsa_key
        if number >= key.n:
            raise MalformedError("more than the RSA key can hold")
        plain = rsa.core.decrypt_int(number, key.d, key.n).to_bytes(256, "big")[1:]
        return self._verified(plain)

    def _finish(self, request: Any) -> Any:
        self._check(request)
        inner = self._verified(ige.decrypt(request.encrypted_data, *self._temporary_key()))
        shared = pow(int.from_bytes(inner.g_b, "big"), self._exponent, PRIME)
        if shared < _LEAST_KEY:
            return self._verdict(types.DhGenRetry, 2, bytes(256))
        key = AuthKey(shared.to_bytes(256, "big"))
        self._vault.keep_key(key)
        return self._verdict(types.DhGenOk, 1, key.secret)

    def _verdict(self, kind: Any, number: int, secret: bytes) -> Any:
        new_nonce = self._new_nonce.to_bytes(32, "little", signed=True)
        proof = sha1(new_nonce + bytes([number]) + sha1(secret).digest()[:8]).digest()[4:]
        return kind(self._nonce, self._server_nonce, int.from_bytes(proof, "little", signed=True))

    def _check(self, message: Any) -> None:
        if (message.nonce, message.server_nonce) != (self._nonce, self._server_nonce):
            raise MalformedError("a nonce of another exchange")

    def _verified(self, plain: bytes) -> Any:
        """Return the object behind its SHA-1, if hash and nonces are right."""
        inner = BinaryReader(plain[20:]).tgread_object()
        if sha1(bytes(inner)).digest() != plain[:20]:
            raise MalformedError("inner data whose hash is wrong")
        self._check(inner)
        return inner

    def _encrypt(self, data: bytes) -> bytes:
        hashed = sha1(data).digest() + data
        return ige.encrypt(hashed + os.urandom(-len(hashed) % 16), *self._temporary_key())

    def _temporary_key(self) -> tuple[bytes, bytes]:
        key, iv = generate_key_data_from_nonce(self._server_nonce, self._new_nonce)
        return key, iv
