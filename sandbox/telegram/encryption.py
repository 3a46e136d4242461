"""The envelope of a packet: plain before there is an authorization key, MTProto 2.0 afterwards (mtproto/description).

Before: framing.py. After: messages.py, which reads what was inside.
"""

import os
import struct
from dataclasses import dataclass
from hashlib import sha256

from sandbox.telegram import ige
from sandbox.telegram.malformed import MalformedError

PLAIN = bytes(8)  # the key id of a packet that is not encrypted
SHORTEST = 24  # bytes; nothing that means anything is shorter
_CLIENT, _SERVER = 0, 8  # "x" of the specification: whose packet it is


@dataclass(frozen=True, slots=True)
class Opened:
    """What a client's encrypted packet contained."""

    salt: int
    session: int
    content: bytes  # message id, sequence number, length, body, padding


def open_plain(packet: bytes) -> bytes:
    """Return the body of a packet without encryption. Raises MalformedError."""
    (size,) = struct.unpack_from("<i", packet, 16)
    if not 0 < size <= len(packet) - 20:
        raise MalformedError("a plain packet of a wrong length")
    return packet[20 : 20 + size]


def seal_plain(message_id: int, body: bytes) -> bytes:
    return struct.pack("<qqi", 0, message_id, len(body)) + body


def unseal(secret: bytes, packet: bytes) -> Opened:
    """Open a client's packet with the authorization key it names. Raises MalformedError if it was not made with it."""
    message_key, enciphered = packet[8:24], packet[24:]
    if not enciphered or len(enciphered) % 16:
        raise MalformedError("an encrypted packet that is not whole blocks")
    plain = ige.decrypt(enciphered, *_cipher_key(secret, message_key, _CLIENT))
    if _message_key(secret, plain, _CLIENT) != message_key:
        raise MalformedError("an encrypted packet whose message key is wrong")
    salt, session = struct.unpack_from("<qq", plain)
    return Opened(salt, session, plain[16:])


def seal(secret: bytes, key_id: bytes, salt: int, session: int, content: bytes) -> bytes:
    """Make a server's packet; `content` is one message with its head."""
    padding = os.urandom(12 + -(len(content) + 28) % 16)
    plain = struct.pack("<qq", salt, session) + content + padding
    message_key = _message_key(secret, plain, _SERVER)
    return key_id + message_key + ige.encrypt(plain, *_cipher_key(secret, message_key, _SERVER))


def _message_key(secret: bytes, plain: bytes, whose: int) -> bytes:
    return sha256(secret[88 + whose : 120 + whose] + plain).digest()[8:24]


def _cipher_key(secret: bytes, message_key: bytes, whose: int) -> tuple[bytes, bytes]:
    a = sha256(message_key + secret[whose : whose + 36]).digest()
    b = sha256(secret[whose + 40 : whose + 76] + message_key).digest()
    return a[:8] + b[8:24] + a[24:32], b[:8] + a[8:24] + b[24:32]
