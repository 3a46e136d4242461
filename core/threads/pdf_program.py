"""Removes the metadata of a PDF: `python -I pdf_program.py < FILE > CLEANED`. It fails for one that it cannot clean.

A process of its own, with little memory and time: whatever a malicious file does to the library, it does to no reply of
another person. It imports nothing of Ada.

Of the file only what its pages need is written again: not the older versions in it, who made it and when, the names of
those who commented, and signatures. Files within it could hold anything, so it is refused with them.
"""

import io
import re
import resource
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from pypdf import PdfReader, PdfWriter
from pypdf.generic import ArrayObject, DictionaryObject, IndirectObject

MEMORY, SECONDS = 1024 * 2**20, 60
_ABOUT = ("/Metadata", "/PieceInfo", "/LastModified")
_OF_COMMENT = ("/T", "/CreationDate", "/M", "/NM")
_PHOTOGRAPH = re.compile(rb"stream\r?\n(\xff\xd8.*?)\r?\nendstream", re.DOTALL)
_SAID = {*range(0xE1, 0xF0), 0xFE} - {0xE2, 0xEE}
"""Segments of JPEG that say something: all of applications but the profile of colours and Adobe's."""
_MARKER = re.compile(rb"\xff[^\0\xff\xd0-\xd7]")


class Uncleanable(Exception):
    """The file has something in it from which the metadata cannot be taken."""


def limit_resources() -> None:
    for kind, most in ((resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_CPU, SECONDS)):
        with suppress(ValueError, OSError):  # a system that knows no such limit
            resource.setrlimit(kind, (most, most))


def cleaned(data: bytes) -> bytes:
    """Return a PDF without its metadata. Raises Uncleanable; what pypdf raises of a broken one."""
    reader = PdfReader(io.BytesIO(data), strict=False)
    if reader.is_encrypted and not reader.decrypt(""):
        raise Uncleanable("password")
    writer = PdfWriter(clone_from=reader)
    for one in dictionaries(writer.root_object):
        if "/EF" in one:
            raise Uncleanable("embedded file")
        clear(one)
    # A copy of the copy: the first one still has the objects to which nothing leads any more.
    return without_exif(bytearray(written(PdfWriter(clone_from=PdfReader(io.BytesIO(written(writer)))))))


def written(writer: PdfWriter) -> bytes:
    target = io.BytesIO()
    writer.metadata = None
    writer.write(target)
    return target.getvalue()


def dictionaries(root: DictionaryObject) -> Iterator[DictionaryObject]:
    """Emit all dictionaries that belong to a document, each once."""
    waiting: list[Any] = [root]
    seen = set()
    while waiting:
        one = waiting.pop()
        if isinstance(one, IndirectObject):
            if (one.idnum, one.generation) in seen:
                continue
            seen.add((one.idnum, one.generation))
            one = one.get_object()
        if isinstance(one, DictionaryObject):
            yield one
            waiting.extend(one.raw_get(key) for key in one)
        elif isinstance(one, ArrayObject):
            waiting.extend(list.__iter__(one))


def clear(one: DictionaryObject) -> None:
    if "/ByteRange" in one:  # a signature, with the certificate of who has signed
        one.clear()
    is_comment = "/Rect" in one and one.get("/Subtype") != "/Widget" and "/FT" not in one
    for name in (*_ABOUT, *(_OF_COMMENT if is_comment else ())):
        if name in one:
            del one[name]


def without_exif(data: bytearray) -> bytes:
    """Return a file with zeros in place of what cameras have written into its photographs, and behind them."""
    for found in _PHOTOGRAPH.finditer(bytes(data)):
        clear_photograph(data, found.start(1) + 2, found.end(1))
    return bytes(data)


def clear_photograph(data: bytearray, place: int, end: int) -> None:
    while data[place] == 0xFF and data[place + 1] != 0xD9:
        marker, after = data[place + 1], place + 2 + int.from_bytes(data[place + 2 : place + 4])
        if after > end:
            raise Uncleanable("photograph")
        if marker in _SAID:
            data[place + 4 : after] = bytes(after - place - 4)
        place = after
        if marker == 0xDA:  # the coded picture goes on until the next marker
            following = _MARKER.search(data, after, end)
            place = following.start() if following else end
    if place < end:
        if data[place] != 0xFF:
            raise Uncleanable("photograph")
        data[place + 2 : end] = bytes(end - place - 2)


if __name__ == "__main__":
    limit_resources()
    sys.stdout.buffer.write(cleaned(sys.stdin.buffer.read()))
