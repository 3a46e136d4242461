"""Reads an uploaded table: the names of its columns and the cells of its rows. The last tables are kept in memory, so
that a preview of each row reads the file once.
"""

import asyncio
import tempfile
from collections import Counter, OrderedDict
from collections.abc import Iterator, Sequence
from itertools import islice, zip_longest
from pathlib import Path
from typing import IO

from msgspec import Struct

from core.directory.csv_cells import FileKind
from core.directory.importing.csv_rows import Record, read_records
from core.directory.importing.encodings import decoded
from core.directory.importing.errors import ImportRefused, RowError, TableRefused
from core.directory.importing.kinds import COLUMNS
from core.errors import Invalid
from core.model.text.characters import nfc, with_plain_spaces
from core.model.text.personal import field_name
from core.orders.order import TableRef
from core.orders.tables.workbook import read_sheet
from core.uploads import Uploads

MOST_ROWS = 10_000
MOST_COLUMNS = 256
LONGEST_CELL = 4096
MOST_ERRORS = 1000
_KEPT = 4
_WORKBOOK = b"PK\x03\x04"


class RecipientTable(Struct, frozen=True):
    """`header`: the names of the columns as they are written; "" for one without a name, whose cells are empty.
    `fields`: the same as names of fields. `rows`: as many cells as the header has, with the row's number.
    """

    header: Sequence[str]
    fields: Sequence[str]
    rows: Sequence[Record]


class TableReader:
    """One per process."""

    def __init__(self, uploads: Uploads) -> None:
        self._uploads = uploads
        self._tables: OrderedDict[tuple[str, TableRef], RecipientTable] = OrderedDict()
        self._reading = asyncio.Semaphore(2)

    async def read(self, tenant: str, table: TableRef, path: str = "id") -> RecipientTable:
        """Return the table. `path`: where its file is named. Raises Invalid FILE_NOT_FOUND, TableRefused."""
        (upload,) = await self._uploads.keep(tenant, [table.file])
        if upload is None:
            detail = f"There is no file {table.file}: it was never uploaded, was deleted or has expired."
            raise Invalid("FILE_NOT_FOUND", detail, path)
        if (tenant, table) not in self._tables:
            async with self._reading:
                records = await self._records(tenant, table)
            self._tables[tenant, table] = _table(records)
            if len(self._tables) > _KEPT:
                self._tables.popitem(last=False)
        self._tables.move_to_end((tenant, table))
        return self._tables[tenant, table]

    async def _records(self, tenant: str, table: TableRef) -> Sequence[Record]:
        with tempfile.TemporaryDirectory(prefix="ada-table-") as folder:
            path = Path(folder) / "table.xlsx"
            with path.open("w+b") as file:
                await self._uploads.load(tenant, table.file, file)
                file.seek(0)
                if not file.read(len(_WORKBOOK)).startswith(_WORKBOOK):
                    file.seek(0)
                    return await asyncio.to_thread(_csv_records, file, table.encoding)
            sheet = await read_sheet(path, table.sheet)
        if sheet.errors:
            raise TableRefused(sheet.errors[:MOST_ERRORS], len(sheet.errors))
        return [(number, [with_plain_spaces(nfc(cell)).strip() for cell in cells]) for number, cells in sheet.rows]


def _csv_records(file: IO[bytes], encoding: str) -> list[Record]:
    try:
        with decoded(file, encoding) as text:
            return list(islice(read_records(text, COLUMNS[FileKind.USERS]), MOST_ROWS + 2))
    except ImportRefused as refused:
        raise TableRefused(refused.errors, refused.count) from None


def _table(records: Sequence[Record]) -> RecipientTable:
    """Return the table whose header is the first row. Raises TableRefused."""
    if not records:
        raise TableRefused([RowError(1, "", "CSV_EMPTY", "The table is empty: its first row must name the columns.")])
    (number, header), rows = records[0], records[1:]
    while header and not header[-1]:
        header = header[:-1]
    if errors := list(_errors(number, header, rows)):
        raise TableRefused(errors[:MOST_ERRORS], len(errors))
    width = len(header)
    filled = [(row, [*cells[:width], *[""] * (width - len(cells))]) for row, cells in rows]
    return RecipientTable(header, [field_name(one) for one in header], filled)


def _errors(number: int, header: Sequence[str], rows: Sequence[Record]) -> Iterator[RowError]:
    if len(header) > MOST_COLUMNS:
        yield RowError(number, "", "TOO_MANY_COLUMNS", f"A table has at most {MOST_COLUMNS} columns.")
    if not rows:
        yield RowError(number, "", "TABLE_EMPTY", "The table has no row below the names of its columns.")
    if len(rows) > MOST_ROWS:
        yield RowError(rows[MOST_ROWS][0], "", "TOO_MANY_ROWS", f"A table has at most {MOST_ROWS} rows.")
    for name, count in Counter(map(field_name, header)).items():
        if name and count > 1:
            yield RowError(number, name, "COLUMN_REPEATED", f"The column {name!r} occurs {count} times.")
    for row, cells in rows[:MOST_ROWS]:
        yield from _cell_errors(row, cells, header)


def _cell_errors(row: int, cells: Sequence[str], header: Sequence[str]) -> Iterator[RowError]:
    for place, (cell, name) in enumerate(zip_longest(cells, header, fillvalue=""), 1):
        if cell and not name:
            message = f"Column {place} has the text {cell[:64]!r} here, but no name in the header."
            yield RowError(row, "", "COLUMN_WITHOUT_NAME", message)
        elif len(cell) > LONGEST_CELL:
            message = f"The cell has {len(cell)} characters; at most {LONGEST_CELL} are allowed."
            yield RowError(row, name, "CELL_TOO_LONG", message)
