"""Checks the rows of people and of contacts against the directory, and finds the person of each row.

The person of a row without an id is the one with its addresses, or a new one (docs/decisions/0098). A new person gets
an id that is made from the address, so it is the same whenever the same row is imported.
"""

from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from hashlib import sha256
from itertools import chain

from msgspec.structs import replace

from core.directory.csv_cells import CONTACTS, RowError, joined, listed, user_cells
from core.directory.importing.csv_rows import CsvRow
from core.directory.importing.kinds import GUARDIANS, as_row_errors, contact_cells, field_cells, parse_id, user_fields
from core.directory.importing.reader import CheckedPage, RowReader, in_pages
from core.directory.importing.relations import Memberships, member_steps
from core.directory.records import encode_record
from core.errors import Invalid
from core.model.contacts.addresses import EMAIL_ADDRESS, canonical, channel_of_form
from core.model.own_fields import typed_fields
from core.model.people import (
    MAX_ADDRESSES,
    User,
    canonical_user,
    faults_of_contacts,
    faults_of_user,
    id_text,
    too_many_addresses,
)

_DIGITS = 12
"""Of a made id, hexadecimal: among 250,000 people two get the same one once in 9,000 imports, and that is an error."""

Owners = Mapping[str, Collection[str]]
"""Address → ids of the people that have it."""
Candidate = tuple[CsvRow, User | None, User]
"""A row, the person as it is stored, and as it will be."""
_BLANK = user_cells(User(0))


def addresses_of(row: CsvRow) -> dict[str, str]:
    """Return the addresses of a row, as `<channel>:<address>` in their canonical form, with their columns."""
    cells = [("email", channel_of_form(EMAIL_ADDRESS), [row.cells.get("email", "")])]
    cells += [(f"{CONTACTS}{channel}", channel, some) for channel, some in contact_cells(row).items()]
    return {
        f"{channel}:{canonical(channel, address)}": column
        for column, channel, some in cells
        for address in some
        if address
    }


def made_id(addresses: Collection[str]) -> str:
    """Return the id of a new person: the first address decides, by the alphabet, in whatever order the columns are."""
    return f"p-{sha256(min(addresses).encode()).hexdigest()[:_DIGITS]}"


class Identities:
    """Gives every row of a file an id. Two rows may not be about the same person."""

    def __init__(self, reader: RowReader) -> None:
        self._reader = reader
        self._rows: dict[str, int] = {}

    async def resolve(self, rows: Sequence[CsvRow], page: CheckedPage) -> list[CsvRow]:
        """Return the rows with their ids; a row whose person is not clear is an error of the page."""
        nameless = [row for row in rows if not row.cells.get("id")]
        owners = await self._owners({one for row in nameless for one in addresses_of(row)})
        taken = await self._taken(nameless, owners)
        found: list[CsvRow] = []
        for row in rows:
            named = row if row.cells.get("id") else _identified(row, owners, taken)
            if isinstance(named, CsvRow) and (repeated := self._repeated(named)):
                named = repeated
            if isinstance(named, RowError):
                page.errors.append(named)
            else:
                found.append(named)
        return found

    async def _owners(self, addresses: Collection[str]) -> Owners:
        """Return the persons by address. An e-mail address may be the person's own, or a contact."""
        wanted = list(addresses)
        emails = [one for one in wanted if one.startswith("email:")]
        found: dict[str, set[str]] = {one: set() for one in wanted}
        of_contacts = await self._reader.owners_of_contacts(wanted)
        of_emails = await self._reader.owners_of_emails([one.removeprefix("email:") for one in emails])
        for address, owner in zip([*wanted, *emails], [*of_contacts, *of_emails], strict=True):
            found[address] |= {owner} if owner is not None else set()
        return found

    async def _taken(self, rows: Sequence[CsvRow], owners: Owners) -> set[str]:
        """Return those of the made ids that are people."""
        new = [addresses_of(row) for row in rows]
        made = {made_id(some) for some in new if not any(owners[one] for one in some)}
        return await self._reader.known_users(made)

    def _repeated(self, row: CsvRow) -> RowError | None:
        number = self._rows.setdefault(row.cells["id"], row.number)
        if number == row.number:
            return None
        return row.error("id", "DUPLICATE_ROW", f"Row {number} is the same person, {row.cells['id']}.")


def _identified(row: CsvRow, owners: Owners, taken: Collection[str]) -> CsvRow | RowError:
    """Return the row with the id of the person that has its addresses, or with a new id."""
    addresses = addresses_of(row)
    found = sorted({owner for address in addresses for owner in owners[address]})
    if len(found) > 1:
        message = f"Its addresses belong to several people: {', '.join(found)}. Add a column id that says who is meant."
        return row.error("id", "PERSON_AMBIGUOUS", message)
    made = made_id(addresses)
    if not found and made in taken:
        message = f"{made} was imported with this address and has others now. Add a column id that says who is meant."
        return row.error("id", "PERSON_AMBIGUOUS", message)
    return replace(row, cells={**row.cells, "id": found[0] if found else made})


