"""MTProto's TCP transports: packets in the byte stream (core.telegram.org/mtproto/mtproto-transports).

The first bytes of a connection announce its transport; `detect` reads them.
"""

import struct
from abc import ABC, abstractmethod
from collections.abc import Iterator
from zlib import crc32

from telethon.crypto import AESModeCTR

from sandbox.telegram.protocol.malformed import MalformedError

MAX_FRAME = 2 * 1024 * 1024  # Telegram closes the connection above 1 MiB


class Framing(ABC):
    """Converts a byte stream to packets and packets to bytes. One per connection: some transports count packets."""

    @abstractmethod
    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the packets that `data` completes. Raises MalformedError for a broken frame."""

    @abstractmethod
    def wrap(self, packet: bytes) -> bytes:
        """Return the frame of a packet."""


class SizedFraming(Framing):
    """Transports in which each frame begins with its size."""

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
        """Return the size of the frame at the start of the buffer, None while its header is incomplete."""

    @abstractmethod
    def strip(self, frame: bytes) -> bytes:
        """Return the packet of a complete frame. Raises MalformedError."""

    def read_size(self, extra: int = 0, minimum: int = 1) -> int | None:
        """Return the size in the first four bytes plus `extra`, None while they are incomplete."""
        if len(self._buffer) < 4:
            return None
        return check_size(int.from_bytes(self._buffer[:4], "little") + extra, minimum)


def check_size(size: int, minimum: int = 1) -> int:
    if not minimum <= size <= MAX_FRAME:
        raise MalformedError(f"a frame of {size} bytes")
    return size


class Full(SizedFraming):
    """Length, sequence number, packet, CRC32. Telethon's default."""

    def __init__(self) -> None:
        super().__init__()
        self._received = self._sent = 0

    def size(self) -> int | None:
        return self.read_size(minimum=12)

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


class Intermediate(SizedFraming):
    """Four bytes of length, then the packet. The padded variant adds up to 15 bytes, which are ignored."""

    def size(self) -> int | None:
        return self.read_size(extra=4)

    def strip(self, frame: bytes) -> bytes:
        return frame[4 : len(frame) - len(frame) % 4]

    def wrap(self, packet: bytes) -> bytes:
        return struct.pack("<I", len(packet)) + packet


class Abridged(SizedFraming):
    """The length in words: one byte, or 0x7f and three bytes."""

    def size(self) -> int | None:
        if not self._buffer or (self._buffer[0] == 0x7F and len(self._buffer) < 4):
            return None
        if self._buffer[0] == 0x7F:
            return check_size(int.from_bytes(self._buffer[1:4], "little") * 4 + 4)
        return self._buffer[0] * 4 + 1

    def strip(self, frame: bytes) -> bytes:
        return frame[4:] if frame[0] == 0x7F else frame[1:]

    def wrap(self, packet: bytes) -> bytes:
        words = len(packet) // 4
        head = bytes([words]) if words < 0x7F else b"\x7f" + words.to_bytes(3, "little")
        return head + packet


class Obfuscated(Framing):
    """Another framing encrypted with AES-CTR; the keys are in the client's first 64 bytes."""

    def __init__(self, opening: bytes) -> None:
        backwards = opening[55:7:-1]
        self._incoming = AESModeCTR(opening[8:40], opening[40:56])
        self._outgoing = AESModeCTR(backwards[:32], backwards[32:48])
        tag = self._incoming.encrypt(opening)[56:60]
        self._inner = _by_tag(tag)

    def feed(self, data: bytes) -> Iterator[bytes]:
        return self._inner.feed(self._incoming.encrypt(data))

    def wrap(self, packet: bytes) -> bytes:
        encrypted: bytes = self._outgoing.encrypt(self._inner.wrap(packet))
        return encrypted


def _by_tag(tag: bytes) -> Framing:
    if tag == b"\xef\xef\xef\xef":
        return Abridged()
    if tag in (b"\xee\xee\xee\xee", b"\xdd\xdd\xdd\xdd"):
        return Intermediate()
    raise MalformedError("an unknown transport")


def detect(opening: bytes) -> tuple[Framing, int] | None:
    """Return the framing of a connection and the length of its announcement; None while more bytes are needed."""
    if opening[:1] == b"\xef":
        return Abridged(), 1
    if len(opening) < 8:
        return None
    if opening[:4] in (b"\xee\xee\xee\xee", b"\xdd\xdd\xdd\xdd"):
        return Intermediate(), 4
    if opening[4:8] == b"\0\0\0\0":  # the sequence number of a full frame; the first is 0
        return Full(), 0
    return (Obfuscated(opening[:64]), 64) if len(opening) >= 64 else None
