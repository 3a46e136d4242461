"""Finds the person of each row that has no id: the person with their addresses, or a new one (decision 0098).

A new person gets an id that is made from the address, so it is the same whenever the same row is imported.
"""

from collections.abc import Collection, Mapping, Sequence
from hashlib import sha256

from msgspec.structs import replace

from core.directory.csv_cells import CONTACTS
from core.directory.importing.csv_rows import CsvRow
from core.directory.importing.errors import RowError
from core.directory.importing.kinds import contact_cells
from core.directory.importing.reader import CheckedPage, RowReader
from core.model.contacts.addresses import EMAIL_ADDRESS, canonical, channel_of_form

_DIGITS = 12
"""Of a made id, hexadecimal: among 250,000 people two get the same one once in 9,000 imports, and that is an error."""

Owners = Mapping[str, Collection[str]]
"""Address → ids of the people that have it."""


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