class Claims:
    """The person of each unique value in this file: e-mail addresses, contacts, or external ids."""

    def __init__(self, column: str, code: str) -> None:
        self._column = column
        self._code = code
        self._rows: dict[str, tuple[str, int]] = {}

    def take(self, value: str, user: str, row: CsvRow, page: CheckedPage, column: str = "") -> None:
        """Note that the row gives the value to this person. An error if another row gave it to another one."""
        other, number = self._rows.setdefault(value, (user, row.number))
        if other != user:
            message = f"Row {number} gives it to another person."
            page.errors.append(row.error(column or self._column, self._code, message))

    def refuse(self, row: CsvRow, owner: str, page: CheckedPage, column: str = "") -> None:
        """Add the error for a value that another person of the directory has."""
        page.errors.append(row.error(column or self._column, self._code, f"The person {owner} has it already."))


class Claimed:
    """The unique values that the rows of a file give to people."""

    def __init__(self) -> None:
        self.emails = Claims("email", "EMAIL_TAKEN")
        self.contacts = Claims("address", "CONTACT_TAKEN")
        self.external_ids = Claims("external_ids", "EXTERNAL_ID_TAKEN")


# people


async def check_users(reader: RowReader, rows: Sequence[CsvRow]) -> AsyncIterator[CheckedPage]:
    """Yield checked pages: each row creates a person or changes the fields that the file has."""
    claimed, memberships, identities = Claimed(), Memberships(reader), Identities(reader)
    guardians = await _known_guardians(reader, rows)
    for in_file in in_pages(rows):
        page = CheckedPage(len(in_file))
        some = await identities.resolve(in_file, page)
        found = await reader.users([row.cells["id"] for row in some])
        candidates = [
            candidate for row, old in zip(some, found, strict=True) if (candidate := _candidate(row, old, reader, page))
        ]
        await _check_emails(reader, candidates, claimed.emails, page)
        await _check_contacts(reader, candidates, claimed.contacts, page)
        await _check_external_ids(reader, candidates, claimed.external_ids, page)
        _check_guardians(candidates, guardians, page)
        joining = await memberships.add(_membership_rows(candidates), page)
        groups = defaultdict[int, list[str]](list)
        for one in joining:
            groups[one.number].append(one.cells["group"])
        for row, old, new in candidates:
            page.not_mailed += _is_not_mailed(reader, new, channel_of_form(EMAIL_ADDRESS))
            after = {**user_cells(new), "groups": joined(groups[row.number])}
            if page.note(row, id_text(new.id), user_cells(old) if old else None, after, blank=_BLANK):
                page.steps.append(("user", id_text(new.id), encode_record(new)))
        page.steps += member_steps(joining)
        yield page


async def _known_guardians(reader: RowReader, rows: Sequence[CsvRow]) -> set[str]:
    """Return the guardians named by the rows that the directory has, or the file by their id."""
    named = {id_text(one) for row in rows for column in GUARDIANS for one in listed(row.cells.get(column, ""))}
    in_file = {id_text(row.cells["id"]) for row in rows if row.cells.get("id")}
    return in_file | await reader.known_users(named - in_file)


def _check_guardians(candidates: Sequence[Candidate], known: Collection[str], page: CheckedPage) -> None:
    for row, _, new in candidates:
        for column, guardians in (("guardians", new.guardians), ("blocked_guardians", new.blocked_guardians)):
            unknown = [one for one in guardians if column in row.cells and one not in known]
            page.errors += [row.error(column, "USER_NOT_FOUND", f"There is no person {one!r}.") for one in unknown]


def _membership_rows(candidates: Sequence[Candidate]) -> list[CsvRow]:
    """Return a row with the columns group and user for each group that the rows name."""
    return [
        CsvRow(row.number, {"group": group, "user": id_text(new.id)}, {"group": row.written["groups"]})
        for row, _, new in candidates
        for group in dict.fromkeys(listed(row.cells.get("groups", "")))
    ]


def _candidate(row: CsvRow, old: User | None, reader: RowReader, page: CheckedPage) -> Candidate | None:
    """Return the person that the row makes; None, with errors in the page, if it is not valid."""
    base, fields, given = old or User(parse_id(row.cells["id"])), user_fields(row), contact_cells(row)
    contacts = {channel: some for channel, some in {**base.contacts, **given}.items() if some}
    own, faults = typed_fields(reader.own_fields, field_cells(row))
    new = replace(base, **fields, contacts=contacts, fields={**base.fields, **own})
    mails = channel_of_form(EMAIL_ADDRESS)
    if reader.mails_to_sign_in and new.email and _is_not_mailed(reader, new, mails):
        given = {**given, mails: [new.email]}
        new = replace(new, contacts={**contacts, mails: [new.email]})
    written = {channel: some for channel, some in given.items() if some}
    errors = list(
        as_row_errors(
            row,
            chain(
                faults_of_user(User(base.id, **fields, contacts=written, fields=own), _channels(reader, base)), faults
            ),
        )
    )
    page.errors += errors
    return None if errors else (row, old, canonical_user(new))


