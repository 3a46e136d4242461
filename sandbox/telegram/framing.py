"""MTProto's TCP transports: how packets are cut out of the byte stream (core.telegram.org/mtproto/mtproto-transports).

A client says by its first bytes which one it speaks; `recognise` reads them. Before: connection.py, which feeds the
bytes it got. After: envelope.py, which opens the packets.
"""

import struct
from collections.abc import Iterator
from zlib import crc32

from telethon.crypto import AESModeCTR

from sandbox.telegram.malformed import MalformedError

LARGEST = 2 * 1024 * 1024  # Telegram closes above 1 MiB; a little more room harms nobody


class Framing:
    """Turns a byte stream into packets and packets into bytes. One per connection, as some of them count."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the packets that `data` completes. Raises MalformedError for a broken frame."""
        self._buffer += data
        while (size := self.size()) is not None and len(self._buffer) >= size:
            frame = bytes(self._buffer[:size])
            del self._buffer[:size]
            yield self.strip(frame)

    def size(self) -> int | None:
        """Return the size of the frame at the start of the buffer, None while its head is incomplete."""
        return self.checked(self.whole()) if len(self._buffer) >= 4 else None

    def whole(self) -> int:
        """Return the size of the frame, its own head included, from the first four bytes."""
        raise NotImplementedError

    def head(self) -> int:
        return int.from_bytes(self._buffer[:4], "little")

    def strip(self, frame: bytes) -> bytes:
        raise NotImplementedError

    def wrap(self, packet: bytes) -> bytes:
        raise NotImplementedError

    @staticmethod
    def checked(size: int) -> int:
        if not 0 < size <= LARGEST:
            raise MalformedError(f"a frame of {size} bytes")
        return size


class Full(Framing):
    """Length, sequence number, packet, CRC32. Telethon's default."""

    def __init__(self) -> None:
        super().__init__()
        self._received = self._sent = 0

    def whole(self) -> int:
        return self.head() if self.head() >= 12 else 0

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


class Intermediate(Framing):
    """Four bytes of length, then the packet; the padded variant adds up to 15 bytes that do not count."""

    def whole(self) -> int:
        return self.head() + 4

    def strip(self, frame: bytes) -> bytes:
        return frame[4 : len(frame) - len(frame) % 4]

    def wrap(self, packet: bytes) -> bytes:
        return struct.pack("<I", len(packet)) + packet


class Abridged(Framing):
    """The length in words: one byte, or 0x7f and three bytes."""

    def size(self) -> int | None:
        if not self._buffer or (self._buffer[0] == 0x7F and len(self._buffer) < 4):
            return None
        if self._buffer[0] == 0x7F:
            return self.checked(int.from_bytes(self._buffer[1:4], "little") * 4 + 4)
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
        super().__init__()
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
