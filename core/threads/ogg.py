"""Takes the comments out of a sound in an Ogg file, such as the voices of Telegram. Pure.

Sources: RFC 3533 (Ogg), RFC 7845 (Opus), the specification of Vorbis I, section 5. All pages stay as long as they are:
the comments are replaced by a name of the program of the same size, of spaces.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

_FIRST, _CONTINUED = 2, 1
_FORMS = {b"OpusHead": (b"OpusTags", b""), b"\x01vorbis": (b"\x03vorbis", b"\x01")}
"""Of the head of a stream: the first bytes of its comments, and what must stand behind them."""
_NUMBERS = 8
"""Bytes of the two numbers in a packet of comments."""


class _OggPage(NamedTuple):
    """`start`, `body`, `end`: offsets. `sizes`: of the segments."""

    start: int
    body: int
    end: int
    flags: int
    stream: bytes
    sizes: bytes


def without_comments(data: bytes) -> bytes:
    """Return a sound without its comments. Raises ValueError for another form, IndexError for a broken file."""
    cleaned, pages = bytearray(data), list(_pages(data))
    for number, page in enumerate(pages):
        if page.flags & _FIRST:
            mark, ending = next((form for head, form in _FORMS.items() if data.startswith(head, page.body)), (b"", b""))
            if not mark:
                raise ValueError
            spans = _second_packet(page.stream, pages[number + 1 :])
            _write(cleaned, spans, _blank(mark, ending, sum(end - start for start, end in spans)))
    for page in pages:
        before, after = data[page.start : page.end], cleaned[page.start : page.end]
        if before != after:
            cleaned[page.start + 22 : page.start + 26] = bytes(4)
            cleaned[page.start + 22 : page.start + 26] = _checksum(bytes(cleaned[page.start : page.end]))
    return bytes(cleaned)


def _pages(data: bytes) -> Iterator[_OggPage]:
    place = 0
    while place < len(data):
        if data[place : place + 4] != b"OggS":
            raise ValueError
        sizes = data[place + 27 : place + 27 + data[place + 26]]
        body = place + 27 + data[place + 26]
        end = body + sum(sizes)
        if end > len(data):
            raise ValueError
        yield _OggPage(place, body, end, data[place + 5], data[place + 14 : place + 18], sizes)
        place = end


def _second_packet(stream: bytes, pages: Sequence[_OggPage]) -> list[tuple[int, int]]:
    """Return where the first packet of these pages is: a segment that is not full ends it."""
    spans: list[tuple[int, int]] = []
    for page in (one for one in pages if one.stream == stream):
        if bool(spans) != bool(page.flags & _CONTINUED):
            raise ValueError
        size, is_over = 0, False
        for segment in page.sizes:
            size += segment
            if is_over := segment < 255:
                break
        spans.append((page.body, page.body + size))
        if is_over:
            return spans
    raise ValueError


def _blank(mark: bytes, ending: bytes, size: int) -> bytes:
    spaces = size - len(mark) - _NUMBERS - len(ending)
    if spaces < 0:
        raise ValueError
    return mark + spaces.to_bytes(4, "little") + b" " * spaces + bytes(4) + ending


def _write(data: bytearray, spans: Sequence[tuple[int, int]], packet: bytes) -> None:
    if not packet.startswith(data[spans[0][0] : spans[0][0] + len(b"OpusTags") - 1]):
        raise ValueError
    for start, end in spans:
        data[start:end], packet = packet[: end - start], packet[end - start :]


def _table() -> list[int]:
    found = []
    for number in range(256):
        code = number << 24
        for _ in range(8):
            code = (code << 1) ^ (0x04C11DB7 if code & 0x80000000 else 0)
        found.append(code & 0xFFFFFFFF)
    return found


_CODES = _table()


def _checksum(page: bytes) -> bytes:
    code = 0
    for byte in page:
        code = (code << 8 & 0xFFFFFFFF) ^ _CODES[code >> 24 ^ byte]
    return code.to_bytes(4, "little")