def _is_not_mailed(reader: RowReader, user: User, mails: str) -> bool:
    """Return whether a person has an address to sign in, and none for messages, although there is a channel of mails
    in which it wants them.
    """
    is_offered = reader.channels is not None and mails in reader.channels
    return is_offered and bool(user.email) and mails not in user.contacts and mails not in user.opt_out


def _channels(reader: RowReader, user: User) -> Collection[str] | None:
    """Return the known channels, and those that the person has already: an exported file imports again also when a
    channel has gone.
    """
    return None if reader.channels is None else {*reader.channels, *user.contacts, *user.opt_out}


async def _check_emails(reader: RowReader, candidates: Sequence[Candidate], claims: Claims, page: CheckedPage) -> None:
    mailed = [(row, id_text(new.id), new.email) for row, _, new in candidates if new.email]
    owners = await reader.owners_of_emails([email for _, _, email in mailed])
    for (row, user, email), owner in zip(mailed, owners, strict=True):
        claims.take(email, user, row, page)
        if owner not in (None, user):
            claims.refuse(row, str(owner), page)


async def _check_contacts(
    reader: RowReader, candidates: Sequence[Candidate], claims: Claims, page: CheckedPage
) -> None:
    given = [
        (row, id_text(new.id), f"{channel}:{address}", f"contacts.{channel}")
        for row, _, new in candidates
        for channel, addresses in new.contacts.items()
        for address in addresses
    ]
    owners = await reader.owners_of_contacts([contact for _, _, contact, _ in given])
    for (row, user, contact, column), owner in zip(given, owners, strict=True):
        claims.take(contact, user, row, page, column)
        if owner not in (None, user):
            claims.refuse(row, str(owner), page, column)


async def _check_external_ids(
    reader: RowReader, candidates: Sequence[Candidate], claims: Claims, page: CheckedPage
) -> None:
    given = [(row, id_text(new.id), one) for row, _, new in candidates for one in new.external_ids]
    owners = await reader.owners_of_external_ids([one for _, _, one in given])
    for (row, user, one), owner in zip(given, owners, strict=True):
        claims.take(one, user, row, page)
        if owner not in (None, user):
            claims.refuse(row, str(owner), page)


# contacts


async def check_contacts(reader: RowReader, rows: Sequence[CsvRow]) -> AsyncIterator[CheckedPage]:
    """Yield checked pages: each row adds one contact to a person."""
    by_user: defaultdict[str, list[CsvRow]] = defaultdict(list)
    for row in rows:
        by_user[row.cells["user"]].append(row)
    claims = Claimed().contacts
    for ids in in_pages(by_user):
        some = {one: by_user[one] for one in ids}
        page = CheckedPage(sum(map(len, some.values())))
        await _check_owners(reader, some, claims, page)
        for user_id, user in zip(ids, await reader.users(ids), strict=True):
            _add_contacts(some[user_id], user, reader, page)
        yield page


async def _check_owners(
    reader: RowReader, rows: Mapping[str, Sequence[CsvRow]], claims: Claims, page: CheckedPage
) -> None:
    """Check that no other person, in the directory or in the file, has any of these contacts."""
    given = [(user, row, _contact(row)) for user, some in rows.items() for row in some]
    owners = await reader.owners_of_contacts([contact for _, _, contact in given])
    for (user, row, contact), owner in zip(given, owners, strict=True):
        claims.take(contact, user, row, page)
        if owner not in (None, user):
            claims.refuse(row, str(owner), page)


def _contact(row: CsvRow) -> str:
    channel = row.cells["channel"]
    return f"{channel}:{canonical(channel, row.cells['address'])}"


def _add_contacts(rows: Sequence[CsvRow], user: User | None, reader: RowReader, page: CheckedPage) -> None:
    if user is None:
        page.errors += [row.error("user", "USER_NOT_FOUND", "There is no person with this id.") for row in rows]
        return
    contacts = {channel: list(addresses) for channel, addresses in user.contacts.items()}
    for row in rows:
        channel, address = row.cells["channel"], canonical(row.cells["channel"], row.cells["address"])
        known = contacts.setdefault(channel, [])
        before = {f"{CONTACTS}{channel}": joined(known)}
        if address not in known:
            known.append(address)
            page.errors += [_contact_error(row, fault) for fault in _faults_of_last(channel, known, reader)]
        page.note(row, id_text(user.id), before, {f"{CONTACTS}{channel}": joined(known)}, relates=True)
    new = canonical_user(replace(user, contacts=contacts))
    if user_cells(user) != user_cells(new):
        page.steps.append(("user", id_text(user.id), encode_record(new)))


def _faults_of_last(channel: str, addresses: Sequence[str], reader: RowReader) -> list[Invalid]:
    """Return the faults that the last of these addresses brings; those of another row are errors of that row."""
    return [
        *faults_of_contacts({channel: [addresses[-1]]}, reader.channels),
        *([too_many_addresses("")] if len(addresses) > MAX_ADDRESSES else []),
    ]


def _contact_error(row: CsvRow, fault: Invalid) -> RowError:
    column = "channel" if fault.code == "UNKNOWN_CHANNEL" else "address"
    return row.error(column, fault.code, fault.detail)
