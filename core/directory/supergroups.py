"""The supergroups of the directory: named sets of groups."""

from collections.abc import Sequence

from msgspec import UNSET
from msgspec.structs import replace

from core.directory.groups import group_not_found
from core.directory.paging import Page, all_ids, pages_of_ids, read_cursor, write_cursor
from core.directory.records import PAGE, SHARD, Records, decode_record, encode_record, raise_first, version_of
from core.directory.users import limit_reached
from core.errors import Conflict, NotFound, Refused
from core.model.history_key import Id
from core.model.people import Group, GroupChange, Supergroup, canonical_group, faults_of_group, id_text
from core.redis.keys import KEYS


class Supergroups(Records):
    """Supergroups: a part of the directory."""

    async def create_supergroup(self, tenant: str, supergroup: Supergroup) -> Supergroup:
        """Store a new supergroup with its groups; return it.

        Raises Invalid, Conflict SUPERGROUP_EXISTS, LIMIT_REACHED, NotFound GROUP_NOT_FOUND.
        """
        raise_first(faults_of_group(supergroup))
        groups = list(dict.fromkeys(id_text(one) for one in supergroup.groups))
        record = encode_record(replace(canonical_group(supergroup), groups=()))
        reply = await self._write("create_supergroup", tenant, id_text(supergroup.id), record, *groups)
        if reply[0] == "exists":
            raise Conflict("SUPERGROUP_EXISTS", "There is a supergroup with this id.", "id")
        _raise_refused(reply, supergroup.id)
        return await self.find_supergroup(tenant, supergroup.id)

    async def update_supergroup(self, tenant: str, supergroup: Id, change: GroupChange) -> Supergroup:
        """Change the title of a supergroup; return it as it is now. Raises NotFound SUPERGROUP_NOT_FOUND, Invalid."""
        while True:
            record = await self._record(tenant, Supergroup, supergroup)
            if record is None:
                raise supergroup_not_found(supergroup)
            new = decode_record(record, Supergroup)
            new = new if change.title is UNSET else canonical_group(replace(new, title=change.title))
            raise_first(faults_of_group(new))
            arguments = (tenant, id_text(supergroup), version_of(record), encode_record(new))
            if await self._write("update_supergroup", *arguments):
                return await self._with_groups(tenant, new)

    async def delete_supergroup(self, tenant: str, supergroup: Id) -> None:
        """Delete a supergroup with its ownerships; its groups stay. Raises NotFound SUPERGROUP_NOT_FOUND."""
        if await self._record(tenant, Supergroup, supergroup) is None:
            raise supergroup_not_found(supergroup)
        await self._write("delete_supergroup", tenant, id_text(supergroup))

    async def find_supergroup(self, tenant: str, supergroup: Id) -> Supergroup:
        """Return the supergroup with this id and its groups. Raises NotFound SUPERGROUP_NOT_FOUND."""
        record = await self._record(tenant, Supergroup, supergroup)
        if record is None:
            raise supergroup_not_found(supergroup)
        return await self._with_groups(tenant, decode_record(record, Supergroup))

    async def lookup_supergroups(self, tenant: str, ids: Sequence[Id]) -> list[Supergroup | None]:
        """Return the supergroups with these ids, in their order, without their groups; None for an unknown one."""
        return await self._values(tenant, Supergroup, [id_text(one) for one in ids])

    async def supergroups(self, tenant: str, *, cursor: str | None = None, limit: int = 100) -> Page[Supergroup]:
        """Return a page of supergroups with their groups, sorted by id as text. Raises Invalid CURSOR_MALFORMED."""
        found: list[Supergroup] = []
        after, key = read_cursor(cursor), KEYS["supergroupids"].at(SHARD, tenant)
        async for page in pages_of_ids(self._store, key, after, min(limit + 1, PAGE)):
            for supergroup_id, one in zip(page, await self._values(tenant, Supergroup, page), strict=True):
                if len(found) == limit:
                    return Page(found, write_cursor(after))
                after = supergroup_id
                if one:
                    found.append(await self._with_groups(tenant, one))
        return Page(found)

    async def add_to_supergroup(self, tenant: str, supergroup: Id, group: Id) -> None:
        """Add a group to a supergroup; a part stays one. Every owner of the supergroup must own the group already, so
        that the ownership rule stays true.

        Raises NotFound SUPERGROUP_NOT_FOUND, GROUP_NOT_FOUND, Conflict GROUP_NOT_OWNED, LIMIT_REACHED.
        """
        reply = await self._write("add_to_supergroup", tenant, id_text(supergroup), id_text(group))
        if reply[0] == "owner":
            raise Conflict("GROUP_NOT_OWNED", f"{reply[1]} owns this supergroup, but not the group {group!r}.")
        _raise_refused(reply, supergroup)

    async def remove_from_supergroup(self, tenant: str, supergroup: Id, group: Id) -> None:
        """Take a group out of a supergroup; it is no error if it is not in it. Raises NotFound SUPERGROUP_NOT_FOUND,
        GROUP_NOT_FOUND.
        """
        reply = await self._write("remove_from_supergroup", tenant, id_text(supergroup), id_text(group))
        _raise_refused(reply, supergroup)

    async def _with_groups(self, tenant: str, supergroup: Supergroup) -> Supergroup:
        """Return the supergroup with the ids of its groups as they were given."""
        ids = await all_ids(self._store, KEYS["parts"].at(SHARD, tenant, id_text(supergroup.id)))
        groups = await self._values(tenant, Group, ids)
        return replace(supergroup, groups=tuple(one.id for one in groups if one))


def _raise_refused(reply: Sequence[str], supergroup: Id) -> None:
    match reply[0]:
        case "supergroup":
            raise supergroup_not_found(supergroup)
        case "group":
            raise group_not_found(reply[1])
        case "limit":
            raise limit_reached("A supergroup has too many groups, or a group is in too many supergroups.")


def supergroup_not_found(supergroup: Id) -> Refused:
    return NotFound("SUPERGROUP_NOT_FOUND", f"There is no supergroup {supergroup!r}.")
