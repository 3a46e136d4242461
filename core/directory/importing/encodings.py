"""Finds the encoding of a CSV file and decodes it: UTF-8, UTF-16 with a byte order mark, Windows-1251.

Windows-1251 has no mark, so it is inferred: what is not UTF-8 and has mostly Russian letters beyond ASCII. A UTF-8 file
with a few damaged bytes is refused, not read as Windows-1251.
"""

import codecs
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from typing import IO, TextIO

from core.directory.importing.errors import ImportRefused, RowError

_UTF8, _UTF16, _WINDOWS = "utf-8-sig", "utf-16", "cp1251"
_NAMES = {_UTF8: "UTF-8", _UTF16: "UTF-16", _WINDOWS: "Windows-1251"}
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_WORKBOOKS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
"""The first bytes of .xlsx and .ods, and of .xls."""
_ASCII = bytes(range(0x80))
_RUSSIAN_LETTERS = bytes([*range(0xC0, 0x100), 0xA8, 0xB8])
"""Of Windows-1251."""
_REMEDY = "Save the sheet as CSV UTF-8."


@contextmanager
def decoded(file: IO[bytes]) -> Iterator[TextIO]:
    """Open the file as text, with its line breaks as they are. Raises ImportRefused CSV_NOT_TEXT, CSV_NOT_UTF8."""
    encoding = _encoding_of(file)
    text = TextIOWrapper(file, encoding, newline="")
    try:
        yield text
    except UnicodeDecodeError:
        message = f"The file looks like {_NAMES[encoding]}, but a part of it is not. {_REMEDY}"
        raise _refusal(1, "CSV_NOT_UTF8", message) from None
    finally:
        text.detach()


def _encoding_of(file: IO[bytes]) -> str:
    """Return the codec. Leaves the file at its start."""
    start = file.read(4)
    file.seek(0)
    if start.startswith(_WORKBOOKS):
        raise _refusal(1, "CSV_NOT_TEXT", f"The file is a workbook, not CSV. {_REMEDY}")
    if start.startswith(_UTF16_MARKS):
        return _UTF16
    if b"\0" in start:
        raise _refusal(1, "CSV_NOT_TEXT", f"The file is not text that can be read. {_REMEDY}")
    encoding = _utf8_or_windows(file)
    file.seek(0)
    return encoding


def _utf8_or_windows(file: IO[bytes]) -> str:
    """Find out in which encoding a file is. Raises ImportRefused CSV_NOT_UTF8 with the first line that is not UTF-8."""
    first_wrong, wrong, foreign, letters = 0, 0, 0, 0
    for number, line in enumerate(file, 1):
        beyond_ascii = line.translate(None, _ASCII)
        foreign += len(beyond_ascii)
        letters += len(beyond_ascii) - len(beyond_ascii.translate(None, _RUSSIAN_LETTERS))
        if faults := _undecodable(line):
            first_wrong, wrong = first_wrong or number, wrong + faults
    if not wrong:
        return _UTF8
    if wrong * 2 > foreign and letters * 2 > foreign:
        return _WINDOWS
    message = f"Line {first_wrong} is neither UTF-8 nor Windows-1251. {_REMEDY}"
    raise _refusal(first_wrong, "CSV_NOT_UTF8", message)


def _undecodable(line: bytes) -> int:
    """Return how many sequences of the line are not UTF-8."""
    try:
        line.decode()
    except UnicodeDecodeError:
        return line.decode(errors="replace").count("\ufffd")
    return 0


def _refusal(row: int, code: str, message: str) -> ImportRefused:
    return ImportRefused([RowError(row, "", code, message)])
