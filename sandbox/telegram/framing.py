"""MTProto's TCP transports: how packets are cut out of the byte stream (core.telegram.org/mtproto/mtproto-transports).

A client says by its first bytes which one it speaks; `recognise` reads them. Before: connection.py, which feeds the
bytes it got. After: envelope.py, which opens the packets.
"""

import struct
from abc import ABC, abstractmethod
from collections.abc import Iterator
from zlib import crc32

from telethon.crypto import AESModeCTR

from sandbox.telegram.malformed import MalformedError

LARGEST = 2 * 1024 * 1024  # Telegram closes above 1 MiB; a little more room harms nobody


class Framing(ABC):
    """Turns a byte stream into packets and packets into bytes. One per connection, as some of them count."""

    @abstractmethod
    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the packets that `data` completes. Raises MalformedError for a broken frame."""

    @abstractmethod
    def wrap(self, packet: bytes) -> bytes:
        """Return the frame of a packet."""


class Framed(Framing):
    """Each packet stands in a frame that begins with its size."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        self._buffer += data
        while (size := self.size()) is not None and len(self._buffer) >= size:
            frame = bytes(self._buffer[:size])
            del self._buffer[:size]
            yield self.strip(frame)

    @abstractmethod
    def size(self) -> int | None:
        """Return the size of the frame at the start of the buffer, None while its head is incomplete."""

    @abstractmethod
    def strip(self, frame: bytes) -> bytes:
        """Return the packet of a whole frame. Raises MalformedError."""

    def announced(self, beside: int = 0, least: int = 1) -> int | None:
        """Return what the first four bytes say and `beside`, None while they are not there."""
        if len(self._buffer) < 4:
            return None
        return checked(int.from_bytes(self._buffer[:4], "little") + beside, least)


def checked(size: int, least: int = 1) -> int:
    if not least <= size <= LARGEST:
        raise MalformedError(f"a frame of {size} bytes")
    return size


class Full(Framed):
    """Length, sequence number, packet, CRC32. Telethon's default."""

    def __init__(self) -> None:
        super().__init__()
        self._received = self._sent = 0

    def size(self) -> int | None:
        return self.announced(least=12)

    def strip(self, frame: bytes) -> bytes:
        (number,), (checksum,) = struct.unpack_from("<I", frame, 4), struct.unpack("<I", frame[-4:])
        if number != self._received or checksum != crc32(frame[:-4]):
            raise MalformedError("a frame with a wrong sequence number or checksum")
        self._received += 1
        return frame[8:-4]

    def wrap(self, packet: bytes) -> bytes:
        frame = struct.pack("<II", len(packet) + 12, self._sent) + packet
        self._sent += 1
        return frame + struct.pack("<I", crc32(frame))


class Intermediate(Framed):
    """Four bytes of length, then the packet; the padded variant adds up to 15 bytes that do not count."""

    def size(self) -> int | None:
        return self.announced(beside=4)

    def strip(self, frame: bytes) -> bytes:
        return frame[4 : len(frame) - len(frame) % 4]

    def wrap(self, packet: bytes) -> bytes:
        return struct.pack("<I", len(packet)) + packet


class Abridged(Framed):
    """The length in words: one byte, or 0x7f and three bytes."""

    def size(self) -> int | None:
        if not self._buffer or (self._buffer[0] == 0x7F and len(self._buffer) < 4):
            return None
        if self._buffer[0] == 0x7F:
            return checked(int.from_bytes(self._buffer[1:4], "little") * 4 + 4)
        return self._buffer[0] * 4 + 1

    def strip(self, frame: bytes) -> bytes:
        return frame[4:] if frame[0] == 0x7F else frame[1:]

    def wrap(self, packet: bytes) -> bytes:
        words = len(packet) // 4
        head = bytes([words]) if words < 0x7F else b"\x7f" + words.to_bytes(3, "little")
        return head + packet


class Obfuscated(Framing):
    """Another framing under AES-CTR, with keys from the 64 bytes the client begins with."""

    def __init__(self, opening: bytes) -> None:
        backwards = opening[55:7:-1]
        self._incoming = AESModeCTR(opening[8:40], opening[40:56])
        self._outgoing = AESModeCTR(backwards[:32], backwards[32:48])
        tag = self._incoming.encrypt(opening)[56:60]
        self._inner = _by_tag(tag)

    def feed(self, data: bytes) -> Iterator[bytes]:
        return self._inner.feed(self._incoming.encrypt(data))

    def wrap(self, packet: bytes) -> bytes:
        enciphered: bytes = self._outgoing.encrypt(self._inner.wrap(packet))
        return enciphered


def _by_tag(tag: bytes) -> Framing:
    if tag == b"\xef\xef\xef\xef":
        return Abridged()
    if tag in (b"\xee\xee\xee\xee", b"\xdd\xdd\xdd\xdd"):
        return Intermediate()
    raise MalformedError("an unknown transport")


def recognise(opening: bytes) -> tuple[Framing, int] | None:
    """Return the framing a connection speaks and how many bytes announced it; None while that is not clear yet."""
    if opening[:1] == b"\xef":
        return Abridged(), 1
    if len(opening) < 8:
        return None
    if opening[:4] in (b"\xee\xee\xee\xee", b"\xdd\xdd\xdd\xdd"):
        return Intermediate(), 4
    if opening[4:8] == b"\0\0\0\0":  # a full frame carries its sequence number here, and the first one is 0
        return Full(), 0
    return (Obfuscated(opening[:64]), 64) if len(opening) >= 64 else None
