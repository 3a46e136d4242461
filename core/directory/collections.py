"""Groups, whose members are people, and supergroups, whose members are groups: one kind of thing, a collection.

Their differences are in `CollectionKind`, and in Lua in `lua/directory/modules/collections.lua`.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from msgspec.structs import replace

from core.directory.records import (
    PAGE,
    DirectoryPage,
    Records,
    all_ids,
    decode_record,
    encode_record,
    given_fields,
    limit_reached,
    page_of_ids,
    user_not_found,
    version_of,
)
from core.errors import Conflict, NotFound, Refused, raise_first
from core.model.history_key import Id
from core.model.people import (
    Group,
    GroupChange,
    ObjectKind,
    Supergroup,
    User,
    canonical_group,
    faults_of_group,
    id_text,
)

C = TypeVar("C", Group, Supergroup)
M = TypeVar("M", User, Group)


@dataclass(frozen=True, slots=True)
class CollectionKind(Generic[C, M]):
    """A kind of collection. `listed_in`: the field of the value that lists its members; "" if it does not list them.
    `full`: the detail of LIMIT_REACHED, given the member.
    """

    name: ObjectKind
    value: type[C]
    member: type[M]
    listed_in: str
    full: str


GROUPS = CollectionKind("group", Group, User, "", "{} is in as many groups as a person can be.")
SUPERGROUPS = CollectionKind(
    "supergroup",
    Supergroup,
    Group,
    "groups",
    "A supergroup has too many groups, or a group is in too many supergroups.",
)


class Collections(Generic[C, M]):
    """The collections of one kind. An error code begins with the kind: GROUP_NOT_FOUND, SUPERGROUP_NOT_FOUND."""

    def __init__(self, records: Records, kind: CollectionKind[C, M]) -> None:
        self._records = records
        self._kind: CollectionKind[C, M] = kind

    async def create(self, tenant: str, value: C, members: Sequence[Id] = ()) -> C:
        """Store a new collection with its members, of a group at most 500; return it. A supergroup also gets the groups
        that it lists.

        Raises Invalid, Conflict <KIND>_EXISTS, GROUP_NOT_OWNED, LIMIT_REACHED, NotFound USER_NOT_FOUND,
        GROUP_NOT_FOUND.
        """
        raise_first(faults_of_group(value))
        value, names = canonical_group(value), _texts([*self._listed(value), *members])
        record = encode_record(self._without_members(value))
        while True:
            reply = await self._write("create_collection", tenant, value.id, record, *names)
            if reply[0] == "leaving":  # a collection with this id was deleted and still has former members
                await self._remove(tenant, value.id)
                continue
            if reply[0] == "exists":
                raise Conflict(f"{self._kind.name.upper()}_EXISTS", f"There is a {self._kind.name} with this id.", "id")
            self._raise_refused(reply, value.id)
            return await self._with_members(tenant, value)

    async def update(self, tenant: str, given: Id, change: GroupChange) -> C:
        """Change some fields of a collection; return it as it is now. Raises NotFound <KIND>_NOT_FOUND, Invalid."""
        fields = given_fields(change)
        while True:
            record = await self._require_record(tenant, given)
            new = canonical_group(replace(decode_record(record, self._kind.value), **fields))
            raise_first(faults_of_group(new))
            if await self._write("update_collection", tenant, given, version_of(record), encode_record(new)):
                return await self._with_members(tenant, new)

    async def delete(self, tenant: str, given: Id) -> None:
        """Delete a collection; its members stay. Its ownerships, and for a group its place in supergroups, end in the
        same step.

        Raises NotFound <KIND>_NOT_FOUND.
        """
        await self._require_record(tenant, given)
        await self._remove(tenant, given)

    async def _remove(self, tenant: str, given: Id) -> None:
        """Delete the collection by the first call, and take a page of its members out of it by each call."""
        while await self._write("delete_collection", tenant, given):
            pass

    async def find(self, tenant: str, given: Id) -> C:
        """Return the collection with this id, a supergroup with its groups. Raises NotFound <KIND>_NOT_FOUND."""
        record = await self._require_record(tenant, given)
        return await self._with_members(tenant, decode_record(record, self._kind.value))

    async def lookup(self, tenant: str, ids: Sequence[Id]) -> list[C | None]:
        """Return the collections with these ids, in their order and without their members; None for an unknown one."""
        return await self._records.values(tenant, self._kind.value, [id_text(one) for one in ids])

    async def page(self, tenant: str, *, cursor: str | None = None, limit: int = 100) -> DirectoryPage[C]:
        """Return a page of collections, sorted by id as text. Raises Invalid CURSOR_MALFORMED."""
        key = self._records.store.tenant_key("collectionids", tenant, self._kind.name)
        ids, following = await page_of_ids(self._records.store, key, cursor, limit)
        found = await self._records.values(tenant, self._kind.value, ids)
        return DirectoryPage([await self._with_members(tenant, one) for one in found if one], following)

    async def with_member(self, tenant: str, member: Id) -> list[C]:
        """Return the collections that have a member, sorted by id as text; none for an unknown member."""
        key = self._records.store.tenant_key("member_of", tenant, self._kind.name, id_text(member))
        found = await self._records.values(tenant, self._kind.value, await all_ids(self._records.store, key))
        return [one for one in found if one]

    async def add_member(self, tenant: str, given: Id, member: Id) -> None:
        """Add one member, as `add_members` does."""
        await self.add_members(tenant, given, [member])

    async def add_members(self, tenant: str, given: Id, members: Sequence[Id]) -> None:
        """Add members in steps of 500; each step adds all of them or none. A member stays one. Every owner of a
        supergroup must own its groups already, so that the ownership rule stays true.

        Raises NotFound <KIND>_NOT_FOUND, USER_NOT_FOUND, GROUP_NOT_FOUND, Conflict GROUP_NOT_OWNED, LIMIT_REACHED.
        """
        names = _texts(members)
        for start in range(0, max(len(names), 1), PAGE):
            page = names[start : start + PAGE]
            self._raise_refused(await self._write("add_members", tenant, given, *page), given)

    async def remove_member(self, tenant: str, given: Id, member: Id) -> None:
        """Take a member out of a collection; it is no error if it is not in it. Raises NotFound <KIND>_NOT_FOUND,
        USER_NOT_FOUND, GROUP_NOT_FOUND.
        """
        self._raise_refused(await self._write("remove_member", tenant, given, id_text(member)), given)

    async def has_member(self, tenant: str, given: Id, member: Id) -> bool:
        score = await self._records.store.command("ZSCORE", self.key_of_members(tenant, given), id_text(member))
        return score is not None

    async def members(self, tenant: str, given: Id, *, cursor: str | None = None, limit: int = 100) -> DirectoryPage[M]:
        """Return a page of the members, sorted by id as text. Raises NotFound <KIND>_NOT_FOUND, Invalid
        CURSOR_MALFORMED.
        """
        await self._require_record(tenant, given)
        key = self.key_of_members(tenant, given)
        ids, following = await page_of_ids(self._records.store, key, cursor, limit)
        found = await self._records.values(tenant, self._kind.member, ids)
        return DirectoryPage([one for one in found if one], following)

    async def all_members(self, tenant: str, given: Id) -> list[M]:
        """Return all members, sorted by id as text. Raises NotFound <KIND>_NOT_FOUND."""
        await self._require_record(tenant, given)
        found = await self._records.values(tenant, self._kind.member, await self.member_ids(tenant, given))
        return [one for one in found if one]

    async def member_ids(self, tenant: str, given: Id) -> list[str]:
        """Return the ids of all members, sorted as text; none for an unknown collection."""
        return await all_ids(self._records.store, self.key_of_members(tenant, given))

    def key_of_members(self, tenant: str, given: Id) -> str:
        """Return the sorted set of the members' ids."""
        return self._records.store.tenant_key("members", tenant, self._kind.name, id_text(given))

    async def sizes(self, tenant: str, ids: Sequence[Id]) -> list[int]:
        """Return how many members each of these collections has, in their order; 0 for an unknown one."""
        keys = [self.key_of_members(tenant, one) for one in ids]
        return list(await asyncio.gather(*(self._records.store.command("ZCARD", key) for key in keys)))

    async def require(self, tenant: str, ids: Sequence[Id]) -> list[C]:
        """Return the collections with these ids, in their order and without their members. Raises NotFound
        <KIND>_NOT_FOUND for the first unknown one.
        """
        found: list[C] = []
        for given, one in zip(ids, await self.lookup(tenant, ids), strict=True):
            if one is None:
                raise self.not_found(given)
            found.append(one)
        return found

    def not_found(self, given: Id) -> Refused:
        """Return the error for an unknown collection."""
        return NotFound(f"{self._kind.name.upper()}_NOT_FOUND", f"There is no {self._kind.name} {given!r}.")

    async def _require_record(self, tenant: str, given: Id) -> str:
        record = await self._records.find(tenant, self._kind.value, given)
        if record is None:
            raise self.not_found(given)
        return record

    async def _write(self, function: str, tenant: str, given: Id, *arguments: str) -> Sequence[str]:
        reply: Sequence[str] = await self._records.write(function, tenant, self._kind.name, id_text(given), *arguments)
        return reply

    def _listed(self, value: C) -> Sequence[Id]:
        listed: Sequence[Id] = getattr(value, self._kind.listed_in) if self._kind.listed_in else ()
        return listed

    def _without_members(self, value: C) -> C:
        return replace(value, **{self._kind.listed_in: ()}) if self._kind.listed_in else value

    async def _with_members(self, tenant: str, value: C) -> C:
        """Return the value with the ids of its members as they were given, if it lists them."""
        if not self._kind.listed_in:
            return value
        found = await self._records.values(tenant, self._kind.member, await self.member_ids(tenant, value.id))
        return replace(value, **{self._kind.listed_in: tuple(one.id for one in found if one)})

    def _raise_refused(self, reply: Sequence[str], given: Id) -> None:
        match reply[0]:
            case "collection":
                raise self.not_found(given)
            case "member":
                raise _member_not_found(self._kind, reply[1])
            case "limit":
                raise limit_reached(self._kind.full.format(reply[1]))
            case "owner":
                raise Conflict("GROUP_NOT_OWNED", f"{reply[1]} owns this supergroup, but not the group {reply[2]!r}.")


Groups = Collections[Group, User]
Supergroups = Collections[Supergroup, Group]


def _texts(ids: Sequence[Id]) -> list[str]:
    """Return the ids as text, each once."""
    return list(dict.fromkeys(id_text(one) for one in ids))


def _member_not_found(kind: CollectionKind[C, M], member: str) -> Refused:
    if kind.member is User:
        return user_not_found(member)
    return NotFound("GROUP_NOT_FOUND", f"There is no group {member!r}.", about=str(member))
