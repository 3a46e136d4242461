"""What the checks of an import read of the directory, in pages."""

from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from typing import TypeVar

from core.directory.directory import Directory
from core.directory.paging import all_ids
from core.directory.records import SHARD
from core.model.history_key import Id
from core.model.people import Group, Supergroup, User
from core.redis.keys import KEYS
from core.redis.store import Store

PAGE = 100
"""Rows that are checked before other requests of the process get their turn: about 5 ms."""

T = TypeVar("T")


def in_pages(items: Iterable[T], size: int = PAGE) -> Iterable[list[T]]:
    """The items in lists of at most `size`."""
    rest = iter(items)
    while page := list(islice(rest, size)):
        yield page


class Reader:
    """Reads the directory of one tenant. Ids are given as text. `channels`: the known ones, None if all are allowed."""

    def __init__(self, store: Store, directory: Directory, tenant: str, channels: Collection[str] | None) -> None:
        self.channels = channels
        self._store = store
        self._directory = directory
        self._tenant = tenant

    async def users(self, ids: Sequence[Id]) -> list[User | None]:
        return await self._directory.lookup(self._tenant, ids)

    async def groups(self, ids: Sequence[Id]) -> list[Group | None]:
        return await self._directory.lookup_groups(self._tenant, ids)

    async def supergroups(self, ids: Sequence[Id]) -> list[Supergroup | None]:
        return await self._directory.lookup_supergroups(self._tenant, ids)

    async def known_groups(self, ids: Iterable[str]) -> set[str]:
        """Return those of the ids that are groups."""
        return {
            one for page in in_pages(ids) for one, found in zip(page, await self.groups(page), strict=True) if found
        }

    async def known_supergroups(self, ids: Iterable[str]) -> set[str]:
        """Return those of the ids that are supergroups."""
        pages = in_pages(ids)
        return {one for page in pages for one, found in zip(page, await self.supergroups(page), strict=True) if found}

    async def known_users(self, ids: Iterable[str]) -> set[str]:
        """Return those of the ids that are people."""
        return {one for page in in_pages(ids) for one, found in zip(page, await self.users(page), strict=True) if found}

    async def owners_of_emails(self, emails: Sequence[str]) -> list[str | None]:
        """Return the id of the person with each e-mail address."""
        return await self._fields("emails", emails)

    async def owners_of_contacts(self, contacts: Sequence[str]) -> list[str | None]:
        """Return the id of the person with each contact, `<channel>:<address>`."""
        return await self._fields("contacts", contacts)

    async def _fields(self, index: str, fields: Sequence[str]) -> list[str | None]:
        key = KEYS[index].at(SHARD, self._tenant)
        found: list[str | None] = []
        for page in in_pages(fields):
            found += await self._store.command("HMGET", key, *page)
        return found

    async def related(self, name: str, of: str) -> list[str]:
        """Return the ids in the sorted set `name` (members, memberships, parts, wholes, owned, owners) of an object."""
        return await all_ids(self._store, KEYS[name].at(SHARD, self._tenant, of))

    async def count(self, name: str, of: str) -> int:
        """Return how many ids the sorted set has."""
        count: int = await self._store.command("ZCARD", KEYS[name].at(SHARD, self._tenant, of))
        return count

    async def among(self, name: str, of: str, ids: Sequence[str]) -> set[str]:
        """Return those of the ids that are in the sorted set."""
        key = KEYS[name].at(SHARD, self._tenant, of)
        found: set[str] = set()
        for page in in_pages(ids):
            scores = await self._store.command("ZMSCORE", key, *page)
            found |= {one for one, score in zip(page, scores, strict=True) if score is not None}
        return found
