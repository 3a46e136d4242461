"""Tables of recipients: an uploaded CSV or .xlsx file whose rows are the recipients of a delivery (D-45).

Nobody is stored: a row has its contacts, or names a person of the directory, and its cells are the values of a
personal text. A row with addresses is a recipient with these contacts. For a signed-in person, who writes only to
people of the directory, it is the person with these addresses. A row with an id alone, or with a name alone, is that
person. Every row that was not understood, or contradicts itself, is reported. The last tables are kept in memory, so
that a preview reads a file once.
"""

import asyncio
import tempfile
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, zip_longest
from pathlib import Path
from typing import IO, NamedTuple

from msgspec import Struct

from core.admission.quotas import ADMIN
from core.directory import Directory
from core.directory.csv_cells import CONTACTS, FileKind, ImportRefused, RowError, TableRefused, listed
from core.directory.importing.csv_rows import Record, decoded, read_records
from core.directory.importing.kinds import COLUMNS, NAME_PARTS, parse_id
from core.directory.importing.reader import RowReader, in_pages
from core.errors import Invalid
from core.model.contacts.addresses import EMAIL_ADDRESS, canonical, channel_of_form, without_duplicates
from core.model.history_key import Id
from core.model.people import User, fault_of_address, faults_of_id, faults_of_name, name_words
from core.model.text.characters import nfc, with_plain_spaces
from core.model.text.personal import field_name
from core.orders.order import Addressee, AnyAddressee, Caller, Placed, TableRef
from core.orders.workbook import read_sheet
from core.redis.store import Store
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


EMAIL = "email"
"""The column of mail addresses."""
_NAMING = ("id", "name", *NAME_PARTS, EMAIL)
_SAME_NAME = 50
"""Most people of one name that are compared."""


def meanings(table: RecipientTable) -> Sequence[str | None]:
    """Return, for each column, how it names the recipient of a row: id, name, a part of a name, email, contacts.sms, …;
    None if it is a value alone.
    """
    columns = COLUMNS[FileKind.USERS].columns(table.header)
    return [one if one and (one in _NAMING or one.startswith(CONTACTS)) else None for one in columns]


class _Row(NamedTuple):
    """A row. `contacts`: channel → addresses; `written`: `<channel>:<address>`, canonical → the cell; `other_cells`:
    those that are no addresses.
    """

    number: int
    id: Id | None
    name: str
    contacts: Mapping[str, Sequence[str]]
    written: Mapping[str, str]
    values: Mapping[str, str]
    other_cells: Sequence[str]

    def error(self, column: str, code: str, message: str, value: str = "") -> RowError:
        return RowError(self.number, column, code, message, value)


class RowAddressees:
    """Replaces the tables among addressees by their rows."""

    def __init__(self, store: Store, directory: Directory, reader: TableReader) -> None:
        self._store = store
        self._directory = directory
        self._reader = reader

    async def expanded(self, addressees: Sequence[AnyAddressee], caller: Caller) -> Placed:
        """Return the addressees with the rows of each table in its place. Raises Invalid FILE_NOT_FOUND, TableRefused
        with all errors.
        """
        found: list[tuple[str, AnyAddressee]] = []
        for number, one in enumerate(addressees):
            place = f"recipients.{number}"
            if isinstance(one, Addressee) and one.table:
                ref = TableRef(one.table, one.sheet or "", one.encoding or "")
                found += await self._of_table(ref, caller, place)
            else:
                found.append((place, one))
        return found

    async def _of_table(self, ref: TableRef, caller: Caller, place: str) -> Placed:
        table = await self._reader.read(caller.tenant, ref, f"{place}.table")
        errors: list[RowError] = []
        columns = meanings(table)
        rows = [_row(table, number, cells, columns, errors) for number, cells in table.rows]
        wrong = {error.row for error in errors}
        owns = await self._directory.users.own_ids(caller.tenant, [row.id for row in rows if row.id is not None])
        rows = [row._replace(id=owns.get(str(row.id), row.id)) for row in rows if row.number not in wrong]
        is_limited = caller.person is not None and caller.person.role != ADMIN
        named = await self._people(caller.tenant, rows, errors, by_address=is_limited)
        if errors:
            errors.sort(key=lambda error: error.row)
            raise TableRefused(errors[:MOST_ERRORS], len(errors))
        return _addressees(rows, named, place)

    async def _people(
        self, tenant: str, rows: Sequence[_Row], errors: list[RowError], *, by_address: bool
    ) -> Mapping[int, Id]:
        """Return row → the person of the directory that it means, for the rows that mean one."""
        found: dict[int, Id] = {}
        by_id = [row for row in rows if row.id is not None and not row.contacts]
        for page in in_pages(by_id):
            users = await self._directory.users.lookup(tenant, [row.id for row in page if row.id is not None])
            for row, user in zip(page, users, strict=True):
                _found(row, [user] if user else [], str(row.id), found, errors)
        if by_address:
            await self._by_address(tenant, [row for row in rows if row.contacts], found, errors)
        for page in in_pages(row for row in rows if row.name and row.id is None and not row.contacts):
            people = await asyncio.gather(*(self._of_name(tenant, row.name) for row in page))
            for row, some in zip(page, people, strict=True):
                _found(row, some, row.name, found, errors)
        return found

    async def _by_address(
        self, tenant: str, rows: Sequence[_Row], found: dict[int, Id], errors: list[RowError]
    ) -> None:
        reader = RowReader(self._store, self._directory, tenant, None)
        wanted = list(dict.fromkeys(address for row in rows for address in row.written))
        mails = f"{channel_of_form(EMAIL_ADDRESS)}:"
        emails = [one for one in wanted if one.startswith(mails)]
        owners: dict[str, set[str]] = {one: set() for one in wanted}
        of_contacts = await reader.owners_of_contacts(wanted)
        of_emails = await reader.owners_of_emails([one.removeprefix(mails) for one in emails])
        for address, owner in zip([*wanted, *emails], [*of_contacts, *of_emails], strict=True):
            owners[address] |= {owner} if owner is not None else set()
        for row in rows:
            ids = sorted({owner for address in row.written for owner in owners[address]})
            shown = ", ".join(dict.fromkeys(row.written.values()))
            _found(row, [User(one) for one in ids], shown, found, errors)

    async def _of_name(self, tenant: str, name: str) -> Sequence[User]:
        page = await self._directory.users.page(tenant, name=name, limit=_SAME_NAME)
        words = set(name_words(name))
        return [user for user in page.items if set(name_words(user.name)) == words]


