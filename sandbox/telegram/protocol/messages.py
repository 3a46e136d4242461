"""Messages inside a decrypted packet: headers, containers, gzip; and the server's own message ids.

Source: core.telegram.org/mtproto/service_messages.
"""

import struct
import time
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from telethon.extensions import BinaryReader

from sandbox.telegram.protocol.malformed import MalformedError

_CONTAINER = struct.pack("<I", 0x73F1F8DC)
_GZIP = struct.pack("<I", 0x3072CFA1)
_RESULT = 0xF35C6D01
_HEADER = struct.Struct("<qii")
_MAX_UNPACKED = 16 * 1024 * 1024
_MAX_CONTAINER = 1020  # messages, the limit of the specification


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a client, its body still in bytes."""

    id: int
    number: int  # seqno
    body: bytes


def read(content: bytes) -> tuple[Message, list[Message]]:
    """Return the outer message and the messages in its container, or itself. Raises MalformedError."""
    outer = _message(content, 0)
    if not outer.body.startswith(_CONTAINER):
        return outer, [outer]
    return outer, list(_contained(outer.body))


def _contained(body: bytes) -> Iterator[Message]:
    (count,) = struct.unpack_from("<i", body, 4)
    if not 0 <= count <= _MAX_CONTAINER:
        raise MalformedError(f"a container of {count} messages")
    position = 8
    for _ in range(count):
        message = _message(body, position)
        position += _HEADER.size + len(message.body)
        yield message


def _message(content: bytes, position: int) -> Message:
    message_id, number, size = _HEADER.unpack_from(content, position)
    start = position + _HEADER.size
    if not 4 <= size <= len(content) - start:
        raise MalformedError(f"a message of {size} bytes")
    return Message(message_id, number, content[start : start + size])


def unpack(body: bytes) -> bytes:
    """Return the body, decompressed if it is gzip_packed. Raises MalformedError if it is too large."""
    if not body.startswith(_GZIP):
        return body
    decompressor = zlib.decompressobj(wbits=31)
    content = decompressor.decompress(BinaryReader(body[4:]).tgread_bytes(), _MAX_UNPACKED)
    if not decompressor.eof:
        raise MalformedError("gzip that is incomplete or too large")
    return content


def result(message_id: int, body: bytes) -> bytes:
    """Return rpc_result, the answer to the client's message with this id."""
    return struct.pack("<Iq", _RESULT, message_id) + body


def with_header(message_id: int, number: int, body: bytes) -> bytes:
    return _HEADER.pack(message_id, number, len(body)) + body


def container(messages: Iterable[bytes]) -> bytes:
    """Return msg_container with messages that have their headers."""
    contained = list(messages)
    return _CONTAINER + struct.pack("<i", len(contained)) + b"".join(contained)


class MessageIds:
    """Generates the server's message ids: unix time × 2³², increasing; 1 mod 4 for answers, 3 mod 4 for others."""

    def __init__(self) -> None:
        self._last = 0

    def next(self, *, answer: bool) -> int:
        now = int(time.time() * 2**32) & ~3
        self._last = max(now, self._last + 4)
        return self._last | (1 if answer else 3)
