"""Reads a CSV file (RFC 4180, and as Excel writes it) into rows of named cells, whatever its encoding. Pure.

Cells are separated by commas, semicolons, tabs or |: by what its first line `sep=;` says, else by what makes the header
one of known columns. Every error has its own code, with the row as a spreadsheet shows it: the first row is 1, a line
`sep=;` is none.

The encoding is UTF-8, UTF-16 with a byte order mark, Windows-1251, or the one that the caller names. Windows-1251 has
no mark, so it is inferred: what is not UTF-8, has mostly Russian letters beyond ASCII, and makes at least as many words
as any other encoding would. If another one makes more, the caller is asked; so if it makes as many, but of much more
frequent letters: KOI8-R in capitals alone is small letters of Windows-1251. A UTF-8 file with a few damaged bytes is
refused, not read as Windows-1251.
"""

import codecs
import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from itertools import chain, zip_longest
from typing import IO, TextIO

from msgspec import Struct

from core.directory.csv_cells import LEFT_OUT, ImportRefused, RowError, plain
from core.directory.importing.headers import Columns, Header, empty_file, read_header
from core.model.text.characters import counted, nfc, with_plain_spaces

MOST_ROWS = 250_000
LONGEST_CELL = 131_072
"""Characters; the limit of Python's csv module."""

_LONGEST_VALUE = 200
_SEPARATORS = ",;\t|"
_SEPARATOR_LINE = re.compile(rf'"?sep=([{_SEPARATORS}])"?[{_SEPARATORS}\s]*', re.IGNORECASE)
_END_OF_FILE = "\x1a"
"""Ctrl-Z, with which programs of DOS end a text."""
_BLANK = re.compile(rf"[{_SEPARATORS}\s]*")

Record = tuple[int, list[str]]
"""A row with its number."""
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


class CsvRow(Struct, frozen=True, gc=False):  # 100,000 of them would make each garbage collection a pause of 40 ms
    """One row. `number`: as a spreadsheet shows it; `cells`: column → text without outer spaces; `written`: column →
    how the file names it; `record`: the cells as the file has them.
    """

    number: int
    cells: Mapping[str, str]
    written: Mapping[str, str]
    record: Sequence[str] = ()

    def error(self, column: str, code: str, message: str) -> RowError:
        value = self.cells.get(column, "")[:_LONGEST_VALUE]
        return RowError(self.number, self.written.get(column, column), code, message, value)


class TableRows(Struct, frozen=True):
    """The rows of a file. `errors`: of rows that do not fit the header; such a row has no named cells."""

    header: Header
    rows: Sequence[CsvRow]
    errors: Sequence[RowError]


def read_beginning(file: IO[bytes], columns: Columns, encoding: str = "") -> tuple[list[str], list[str]]:
    """Return the cells of the header, and of the first row below it. Errors as `read_rows`."""
    with decoded(file, encoding) as text:
        records = _records(_Source(text), columns)
        header, first = (next(records, (0, []))[1] for _ in range(2))
    if not header:
        raise empty_file()
    return header, first


def read_rows(file: IO[bytes], columns: Columns, encoding: str = "", chosen: Sequence[str] = ()) -> TableRows:
    """Return all rows of a file. `encoding`: as in `decoded`; `chosen`: as in `read_header`. Raises ImportRefused with
    the errors of the whole file.
    """
    with decoded(file, encoding) as text:
        source = _Source(text)
        records = _records(source, columns)
        header = read_header(*next(records, (1, [])), columns, chosen)
        return TableRows(header, *_named(records, header, source))


def read_records(text: TextIO, columns: Columns) -> Iterator[Record]:
    """Emit the rows that are not empty, the header first, with their numbers, whatever columns there are. `columns`:
    those by which the separator is known. Raises ImportRefused CSV_…
    """
    return _records(_Source(text), columns)


def written_records(rows: Iterable[Record]) -> str:
    """Return rows as a CSV file in which each stands at its number."""
    text, last = io.StringIO("sep=;\r\n", newline=""), 0
    text.seek(0, io.SEEK_END)
    writer = csv.writer(text, delimiter=";")
    for number, cells in rows:
        text.write("\r\n" * (number - last - 1))
        writer.writerow(cells)
        last = number
    return text.getvalue()


# rows


