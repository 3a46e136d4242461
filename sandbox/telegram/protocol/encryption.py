"""Encryption of packets: none before there is an authorization key, MTProto 2.0 afterwards (mtproto/description).

The cipher is AES-256 in IGE mode. Telethon's own function copies every byte through a Python tuple: 290 µs per KiB
against 25 µs when OpenSSL is called directly. Encryption would be most of the time of a message. Without libcrypto, and
on macOS, where loading the wrong libcrypto ends the process, Telethon's function is used.
"""

import ctypes
import ctypes.util
import os
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from telethon.crypto import AES

from sandbox.telegram.protocol.malformed import MalformedError

Cipher = Callable[[bytes, bytes, bytes], bytes]

PLAIN = bytes(8)  # the key id of a packet that is not encrypted
MIN_PACKET = 24  # bytes
_CLIENT, _SERVER = 0, 8  # "x" of the specification: the sender of the packet


class _Schedule(ctypes.Structure):
    """OpenSSL's AES_KEY (openssl/aes.h)."""

    _fields_ = (("rounds_keys", ctypes.c_uint32 * 60), ("rounds", ctypes.c_uint))


def _cipher(library: Any, expand: Any, direction: int) -> Cipher:
    def cipher(data: bytes, key: bytes, iv: bytes) -> bytes:
        schedule, out = _Schedule(), ctypes.create_string_buffer(len(data))
        expand(key, 256, ctypes.byref(schedule))
        # The library overwrites the vector, so it gets a copy.
        state = ctypes.create_string_buffer(iv, 32)
        library.AES_ige_encrypt(data, out, ctypes.c_size_t(len(data)), ctypes.byref(schedule), state, direction)
        return out.raw

    return cipher


def _ciphers() -> tuple[Cipher, Cipher]:
    name = ctypes.util.find_library("crypto") if sys.platform == "linux" else None
    if name is None:
        return AES.encrypt_ige, AES.decrypt_ige
    library = ctypes.CDLL(name)
    return _cipher(library, library.AES_set_encrypt_key, 1), _cipher(library, library.AES_set_decrypt_key, 0)


encrypt, decrypt = _ciphers()


@dataclass(frozen=True, slots=True)
class DecryptedPacket:
    """The content of a client's encrypted packet."""

    salt: int
    session: int
    content: bytes  # message id, sequence number, length, body, padding


def read_plain(packet: bytes) -> bytes:
    """Return the body of an unencrypted packet. Raises MalformedError."""
    (size,) = struct.unpack_from("<i", packet, 16)
    if not 0 < size <= len(packet) - 20:
        raise MalformedError("a plain packet with a wrong length")
    return packet[20 : 20 + size]


def write_plain(message_id: int, body: bytes) -> bytes:
    return struct.pack("<qqi", 0, message_id, len(body)) + body


def decrypt_packet(secret: bytes, packet: bytes) -> DecryptedPacket:
    """Decrypt a client's packet. Raises MalformedError if it was not encrypted with this authorization key."""
    message_key, encrypted = packet[8:24], packet[24:]
    if not encrypted or len(encrypted) % 16:
        raise MalformedError("an encrypted packet with an incomplete block")
    plain = decrypt(encrypted, *_cipher_key(secret, message_key, _CLIENT))
    if _message_key(secret, plain, _CLIENT) != message_key:
        raise MalformedError("an encrypted packet with a wrong message key")
    salt, session = struct.unpack_from("<qq", plain)
    return DecryptedPacket(salt, session, plain[16:])


def encrypt_packet(secret: bytes, key_id: bytes, salt: int, session: int, content: bytes) -> bytes:
    """Return a server's packet. `content` is one message with its header."""
    padding = os.urandom(12 + -(len(content) + 28) % 16)
    plain = struct.pack("<qq", salt, session) + content + padding
    message_key = _message_key(secret, plain, _SERVER)
    return key_id + message_key + encrypt(plain, *_cipher_key(secret, message_key, _SERVER))


def _message_key(secret: bytes, plain: bytes, x: int) -> bytes:
    return sha256(secret[88 + x : 120 + x] + plain).digest()[8:24]


def _cipher_key(secret: bytes, message_key: bytes, x: int) -> tuple[bytes, bytes]:
    a = sha256(message_key + secret[x : x + 36]).digest()
    b = sha256(secret[x + 40 : x + 76] + message_key).digest()
    return a[:8] + b[8:24] + a[24:32], b[:8] + a[8:24] + b[24:32]