def _found(row: _Row, people: Sequence[User], cell: str, found: dict[int, Id], errors: list[RowError]) -> None:
    """Note the person of a row, or why there is not one."""
    if len(people) == 1:
        if other := _contradiction(row, people[0]):
            message = f"{cell!r} is {other}. Correct the row: perhaps its columns were sorted apart."
            errors.append(row.error("", "PERSON_CONTRADICTED", message, cell))
        found[row.number] = people[0].id
    elif people:
        ids = ", ".join(str(user.id) for user in people)
        message = f"{cell!r} may mean several people: {ids}. Add a column id that says who is meant."
        errors.append(row.error("", "PERSON_AMBIGUOUS", message, cell))
    else:
        errors.append(row.error("", "USER_NOT_FOUND", f"{cell!r}: the directory has no such person.", cell))


def _contradiction(row: _Row, user: User) -> str:
    """Return how the person that a row means differs from the id or the name that the row also has: another one would
    get what belongs to it. A name that shares a word is the same.
    """
    if row.id is not None and str(row.id) != str(user.id):
        return f"the person {user.id}, but the row has the id {row.id}"
    words = set(name_words(user.name))
    if row.id is not None and row.name and words and words.isdisjoint(name_words(row.name)):
        return f"{user.name!r}, but the row has the name {row.name!r}"
    return ""


def _addressees(rows: Sequence[_Row], named: Mapping[int, Id], place: str) -> Placed:
    """Return one addressee for each row. A row without an id is known by its address, as on the command line; another
    one with the same address and other values is another message.
    """
    addressees: list[tuple[str, AnyAddressee]] = []
    by_made_id: dict[str, _Row] = {}
    for row in rows:
        where = f"{place}.table.{row.number}"
        if row.number in named:
            addressees.append((where, Addressee(named[row.number], row.name or None, values=dict(row.values))))
            continue
        known, values = row.id, row.values
        if known is None:
            known = next(iter(row.written))
            first = by_made_id.setdefault(known, row)
            if first.other_cells != row.other_cells:
                known = f"{known} ({row.number})"
            else:
                values = first.values
        contacts: dict[str, str | list[str]] = {channel: list(some) for channel, some in row.contacts.items()}
        addressees.append((where, Addressee(known, row.name or None, contacts=contacts, values=dict(values))))
    return addressees


# rows


def _row(
    table: RecipientTable,
    number: int,
    cells: Sequence[str],
    columns: Sequence[str | None],
    errors: list[RowError],
) -> _Row:
    contacts: dict[str, list[str]] = {}
    written: dict[str, str] = {}
    own: dict[str, str] = {}
    other_cells: list[str] = []
    for header, column, cell in zip(table.header, columns, cells, strict=True):
        if column != EMAIL and not (column or "").startswith(CONTACTS):
            other_cells.append(cell)
            own |= {column: cell} if column and cell else {}
            continue
        channel = channel_of_form(EMAIL_ADDRESS) if column == EMAIL else (column or "").removeprefix(CONTACTS)
        for address in listed(cell):
            if fault := fault_of_address(channel, address):
                errors.append(RowError(number, header, fault.code, f"{address!r}: {fault.detail}", address))
            else:
                contacts.setdefault(channel, []).append(address)
                written[f"{channel}:{canonical(channel, address)}"] = cell
    row = _Row(
        number,
        parse_id(own["id"]) if "id" in own else None,
        own.get("name") or " ".join(own[part] for part in columns if part in NAME_PARTS and part in own),
        {channel: without_duplicates(channel, some) for channel, some in contacts.items()},
        written,
        {field: cell for field, cell in zip(table.fields, cells, strict=True) if cell and field},
        other_cells,
    )
    if not errors or errors[-1].row != number:
        errors += _faults(row)
    return row


def _faults(row: _Row) -> Sequence[RowError]:
    faults = [*(faults_of_id(row.id) if row.id is not None else ()), *faults_of_name(row.name or None, "name")]
    if row.id is None and not row.contacts and not row.name:
        message = "The row says neither by an id, an address nor a name who is meant."
        return [row.error("", "PERSON_UNIDENTIFIED", message)]
    return [row.error(fault.path, fault.code, fault.detail) for fault in faults]
