"""Checks the rows of groups, supergroups, members and ownerships against the directory, and that the owner of a
supergroup owns each of its groups.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterable, Sequence

from msgspec.structs import replace

from core.directory.csv_cells import group_cells, supergroup_cells
from core.directory.importing.csv_rows import CsvRow
from core.directory.importing.journal import Step
from core.directory.importing.kinds import as_row_errors, group_fields, group_ids, object_kind, parse_id
from core.directory.importing.reader import CheckedPage, RowReader, in_pages
from core.directory.records import encode_record
from core.model.people import Group, Supergroup, canonical_group, faults_of_group, id_text
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


"""Rows of a page: a row of a supergroup may name many groups."""

# supergroups


async def check_supergroups(reader: RowReader, rows: Sequence[CsvRow]) -> AsyncIterator[CheckedPage]:
    """Yield checked pages: each row creates a supergroup or changes the fields that the file has; its groups are
    replaced as a whole.
    """
    known = await reader.known_groups({id_text(one) for row in rows for one in group_ids(row) or ()})
    joined = Counter[str]()  # group → its supergroups, with those of the file
    for some in in_pages(rows):
        page = CheckedPage(len(some))
        found = await reader.supergroups([row.cells["id"] for row in some])
        for row, old in zip(some, found, strict=True):
            await _check_supergroup(reader, row, old, known, joined, page)
        yield page


async def _check_supergroup(
    reader: RowReader, row: CsvRow, old: Supergroup | None, known: set[str], joined: Counter[str], page: CheckedPage
) -> None:
    new = canonical_group(replace(old or Supergroup(parse_id(row.cells["id"])), **group_fields(row), groups=()))
    page.errors += as_row_errors(row, faults_of_group(new))
    members = sorted(await reader.related("members", "supergroup", row.cells["id"]))
    given = group_ids(row)
    wanted = members if given is None else sorted(map(id_text, given))
    before, after = supergroup_cells(old, members) if old else None, supergroup_cells(new, wanted)
    page.note(row, id_text(new.id), before, after)
    if before is None or before["title"] != after["title"]:
        page.steps.append(("supergroup", id_text(new.id), encode_record(new)))
    await _check_members(reader, row, members, wanted, known, joined, page)


async def _check_members(
    reader: RowReader,
    row: CsvRow,
    members: Sequence[str],
    wanted: Sequence[str],
    known: set[str],
    joined: Counter[str],
    page: CheckedPage,
) -> None:
    supergroup = row.cells["id"]
    unknown = [one for one in wanted if one not in known and one not in members]
    page.errors += [
        replace(row.error("groups", "GROUP_NOT_FOUND", f"There is no group {one!r}."), value=one) for one in unknown
    ]
    added = [one for one in wanted if one not in members and one in known]
    await _check_limits(reader, row, wanted, added, joined, page)
    await _check_owners_of_members(reader, row, added, page)
    page.steps += [("leave_supergroup", supergroup, one) for one in members if one not in wanted]
    page.steps += [("join_supergroup", supergroup, one) for one in added]


async def _check_limits(
    reader: RowReader, row: CsvRow, wanted: Sequence[str], added: Iterable[str], joined: Counter[str], page: CheckedPage
) -> None:
    if len(wanted) > RELATIONS:
        page.errors.append(row.error("groups", "LIMIT_REACHED", f"A supergroup has at most {RELATIONS} groups."))
        return
    for group in added:
        if group not in joined:
            joined[group] = await reader.count("member_of", "supergroup", group)
        joined[group] += 1
        if joined[group] > RELATIONS:
            message = f"The group {group!r} is in {RELATIONS} supergroups already."
            page.errors.append(row.error("groups", "LIMIT_REACHED", message))


async def _check_owners_of_members(reader: RowReader, row: CsvRow, added: Sequence[str], page: CheckedPage) -> None:
    """Report the owners of the supergroup that do not own a group which is added to it."""
    owners = await reader.related("owners", f"supergroup:{row.cells['id']}") if added else []
    for owner in owners:
        owned = await reader.among([f"group:{one}" for one in added], "owned", owner)
        for group in added:
            if f"group:{group}" not in owned:
                message = f"{owner} owns this supergroup, but not the group {group!r}."
                page.errors.append(row.error("groups", "GROUP_NOT_OWNED", message))


# ownerships


async def check_ownerships(reader: RowReader, rows: Sequence[CsvRow]) -> AsyncIterator[CheckedPage]:
    """Yield checked pages: each row makes a person an owner of a group or supergroup. Rows may be in any order."""
    by_user: defaultdict[str, list[CsvRow]] = defaultdict(list)
    for row in rows:
        by_user[row.cells["user"]].append(row)
    owners = Counter[str]()  # object → its owners, with those of the file
    for some in in_pages(by_user):
        chosen = [row for user in some for row in by_user[user]]
        page = CheckedPage(len(chosen))
        await _check_objects(reader, chosen, page)
        for user in some:
            await _check_owner(reader, user, by_user[user], owners, page)
        yield page


def _object(row: CsvRow) -> str:
    return f"{object_kind(row)}:{row.cells['id']}"


async def _check_objects(reader: RowReader, rows: Sequence[CsvRow], page: CheckedPage) -> None:
    users = await reader.known_users({row.cells["user"] for row in rows})
    groups = await reader.known_groups({row.cells["id"] for row in rows if object_kind(row) == "group"})
    supergroups = await reader.known_supergroups({row.cells["id"] for row in rows if object_kind(row) != "group"})
    for row in rows:
        if row.cells["user"] not in users:
            page.errors.append(row.error("user", "USER_NOT_FOUND", "There is no person with this id."))
        if object_kind(row) == "group" and row.cells["id"] not in groups:
            page.errors.append(row.error("id", "GROUP_NOT_FOUND", "There is no group with this id."))
        if object_kind(row) != "group" and row.cells["id"] not in supergroups:
            page.errors.append(row.error("id", "SUPERGROUP_NOT_FOUND", "There is no supergroup with this id."))


async def _check_owner(
    reader: RowReader, user: str, rows: Sequence[CsvRow], owners: Counter[str], page: CheckedPage
) -> None:
    owned = set(await reader.related("owned", user))
    new = [row for row in rows if _object(row) not in owned]
    for row in rows:
        now_owned = {row.cells["kind"]: row.cells["id"]}
        page.note(row, user, now_owned if _object(row) in owned else {}, now_owned, relates=True)
    owned |= {_object(row) for row in rows}
    if new and len(owned) > RELATIONS:
        page.errors.append(new[-1].error("user", "LIMIT_REACHED", f"A person owns at most {RELATIONS} objects."))
    for row in new:
        await _check_owners(reader, row, owners, page)
        if object_kind(row) == "supergroup":
            await _check_groups_owned(reader, row, owned, page)
        page.steps.append(("own", user, _object(row)))


async def _check_owners(reader: RowReader, row: CsvRow, owners: Counter[str], page: CheckedPage) -> None:
    if _object(row) not in owners:
        owners[_object(row)] = await reader.count("owners", _object(row))
    owners[_object(row)] += 1
    if owners[_object(row)] > RELATIONS:
        page.errors.append(row.error("id", "LIMIT_REACHED", f"A group has at most {RELATIONS} owners."))


async def _check_groups_owned(reader: RowReader, row: CsvRow, owned: set[str], page: CheckedPage) -> None:
    for group in await reader.related("members", "supergroup", row.cells["id"]):
        if f"group:{group}" not in owned:
            message = f"The supergroup has the group {group!r}, which the person does not own."
            page.errors.append(row.error("id", "GROUP_NOT_OWNED", message))
