"""Reads the directory for the checks of an import, in pages; the result of checking a page of rows."""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeVar

from msgspec import Struct

from core.directory.csv_cells import Cells, RowError
from core.directory.directory import Directory
from core.directory.importing.csv_rows import CsvRow
from core.directory.importing.journal import Step
from core.directory.records import all_ids
from core.model.history_key import Id
from core.model.own_fields import NO_TYPES, OwnFieldsByName
from core.model.people import Group, Supergroup, User
from core.redis.store import Store

PAGE = 100
"""Rows that are checked before other requests of the process get their turn: about 5 ms."""

T = TypeVar("T")


def in_pages(items: Iterable[T]) -> Iterable[list[T]]:
    """Return the items in lists of at most `PAGE`."""
    rest = iter(items)
    while page := list(islice(rest, PAGE)):
        yield page


class RowReader:
    """Reads the directory of one tenant. Ids are given as text. `channels`: the known ones, None if all are allowed.
    `own_fields`: those that have a type. `mails_to_sign_in`: who has no contact of e-mail gets messages at the address
    with which it signs in.
    """

    def __init__(
        self,
        store: Store,
        directory: Directory,
        tenant: str,
        channels: Collection[str] | None,
        own_fields: OwnFieldsByName = NO_TYPES,
        *,
        mails_to_sign_in: bool = False,
    ) -> None:
        self.channels = channels
        self.own_fields = own_fields
        self.mails_to_sign_in = mails_to_sign_in
        self._store = store
        self._directory = directory
        self._tenant = tenant

    async def users(self, ids: Sequence[Id]) -> list[User | None]:
        return await self._directory.users.lookup(self._tenant, ids)

    async def groups(self, ids: Sequence[Id]) -> list[Group | None]:
        return await self._directory.groups.lookup(self._tenant, ids)

    async def supergroups(self, ids: Sequence[Id]) -> list[Supergroup | None]:
        return await self._directory.supergroups.lookup(self._tenant, ids)

    async def known_groups(self, ids: Iterable[str]) -> set[str]:
        return await _known(self.groups, ids)

    async def known_supergroups(self, ids: Iterable[str]) -> set[str]:
        return await _known(self.supergroups, ids)

    async def known_users(self, ids: Iterable[str]) -> set[str]:
        """Return those of the ids that are people."""
        return await _known(self.users, ids)

    async def owners_of_emails(self, emails: Sequence[str]) -> list[str | None]:
        """Return the id of the person with each e-mail address."""
        return await self._fields("emails", emails)

    async def owners_of_contacts(self, contacts: Sequence[str]) -> list[str | None]:
        """Return the id of the person with each contact, `<channel>:<address>`."""
        return await self._fields("contacts", contacts)

    async def owners_of_external_ids(self, external_ids: Sequence[str]) -> list[str | None]:
        """Return the id of the person with each external id."""
        return await self._fields("external_ids", external_ids)

    async def _fields(self, index: str, fields: Sequence[str]) -> list[str | None]:
        key = self._store.tenant_key(index, self._tenant)
        found: list[str | None] = []
        for page in in_pages(fields):
            found += await self._store.command("HMGET", key, *page)
        return found

    async def related(self, key: str, *of: str) -> list[str]:
        """Return the ids in a sorted set of relations: `members` or `member_of` of a kind and id, `owned` of a person,
        `owners` of an object.
        """
        return await all_ids(self._store, self._store.tenant_key(key, self._tenant, *of))

    async def count(self, key: str, *of: str) -> int:
        """Return how many ids the sorted set has."""
        count: int = await self._store.command("ZCARD", self._store.tenant_key(key, self._tenant, *of))
        return count

    async def among(self, ids: Sequence[str], key: str, *of: str) -> set[str]:
        """Return those of the ids that are in the sorted set."""
        found: set[str] = set()
        for page in in_pages(ids):
            scores = await self._store.command("ZMSCORE", self._store.tenant_key(key, self._tenant, *of), *page)
            found |= {one for one, score in zip(page, scores, strict=True) if score is not None}
        return found


async def _known(lookup: Callable[[Sequence[Id]], Awaitable[Sequence[object]]], ids: Iterable[str]) -> set[str]:
    """Return those of the ids for which there is a record."""
    return {one for page in in_pages(ids) for one, found in zip(page, await lookup(page), strict=True) if found}


class FieldChange(Struct, frozen=True):
    """A field that a row changes, its values as cells; "" for none."""

    field: str
    old: str
    new: str


class RowChange(Struct, frozen=True):
    """The change that a row makes. `id`: of the person, group or supergroup; `created`: whether that is new."""

    row: int
    id: str
    created: bool
    fields: Sequence[FieldChange]


@dataclass(slots=True)
class CheckedPage:
    """The checked rows: what is to be written for them, or their errors. `rows`: how many were checked. `not_mailed`:
    the people with an address to sign in and none for messages.
    """

    rows: int = 0
    steps: list[Step] = field(default_factory=list)
    errors: list[RowError] = field(default_factory=list)
    changes: list[RowChange] = field(default_factory=list)
    created: int = 0
    updated: int = 0
    unchanged: int = 0
    not_mailed: int = 0

    def note(
        self,
        row: CsvRow,
        subject: str,
        old: Cells | None,
        new: Cells,
        *,
        blank: Cells | None = None,
        relates: bool = False,
    ) -> bool:
        """Count a valid row, and keep what it changes. Returns whether it changes anything. `old`: None of what is new,
        which is compared with `blank`. `relates`: the row is about a relation, so a change is a new relation.
        """
        fields = _changed((blank or {}) if old is None else old, new)
        if old is not None and not fields:
            self.unchanged += 1
            return False
        self.created += relates or old is None
        self.updated += not relates and old is not None
        self.changes.append(RowChange(row.number, subject, old is None, fields))
        return True


def _changed(old: Cells, new: Cells) -> list[FieldChange]:
    names = dict.fromkeys((*old, *new))
    return [
        FieldChange(name, old.get(name, ""), new.get(name, ""))
        for name in names
        if old.get(name, "") != new.get(name, "")
    ]


Check = Callable[[RowReader, Sequence[CsvRow]], AsyncIterator[CheckedPage]]
"""Checks the rows of a file against the directory, in pages."""
