"""Encryption of packets: none before there is an authorization key, MTProto 2.0 afterwards (mtproto/description)."""

import os
import struct
from dataclasses import dataclass
from hashlib import sha256

from sandbox.telegram.protocol import ige
from sandbox.telegram.protocol.malformed import MalformedError

PLAIN = bytes(8)  # the key id of a packet that is not encrypted
MIN_PACKET = 24  # bytes
_CLIENT, _SERVER = 0, 8  # "x" of the specification: the sender of the packet


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
    plain = ige.decrypt(encrypted, *_cipher_key(secret, message_key, _CLIENT))
    if _message_key(secret, plain, _CLIENT) != message_key:
        raise MalformedError("an encrypted packet with a wrong message key")
    salt, session = struct.unpack_from("<qq", plain)
    return DecryptedPacket(salt, session, plain[16:])


def encrypt_packet(secret: bytes, key_id: bytes, salt: int, session: int, content: bytes) -> bytes:
    """Return a server's packet. `content` is one message with its header."""
    padding = os.urandom(12 + -(len(content) + 28) % 16)
    plain = struct.pack("<qq", salt, session) + content + padding
    message_key = _message_key(secret, plain, _SERVER)
    return key_id + message_key + ige.encrypt(plain, *_cipher_key(secret, message_key, _SERVER))


def _message_key(secret: bytes, plain: bytes, x: int) -> bytes:
    return sha256(secret[88 + x : 120 + x] + plain).digest()[8:24]


def _cipher_key(secret: bytes, message_key: bytes, x: int) -> tuple[bytes, bytes]:
    a = sha256(message_key + secret[x : x + 36]).digest()
    b = sha256(secret[x + 40 : x + 76] + message_key).digest()
    return a[:8] + b[8:24] + a[24:32], b[:8] + a[8:24] + b[24:32]
