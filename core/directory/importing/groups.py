"""Checks the rows of groups and of their members against the directory."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterable, Sequence

from msgspec.structs import replace

from core.directory.csv_cells import group_cells
from core.directory.importing.csv_rows import CsvRow
from core.directory.importing.journal import Step
from core.directory.importing.kinds import as_row_errors, group_fields, parse_id
from core.directory.importing.reader import CheckedPage, RowReader, in_pages
from core.directory.records import encode_record
from core.model.people import Group, canonical_group, faults_of_group, id_text
from core.redis.constants import RELATIONS

_BLANK = group_cells(Group(0))


async def check_groups(reader: RowReader, rows: Sequence[CsvRow]) -> AsyncIterator[CheckedPage]:
    """Yield checked pages: each row creates a group or changes the fields that the file has."""
    for some in in_pages(rows):
        page = CheckedPage(len(some))
        found = await reader.groups([row.cells["id"] for row in some])
        for row, old in zip(some, found, strict=True):
            if old is None and await reader.count("members", "group", row.cells["id"]):
                page.errors.append(row.error("id", "GROUP_LEAVING", "This group is being deleted; delete it again."))
            _check_group(row, old, page)
        yield page


def _check_group(row: CsvRow, old: Group | None, page: CheckedPage) -> None:
    new = canonical_group(replace(old or Group(parse_id(row.cells["id"])), **group_fields(row)))
    page.errors += as_row_errors(row, faults_of_group(new))
    before = group_cells(old) if old else None
    if page.note(row, id_text(new.id), before, group_cells(new), blank=_BLANK):
        page.steps.append(("group", id_text(new.id), encode_record(new)))


# members


async def check_members(reader: RowReader, rows: Sequence[CsvRow]) -> AsyncIterator[CheckedPage]:
    """Yield checked pages: each row adds a person to a group."""
    memberships = Memberships(reader)
    for some in in_pages(rows):
        page = CheckedPage(len(some))
        users = await reader.known_users({row.cells["user"] for row in some})
        page.errors += [
            row.error("user", "USER_NOT_FOUND", "There is no person with this id.")
            for row in some
            if row.cells["user"] not in users
        ]
        joining = await memberships.add(some, page)
        page.steps += member_steps(joining)
        new = {row.number for row in joining}
        for row in some:
            joined = {"user": row.cells["user"]}
            page.note(row, row.cells["group"], {} if row.number in new else joined, joined, relates=True)
        yield page


def member_steps(rows: Iterable[CsvRow]) -> list[Step]:
    return [("join_group", row.cells["group"], row.cells["user"]) for row in rows]


class Memberships:
    """Brings people into groups. Counts the groups of each, with those of the file."""

    def __init__(self, reader: RowReader) -> None:
        self._reader = reader
        self._counts = Counter[str]()

    async def add(self, rows: Sequence[CsvRow], page: CheckedPage) -> list[CsvRow]:
        """Return the rows, with the columns group and user, whose person is not in the group yet. Their errors are
        added to the page.
        """
        groups = await self._reader.known_groups({row.cells["group"] for row in rows})
        page.errors += [
            row.error("group", "GROUP_NOT_FOUND", f"There is no group {row.cells['group']!r}.")
            for row in rows
            if row.cells["group"] not in groups
        ]
        joining = await self._joining(rows)
        await self._count({row.cells["user"] for row in joining} - self._counts.keys())
        for row in joining:
            self._counts[row.cells["user"]] += 1
            if self._counts[row.cells["user"]] > RELATIONS:
                page.errors.append(row.error("user", "LIMIT_REACHED", f"A person is in at most {RELATIONS} groups."))
        return joining

    async def _joining(self, rows: Sequence[CsvRow]) -> list[CsvRow]:
        by_group: defaultdict[str, list[CsvRow]] = defaultdict(list)
        for row in rows:
            by_group[row.cells["group"]].append(row)
        joining: list[CsvRow] = []
        for group, some in by_group.items():
            members = await self._reader.among([row.cells["user"] for row in some], "members", "group", group)
            joining += [row for row in some if row.cells["user"] not in members]
        return joining

    async def _count(self, users: set[str]) -> None:
        counts = await asyncio.gather(*(self._reader.count("member_of", "group", user) for user in users))
        self._counts.update(dict(zip(users, counts, strict=True)))
