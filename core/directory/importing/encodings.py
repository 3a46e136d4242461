"""Finds the encoding of a CSV file and decodes it: UTF-8, UTF-16 with a byte order mark, Windows-1251, or the one that
the caller names.

Windows-1251 has no mark, so it is inferred: what is not UTF-8, has mostly Russian letters beyond ASCII, and makes at
least as many words as any other encoding would. If another one makes more, the caller is asked; so if it makes as many,
but of much more frequent letters: KOI8-R in capitals alone is small letters of Windows-1251. A UTF-8 file with a few
damaged bytes is refused, not read as Windows-1251.
"""

import codecs
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import TextIOWrapper
from typing import IO, TextIO

from core.directory.importing.errors import ImportRefused, RowError

_UTF8, _UTF16, _WINDOWS = "utf-8-sig", "utf-16", "cp1251"
ENCODINGS: Mapping[str, str] = {
    "utf-8": _UTF8,
    "utf-16": _UTF16,
    "windows-1251": _WINDOWS,
    "koi8-r": "koi8_r",
    "mac-cyrillic": "mac_cyrillic",
    "cp866": "cp866",
    "windows-1252": "cp1252",
}
"""The encodings that a caller may name → codec."""
_NAMES = {codec: name for name, codec in ENCODINGS.items()}
_OTHERS = ("koi8_r", "mac_cyrillic", "cp866", "cp1252")
_SAMPLE = 65_536
"""Bytes of lines beyond ASCII by whose words an encoding is known."""
_WORD = re.compile(r"[^\W\d_]+")
_CYRILLIC = re.compile("[А-ЯЁІЇЄҐЎ]?[а-яёіїєґў]+|[А-ЯЁІЇЄҐЎ]+")
_WESTERN = re.compile("[A-ZÀ-ÖØ-Þ]?[a-zß-öø-ÿ]+|[A-ZÀ-ÖØ-Þ]+")
_FREQUENT = frozenset("оеаинтсрвл")
"""Six of ten letters of a Russian text are among these."""
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_WORKBOOKS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
"""The first bytes of .xlsx and .ods, and of .xls."""
_ASCII = bytes(range(0x80))
_RUSSIAN_LETTERS = bytes([*range(0xC0, 0x100), 0xA8, 0xB8])
"""Of Windows-1251."""
_REMEDY = "Save the sheet as CSV UTF-8."


@contextmanager
def decoded(file: IO[bytes], named: str = "") -> Iterator[TextIO]:
    """Open the file as text, with its line breaks as they are. `named`: one of `ENCODINGS`; "" finds it out. Raises
    ImportRefused CSV_NOT_TEXT, CSV_NOT_UTF8, CSV_ENCODING_UNCLEAR.
    """
    encoding = ENCODINGS[named] if named else _encoding_of(file)
    text = TextIOWrapper(file, encoding, newline="")
    try:
        yield text
    except UnicodeError:  # also utf-16 without a byte order mark
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
    """Find out in which encoding a file is. Raises ImportRefused CSV_NOT_UTF8, CSV_ENCODING_UNCLEAR with the first line
    that is not UTF-8.
    """
    first_wrong, wrong, foreign, letters, sample = 0, 0, 0, 0, b""
    for number, line in enumerate(file, 1):
        beyond_ascii = line.translate(None, _ASCII)
        foreign += len(beyond_ascii)
        letters += len(beyond_ascii) - len(beyond_ascii.translate(None, _RUSSIAN_LETTERS))
        if faults := _undecodable(line):
            first_wrong, wrong = first_wrong or number, wrong + faults
            sample += line if len(sample) < _SAMPLE else b""
    if not wrong:
        return _UTF8
    likely = _likely(sample[: _SAMPLE * 2])
    if wrong * 4 > foreign and likely != _WINDOWS:
        raise _refusal(first_wrong, "CSV_ENCODING_UNCLEAR", _unclear(first_wrong, _NAMES[likely]))
    if wrong * 2 > foreign and letters * 2 > foreign:
        return _WINDOWS
    message = f"Line {first_wrong} is neither UTF-8 nor Windows-1251. {_REMEDY}"
    raise _refusal(first_wrong, "CSV_NOT_UTF8", message)


def _likely(sample: bytes) -> str:
    """Return the codec that makes the most words; Windows-1251 unless another one is clearly better."""
    windows_words, windows_frequent = _words(sample, _WINDOWS)
    best, (words, frequent) = max(((codec, _words(sample, codec)) for codec in _OTHERS), key=lambda found: found[1])
    is_better = words > windows_words or (words == windows_words and frequent >= max(2 * windows_frequent, 4))
    return best if is_better else _WINDOWS


def _words(sample: bytes, codec: str) -> tuple[int, int]:
    """Return how many letters are in words beyond ASCII if a text is in an encoding, and how many of them are frequent
    Russian ones. Capitals after small letters and two alphabets in one make no word.
    """
    found = [one for one in _WORD.findall(sample.decode(codec, "replace")) if not one.isascii()]
    letters = "".join(one for one in found if _is_word(one, is_western=codec == "cp1252"))
    return len(letters), sum(one in _FREQUENT for one in letters.lower())


def _is_word(letters: str, *, is_western: bool) -> bool:
    if not is_western:
        return _CYRILLIC.fullmatch(letters) is not None
    of_ascii = sum(map(str.isascii, letters))
    return of_ascii * 2 >= len(letters) and _WESTERN.fullmatch(letters) is not None


def _unclear(line: int, name: str) -> str:
    return (
        f"Line {line} is not UTF-8, and as {name} the file makes the most words. If that is right, say so:"
        f" encoding={name}, or ./ada import --encoding {name}. {_REMEDY}"
    )


def _undecodable(line: bytes) -> int:
    """Return how many sequences of the line are not UTF-8."""
    try:
        line.decode()
    except UnicodeDecodeError:
        return line.decode(errors="replace").count("\ufffd")
    return 0


def _refusal(row: int, code: str, message: str) -> ImportRefused:
    return ImportRefused([RowError(row, "", code, message)])
