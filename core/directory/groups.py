"""The groups of the directory and their members."""

from collections.abc import Sequence

from msgspec import UNSET
from msgspec.structs import replace

from core.directory.paging import Page, all_ids, pages_of_ids, read_cursor, write_cursor
from core.directory.records import PAGE, SHARD, Records, decode_record, encode_record, raise_first, version_of
from core.directory.users import limit_reached, user_not_found
from core.errors import Conflict, NotFound, Refused
from core.model.history_key import Id
from core.model.people import Group, GroupChange, User, canonical_group, faults_of_group, id_text
from core.redis.keys import KEYS


class Groups(Records):
    """Groups: a part of the directory."""

    async def create_group(self, tenant: str, group: Group, members: Sequence[Id] = ()) -> Group:
        """Store a new group with at most 500 members.

        Raises Invalid, Conflict GROUP_EXISTS, LIMIT_REACHED, NotFound USER_NOT_FOUND.
        """
        raise_first(faults_of_group(group))
        group, users = canonical_group(group), _texts(members)
        record = encode_record(group)
        while True:
            reply = await self._write("create_group", tenant, id_text(group.id), record, *users)
            if reply[0] == "leaving":  # a group with this id was deleted and still has former members
                await self._remove_group(tenant, group.id)
                continue
            if reply[0] == "exists":
                raise Conflict("GROUP_EXISTS", "There is a group with this id.", "id")
            _raise_refused(reply, group.id)
            return group

    async def update_group(self, tenant: str, group: Id, change: GroupChange) -> Group:
        """Change some fields of a group; return it as it is now. Raises NotFound GROUP_NOT_FOUND, Invalid."""
        given = {name: value for name in change.__struct_fields__ if (value := getattr(change, name)) is not UNSET}
        while True:
            record = await self._record(tenant, Group, group)
            if record is None:
                raise group_not_found(group)
            new = canonical_group(replace(decode_record(record, Group), **given))
            raise_first(faults_of_group(new))
            arguments = (tenant, id_text(group), version_of(record), encode_record(new))
            if await self._write("update_group", *arguments):
                return new

    async def delete_group(self, tenant: str, group: Id) -> None:
        """Delete a group; its members stay. It leaves its supergroups and ownerships in the same step.

        Raises NotFound GROUP_NOT_FOUND.
        """
        await self.find_group(tenant, group)
        await self._remove_group(tenant, group)

    async def _remove_group(self, tenant: str, group: Id) -> None:
        """The first call deletes the group; each call takes a page of its members out of it."""
        while await self._write("delete_group", tenant, id_text(group)):
            pass

    async def find_group(self, tenant: str, group: Id) -> Group:
        """Return the group with this id. Raises NotFound GROUP_NOT_FOUND."""
        record = await self._record(tenant, Group, group)
        if record is None:
            raise group_not_found(group)
        return decode_record(record, Group)

    async def lookup_groups(self, tenant: str, ids: Sequence[Id]) -> list[Group | None]:
        """Return the groups with these ids, in their order; None for an unknown one."""
        return await self._values(tenant, Group, _texts(ids))

    async def groups(self, tenant: str, *, cursor: str | None = None, limit: int = 100) -> Page[Group]:
        """Return a page of groups, sorted by id as text. Raises Invalid CURSOR_MALFORMED."""
        ids, following = await self._page_of_ids(KEYS["groupids"].at(SHARD, tenant), cursor, limit)
        return Page([one for one in await self._values(tenant, Group, ids) if one], following)

    async def groups_of(self, tenant: str, user: Id) -> list[Group]:
        """Return the groups of a person, sorted by id as text; none for an unknown person."""
        ids = await all_ids(self._store, KEYS["memberships"].at(SHARD, tenant, id_text(user)))
        return [one for one in await self._values(tenant, Group, ids) if one]

    async def add_member(self, tenant: str, group: Id, user: Id) -> None:
        """Add a person to a group; a member stays one. Raises NotFound GROUP_NOT_FOUND, USER_NOT_FOUND, Conflict
        LIMIT_REACHED.
        """
        await self.add_members(tenant, group, [user])

    async def add_members(self, tenant: str, group: Id, users: Sequence[Id]) -> None:
        """Add people to a group, in steps of 500; each step adds all of them or none.

        Raises NotFound GROUP_NOT_FOUND, USER_NOT_FOUND, Conflict LIMIT_REACHED (groups of one person).
        """
        texts = _texts(users)
        for start in range(0, max(len(texts), 1), PAGE):
            page = texts[start : start + PAGE]
            _raise_refused(await self._write("add_members", tenant, id_text(group), *page), group)

    async def remove_member(self, tenant: str, group: Id, user: Id) -> None:
        """Take a person out of a group; it is no error if it is not in it. Raises NotFound GROUP_NOT_FOUND,
        USER_NOT_FOUND.
        """
        reply = await self._write("remove_member", tenant, id_text(group), id_text(user))
        _raise_refused(reply, group)

    async def members(self, tenant: str, group: Id, *, cursor: str | None = None, limit: int = 100) -> Page[User]:
        """Return a page of the members of a group, sorted by id as text. Raises NotFound GROUP_NOT_FOUND, Invalid
        CURSOR_MALFORMED.
        """
        await self.find_group(tenant, group)
        key = KEYS["members"].at(SHARD, tenant, id_text(group))
        ids, following = await self._page_of_ids(key, cursor, limit)
        return Page([one for one in await self._values(tenant, User, ids) if one], following)

    async def _page_of_ids(self, key: str, cursor: str | None, limit: int) -> tuple[list[str], str | None]:
        """At most `limit` ids of a sorted set, and the cursor of the next page."""
        found: list[str] = []
        async for page in pages_of_ids(self._store, key, read_cursor(cursor), min(limit + 1, PAGE)):
            found += page
            if len(found) > limit:
                return found[:limit], write_cursor(found[limit - 1])
        return found, None


def _texts(ids: Sequence[Id]) -> list[str]:
    """Return the ids as text, each once."""
    return list(dict.fromkeys(id_text(one) for one in ids))


def _raise_refused(reply: Sequence[str], group: Id) -> None:
    match reply[0]:
        case "group":
            raise group_not_found(group)
        case "user":
            raise user_not_found(reply[1])
        case "limit":
            raise limit_reached(f"{reply[1]} is in as many groups as a person can be.")


def group_not_found(group: Id) -> Refused:
    return NotFound("GROUP_NOT_FOUND", f"There is no group {group!r}.")
