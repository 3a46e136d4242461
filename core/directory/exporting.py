"""The directory as rows of CSV files, which the import reads again. Read in pages; other requests have their turn.

What is written while an export runs may be in it or not. An export holds nothing back from other writers.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import TypeVar

from core.directory.csv_cells import CONTACTS, FIELDS, Cells, FileKind, group_cells, supergroup_cells, user_cells
from core.directory.directory import Directory
from core.directory.records import PAGE, DirectoryPage
from core.errors import NotFound
from core.model.people import User

T = TypeVar("T")
Rows = Sequence[Sequence[str]]
Exporter = Callable[["Exporting", str], AsyncIterator[Rows]]


class Exporting:
    """Exports the directory of any tenant."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory

    def pages(self, tenant: str, kind: FileKind) -> AsyncIterator[Rows]:
        """Yield rows of cells, a page at a time; the first row is the header. Raises StoreError; KeyError for contacts,
        which are exported with their people.
        """
        return _EXPORTERS[kind](self, tenant)

    async def _users(self, tenant: str) -> AsyncIterator[Rows]:
        columns = ("name", "email", "role", "locale", "opt_out", *await self._families(tenant))
        yield [("id", *columns)]
        async for users in self._all_users(tenant):
            yield [_row(user.id, user_cells(user), columns) for user in users]

    async def _families(self, tenant: str) -> list[str]:
        """Return the columns that only some people have: they must be known before the first row."""
        found: set[str] = set()
        async for users in self._all_users(tenant):
            found |= {f"{CONTACTS}{channel}" for user in users for channel in user.contacts}
            found |= {f"{FIELDS}{name}" for user in users for name in user.fields}
            found |= {"external_ids" for user in users if user.external_ids}
            found |= {"guardians" for user in users if user.guardians}
            found |= {"blocked_guardians" for user in users if user.blocked_guardians}
            found |= {"blocked" for user in users if user.blocked}
        return sorted(found)

    async def _groups(self, tenant: str) -> AsyncIterator[Rows]:
        yield [("id", "title", "virtual")]
        async for groups in _all(lambda cursor: self._directory.groups.page(tenant, cursor=cursor, limit=PAGE)):
            yield [_row(group.id, group_cells(group), ("title", "virtual")) for group in groups]

    async def _supergroups(self, tenant: str) -> AsyncIterator[Rows]:
        yield [("id", "title", "groups")]
        async for found in _all(lambda cursor: self._directory.supergroups.page(tenant, cursor=cursor, limit=PAGE)):
            yield [_row(one.id, supergroup_cells(one, one.groups), ("title", "groups")) for one in found]

    async def _members(self, tenant: str) -> AsyncIterator[Rows]:
        yield [("group", "user")]
        async for groups in _all(lambda cursor: self._directory.groups.page(tenant, cursor=cursor, limit=PAGE)):
            for group in groups:
                async for rows in self._members_of(tenant, str(group.id)):
                    yield rows

    async def _members_of(self, tenant: str, group: str) -> AsyncIterator[Rows]:
        with suppress(NotFound):  # the group was deleted meanwhile
            async for users in _all(lambda at: self._directory.groups.members(tenant, group, cursor=at, limit=PAGE)):
                yield [(group, str(user.id)) for user in users]

    async def _ownerships(self, tenant: str) -> AsyncIterator[Rows]:
        yield [("user", "kind", "id")]
        async for users in self._all_users(tenant):
            owned = await asyncio.gather(*(self._owned(tenant, user) for user in users))
            yield [row for rows in owned for row in rows]

    async def _owned(self, tenant: str, user: User) -> Rows:
        with suppress(NotFound):  # the person was deleted meanwhile
            found = await self._directory.ownerships.of(tenant, user.id)
            return [(str(one.user), one.kind, str(one.id)) for one in found]
        return []

    def _all_users(self, tenant: str) -> AsyncIterator[Sequence[User]]:
        return _all(lambda cursor: self._directory.users.page(tenant, cursor=cursor, limit=PAGE))


_EXPORTERS: Mapping[FileKind, Exporter] = {
    FileKind.USERS: Exporting._users,
    FileKind.GROUPS: Exporting._groups,
    FileKind.MEMBERS: Exporting._members,
    FileKind.SUPERGROUPS: Exporting._supergroups,
    FileKind.OWNERSHIPS: Exporting._ownerships,
}
EXPORTED: Collection[FileKind] = tuple(_EXPORTERS)


def _row(given: int | str, cells: Cells, columns: Sequence[str]) -> Sequence[str]:
    return (str(given), *(cells.get(column, "") for column in columns))


async def _all(read: Callable[[str | None], Awaitable[DirectoryPage[T]]]) -> AsyncIterator[Sequence[T]]:
    """Emit the items of every page."""
    cursor: str | None = None
    while True:
        page = await read(cursor)
        yield page.items
        cursor = page.next
        if cursor is None:
            return
