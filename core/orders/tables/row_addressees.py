"""Makes addressees of the rows of a table: who each row means, and its cells as values of a personal text.

A row with addresses is a recipient with these contacts. For a signed-in person, who writes only to people of the
directory, it is the person with these addresses. A row with an id alone, or with a name alone, is that person.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from core.admission.quotas import ADMIN
from core.directory import Directory
from core.directory.csv_cells import CONTACTS, FileKind, listed
from core.directory.importing.errors import RowError, TableRefused
from core.directory.importing.kinds import COLUMNS, NAME_PARTS, parse_id
from core.directory.importing.reader import RowReader, in_pages
from core.model.contacts.addresses import EMAIL_ADDRESS, canonical, channel_of_form, without_duplicates
from core.model.delivery import Recipient
from core.model.history_key import Id
from core.model.people import User, faults_of_address, faults_of_id, faults_of_name, name_words
from core.orders.order import Addressee, AnyAddressee, Caller, Placed, TableRef
from core.orders.tables.table_reader import MOST_ERRORS, RecipientTable, TableReader
from core.redis.store import Store

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
        found[row.number] = people[0].id
    elif people:
        ids = ", ".join(str(user.id) for user in people)
        message = f"{cell!r} may mean several people: {ids}. Add a column id that says who is meant."
        errors.append(row.error("", "PERSON_AMBIGUOUS", message, cell))
    else:
        errors.append(row.error("", "USER_NOT_FOUND", f"{cell!r}: the directory has no such person.", cell))


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
        addressees.append((where, Recipient(known, row.name or None, row.contacts, values=values, place=where)))
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
            faults = list(faults_of_address(channel, address))
            errors += [
                RowError(number, header, fault.code, f"{address!r}: {fault.detail}", address) for fault in faults
            ]
            if not faults:
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
