"""Reads a CSV file (RFC 4180, UTF-8, with a header) into rows of named cells. Pure.

Every error has its own code, with the row as a spreadsheet shows it: the header is row 1. A byte order mark is skipped;
a file whose header has semicolons and no comma is separated by semicolons, as spreadsheets in Russian write it.
"""

import csv
import difflib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import IO

from msgspec import Struct

from core.directory.importing.errors import ImportRefused, RowError
from core.model.characters import with_plain_spaces
from core.model.plurals import counted

MOST_ROWS = 250_000
MOST_ERRORS = 100
"""Errors that are reported at once."""
LONGEST_CELL = 131_072
"""Characters; the limit of Python's csv module."""

_BOM = b"\xef\xbb\xbf"
_LISTED_BY = ";"


class Row(Struct, frozen=True, gc=False):  # 100,000 of them would make each garbage collection a pause of 40 ms
    """One row. `number`: as a spreadsheet shows it; `cells`: column → text without outer spaces."""

    number: int
    cells: Mapping[str, str]

    def error(self, column: str, code: str, message: str) -> RowError:
        return RowError(self.number, column, code, message)


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns that a kind of file has. `families`: prefixes, such as "contacts." in contacts.telegram."""

    required: Sequence[str]
    optional: Sequence[str] = ()
    families: Sequence[str] = field(default=())

    def knows(self, name: str) -> bool:
        return name in (*self.required, *self.optional) or any(
            name.startswith(family) and len(name) > len(family) for family in self.families
        )


def listed(cell: str) -> list[str]:
    """The items of a cell that holds several, separated by semicolons."""
    return [item for part in cell.split(_LISTED_BY) if (item := part.strip())]


def read_rows(file: IO[bytes], columns: Columns) -> list[Row]:
    """All rows of a file. Raises ImportRefused with the errors of its form."""
    records = _records(_lines(file))
    header = _header(next(records, (1, []))[1])
    _check_header(header, columns)
    rows, errors = [], []
    for number, cells in records:
        if len(cells) == len(header):
            rows.append(Row(number, dict(zip(header, cells, strict=True))))
        else:
            errors.append(_wrong_length(number, len(cells), len(header)))
        if len(rows) + len(errors) > MOST_ROWS:
            raise ImportRefused([RowError(number, "", "TOO_MANY_ROWS", f"A file has at most {MOST_ROWS} rows.")])
    if errors:
        raise ImportRefused(errors)
    return rows


def _wrong_length(number: int, found: int, expected: int) -> RowError:
    return RowError(
        number, "", "WRONG_NUMBER_OF_CELLS", f"The row has {counted(found, 'cell')}, the header {expected}."
    )


# text


def _lines(file: IO[bytes]) -> Iterator[str]:
    """The file's lines as text. Raises ImportRefused CSV_NOT_UTF8."""
    for number, raw in enumerate(file, 1):
        try:
            yield raw.removeprefix(_BOM if number == 1 else b"").decode()
        except UnicodeDecodeError:
            raise ImportRefused([_not_utf8(number, raw)]) from None


def _not_utf8(number: int, raw: bytes) -> RowError:
    if number == 1 and raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        encoding = "UTF-16"
    else:
        encoding = "Windows-1251" if _looks_russian(raw) else "another encoding"
    message = f"Line {number} is not UTF-8; it looks like {encoding}. Save the file as CSV in UTF-8."
    return RowError(number, "", "CSV_NOT_UTF8", message)


def _looks_russian(raw: bytes) -> bool:
    """Whether most bytes beyond ASCII are letters of the Russian alphabet in Windows-1251."""
    foreign = [byte for byte in raw if byte >= 0x80]
    return sum(byte >= 0xC0 or byte in (0xA8, 0xB8) for byte in foreign) * 2 > len(foreign)


# records


def _records(lines: Iterator[str]) -> Iterator[tuple[int, list[str]]]:
    """The records with their numbers, without empty ones. Raises ImportRefused CSV_…"""
    first = next(lines, "")
    reader = csv.reader(_chained(first, lines), delimiter=_separator(first), strict=True)
    number, line = 0, 0
    while True:
        number, line = number + 1, reader.line_num
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as fault:
            raise ImportRefused([_malformed(number, reader.line_num - line, str(fault))]) from None
        if any(cells):
            yield number, [with_plain_spaces(cell).strip(" \t") for cell in cells]


def _chained(first: str, rest: Iterable[str]) -> Iterator[str]:
    yield first
    yield from rest


def _separator(header: str) -> str:
    return ";" if ";" in header and "," not in header else ","


def _malformed(number: int, lines: int, fault: str) -> RowError:
    if "end of data" in fault or ("field larger" in fault and lines > 1):
        message = "A quotation mark in this row is not closed: the cell would go on to the end of the file."
        return RowError(number, "", "CSV_QUOTE_UNCLOSED", message)
    if "field larger" in fault:
        return RowError(number, "", "CELL_TOO_LONG", f"A cell has at most {LONGEST_CELL} characters.")
    message = 'After a closing quotation mark a separator must follow; a quotation mark inside a cell is written "".'
    return RowError(number, "", "CSV_MALFORMED", message)


# the header


def _header(cells: Sequence[str]) -> list[str]:
    return [cell.lower() if not _is_family(cell) else cell for cell in cells]


def _is_family(cell: str) -> bool:
    return "." in cell


def _check_header(header: Sequence[str], columns: Columns) -> None:
    """Raises ImportRefused CSV_EMPTY, COLUMN_UNKNOWN, COLUMN_MISSING, COLUMN_REPEATED."""
    if not header:
        raise ImportRefused([RowError(1, "", "CSV_EMPTY", "The file is empty: its first row must name the columns.")])
    errors = [
        *(_unknown(name, columns) for name in header if not columns.knows(name)),
        *(
            RowError(1, name, "COLUMN_MISSING", f"The file has no column {name!r}.")
            for name in columns.required
            if name not in header
        ),
        *(
            RowError(1, name, "COLUMN_REPEATED", f"The column {name!r} occurs {count} times.")
            for name, count in Counter(header).items()
            if count > 1
        ),
    ]
    if errors:
        raise ImportRefused(list(islice(errors, MOST_ERRORS)))


def _unknown(name: str, columns: Columns) -> RowError:
    known = [*columns.required, *columns.optional, *(f"{family}CHANNEL" for family in columns.families)]
    close = difflib.get_close_matches(name, known, 1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return RowError(1, name[:64], "COLUMN_UNKNOWN", f"The columns are {', '.join(known)}.{hint}")
