"""Checks the rows of groups and of their members against the directory."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Sequence

from msgspec.structs import replace

from core.directory.importing.csv_rows import Row
from core.directory.importing.kinds import as_row_errors, group_fields, parse_id
from core.directory.importing.page import Page
from core.directory.importing.reader import Reader, in_pages
from core.directory.records import encode_record
from core.model.people import Group, canonical_group, faults_of_group, id_text
from core.redis.constants import RELATIONS


async def check_groups(reader: Reader, rows: Sequence[Row]) -> AsyncIterator[Page]:
    """Each row creates a group or changes the fields that the file has."""
    for some in in_pages(rows):
        page = Page(len(some))
        found = await reader.groups([row.cells["id"] for row in some])
        for row, old in zip(some, found, strict=True):
            if old is None and await reader.count("members", row.cells["id"]):
                page.errors.append(row.error("id", "GROUP_LEAVING", "This group is being deleted; delete it again."))
            _check_group(row, old, page)
        yield page


def _check_group(row: Row, old: Group | None, page: Page) -> None:
    new = replace(old or Group(parse_id(row.cells["id"])), **group_fields(row))
    page.errors += as_row_errors(row, faults_of_group(new))
    page.steps.append(("group", id_text(new.id), encode_record(canonical_group(new))))
    page.count(old is None)


# members


async def check_members(reader: Reader, rows: Sequence[Row]) -> AsyncIterator[Page]:
    """Each row adds a person to a group."""
    memberships = Counter[str]()  # person → groups it is in, with those of the file
    for some in in_pages(rows):
        page = Page(len(some))
        await _check_existence(reader, some, page)
        await _check_memberships(reader, some, memberships, page)
        page.steps += [("member", row.cells["group"], row.cells["user"]) for row in some]
        yield page


async def _check_existence(reader: Reader, rows: Sequence[Row], page: Page) -> None:
    groups = await reader.known_groups({row.cells["group"] for row in rows})
    users = await reader.known_users({row.cells["user"] for row in rows})
    for row in rows:
        if row.cells["group"] not in groups:
            page.errors.append(row.error("group", "GROUP_NOT_FOUND", "There is no group with this id."))
        if row.cells["user"] not in users:
            page.errors.append(row.error("user", "USER_NOT_FOUND", "There is no person with this id."))


async def _check_memberships(reader: Reader, rows: Sequence[Row], memberships: Counter[str], page: Page) -> None:
    """Count the rows; an error for each that would put a person into too many groups."""
    by_group: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_group[row.cells["group"]].append(row)
    joining: list[Row] = []
    for group, some in by_group.items():
        members = await reader.among("members", group, [row.cells["user"] for row in some])
        joining += [row for row in some if row.cells["user"] not in members]
    page.created, page.updated = len(joining), len(rows) - len(joining)
    await _count_memberships(reader, {row.cells["user"] for row in joining} - memberships.keys(), memberships)
    for row in joining:
        memberships[row.cells["user"]] += 1
        if memberships[row.cells["user"]] > RELATIONS:
            page.errors.append(row.error("user", "LIMIT_REACHED", f"A person is in at most {RELATIONS} groups."))


async def _count_memberships(reader: Reader, users: set[str], memberships: Counter[str]) -> None:
    counts = await asyncio.gather(*(reader.count("memberships", user) for user in users))
    memberships.update(dict(zip(users, counts, strict=True)))