def _named(records: Iterator[Record], header: Header, source: "_Source") -> tuple[list[CsvRow], list[RowError]]:
    """Return all rows, and the errors of those that do not fit the header."""
    rows: list[CsvRow] = []
    errors: list[RowError] = []
    for number, cells in records:
        if error := _misplaced(number, cells, header) or _cut_off(number, cells, header, source):
            errors.append(error)
            rows.append(CsvRow(number, {}, header.written, cells))
        else:
            rows.append(_row(number, cells, header))
        if len(rows) > MOST_ROWS:
            raise ImportRefused([RowError(number, "", "TOO_MANY_ROWS", f"A file has at most {MOST_ROWS} rows.")])
    return rows, errors


def _row(number: int, cells: Sequence[str], header: Header) -> CsvRow:
    """Return a row. Excel leaves out empty cells at its end."""
    places = zip_longest(header.columns, cells[: len(header.columns)], fillvalue="")
    named = {name: cell for name, cell in places if name and name != LEFT_OUT}
    if header.parts:
        named[header.whole] = " ".join(cell for part in header.parts if (cell := named.pop(part)))
    return CsvRow(number, named, header.written, cells)


def _misplaced(number: int, cells: Sequence[str], header: Header) -> RowError | None:
    """Return the error of a row with a text beyond the header, or in a column without a name. Empty cells may be
    there."""
    expected = len(header.columns)
    if any(cells[expected:]):
        message = f"The row has {counted(len(cells), 'cell')}, the header {expected}."
        return RowError(number, "", "WRONG_NUMBER_OF_CELLS", message)
    for place, (name, cell) in enumerate(zip(header.columns, cells, strict=False), 1):
        if cell and not name:
            message = f"Column {place} has a text here, but no name in the header."
            return RowError(number, "", "COLUMN_WITHOUT_NAME", message)
    return None


def _cut_off(number: int, cells: Sequence[str], header: Header, source: "_Source") -> RowError | None:
    """Return the error of a row within which the file ends."""
    if len(cells) >= len(header.columns) or source.is_complete:
        return None
    message = f"The file ends within this row: it has {counted(len(cells), 'cell')}, the header {len(header.columns)}."
    return RowError(number, "", "WRONG_NUMBER_OF_CELLS", message)


# records


class _Source:
    """The lines of a file. `is_complete`: whether the last line that was read has a line break."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = iter(lines)
        self.is_complete = True

    def __iter__(self) -> Iterator[str]:
        for written in self._lines:
            line = written.removesuffix(_END_OF_FILE)
            if written and not line:
                return
            self.is_complete = line.endswith(("\n", "\r"))
            yield line


def _records(source: _Source, columns: Columns) -> Iterator[Record]:
    """Emit the records with their numbers, without empty ones. Raises ImportRefused CSV_…"""
    lines = iter(source)
    blank, first, separator = _opening(lines, columns)
    reader = csv.reader(chain(blank, [first], lines), delimiter=separator, strict=True)
    number, line = 0, 0
    while True:
        number, line = number + 1, reader.line_num
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as fault:
            raise ImportRefused([_malformed(number, reader.line_num - line, str(fault))]) from None
        if any(cells) and any(texts := [plain(with_plain_spaces(nfc(cell))) for cell in cells]):
            yield number, texts


def _opening(lines: Iterator[str], columns: Columns) -> tuple[list[str], str, str]:
    """Return the blank lines at the start, the first other line, and the separator. A line `sep=;` is left out."""
    blank, named = [], ""
    for line in lines:
        if found := None if named else _SEPARATOR_LINE.fullmatch(line):
            named = found[1]
        elif _BLANK.fullmatch(line):
            blank.append(line)
        else:
            return blank, line, named or _separator(line, columns)
    return blank, "", ","


def _separator(header: str, columns: Columns) -> str:
    """Return what separates the cells of a header: of most known columns, then of most cells."""

    def rank(separator: str) -> tuple[int, int]:
        cells = next(csv.reader([header], delimiter=separator))
        return sum(columns.column(cell) is not None for cell in cells), len(cells)

    return max(_SEPARATORS, key=rank)


def _malformed(number: int, lines: int, fault: str) -> RowError:
    if "end of data" in fault or ("field larger" in fault and lines > 1):
        message = "A quotation mark in this row is not closed: the cell would go on to the end of the file."
        return RowError(number, "", "CSV_QUOTE_UNCLOSED", message)
    if "field larger" in fault:
        return RowError(number, "", "CELL_TOO_LONG", f"A cell has at most {LONGEST_CELL} characters.")
    message = 'After a closing quotation mark a separator must follow; a quotation mark inside a cell is written "".'
    return RowError(number, "", "CSV_MALFORMED", message)


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
