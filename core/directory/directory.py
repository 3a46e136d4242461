"""The directory of all tenants: the expansion of its groups and supergroups to people, ownerships (who may write to
which group or supergroup), and two people made one.

The rule of ownerships: the owner of a supergroup owns each of its groups. What would break it is refused if it gives a
right (`own`, `add_members`) and carried on if it takes one away: `disown` of a group also withdraws the person's
supergroups that contain it (docs/decisions/0036).
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice

from core.directory.collections import GROUPS, SUPERGROUPS, Collections, Groups, Supergroups
from core.directory.own_fields import OwnFields
from core.directory.records import Records, all_ids, limit_reached, user_not_found
from core.directory.syncs import Syncs
from core.directory.users import Users
from core.errors import Conflict, NotFound, Refused
from core.model.history_key import Id
from core.model.people import Expansion, Group, Member, ObjectKind, Ownership, Supergroup, User, id_text
from core.redis.store import Store

# Groups whose members are read at the same time.
_AT_ONCE = 16


class Ownerships:
    """The owners of groups and supergroups."""

    def __init__(self, records: Records) -> None:
        self._records = records

    async def own(self, tenant: str, user: Id, kind: ObjectKind, object_id: Id) -> None:
        """Make a person an owner of a group or supergroup; an owner stays one.

        Raises NotFound USER_NOT_FOUND, GROUP_NOT_FOUND, SUPERGROUP_NOT_FOUND, Conflict GROUP_NOT_OWNED (a group of the
        supergroup is not the person's), LIMIT_REACHED.
        """
        reply = await self._records.write("own", tenant, id_text(user), kind, id_text(object_id))
        match reply[0]:
            case "group":
                raise Conflict("GROUP_NOT_OWNED", f"The supergroup has the group {reply[1]!r}, which is not owned.")
            case "limit":
                raise limit_reached("A person has too many ownerships, or a group too many owners.")
            case refusal if refusal != "owned":
                raise _not_found(refusal, user, kind, object_id)

    async def disown(self, tenant: str, user: Id, kind: ObjectKind, object_id: Id) -> list[Ownership]:
        """Withdraw an ownership; it is no error if there is none. Withdrawing a group withdraws the person's
        supergroups that contain it. Returns all that was withdrawn.

        Raises NotFound USER_NOT_FOUND, GROUP_NOT_FOUND, SUPERGROUP_NOT_FOUND.
        """
        before = await self.of(tenant, user)
        reply = await self._records.write("disown", tenant, id_text(user), kind, id_text(object_id))
        if reply[0] != "withdrawn":
            raise _not_found(reply[0], user, kind, object_id)
        return [one for one in before if f"{one.kind}:{one.id}" in reply[1:]]

    async def owns(self, tenant: str, user: Id, kind: ObjectKind, object_id: Id) -> bool:
        """Return whether a person owns a group or supergroup; false if one of them is unknown."""
        key = self._records.store.tenant_key("owned", tenant, id_text(user))
        return await self._records.store.command("ZSCORE", key, f"{kind}:{id_text(object_id)}") is not None

    async def of(self, tenant: str, user: Id) -> list[Ownership]:
        """Return what a person owns, groups first, sorted by id as text. Raises NotFound USER_NOT_FOUND."""
        owner = (await self._records.values(tenant, User, [id_text(user)]))[0]
        if owner is None:
            raise user_not_found(user)
        ids: defaultdict[str, list[str]] = defaultdict(list)
        for owned in await all_ids(self._records.store, self._records.store.tenant_key("owned", tenant, id_text(user))):
            kind, _, object_id = owned.partition(":")
            ids[kind].append(object_id)
        groups = [one for one in await self._records.values(tenant, Group, ids["group"]) if one]
        supergroups = [one for one in await self._records.values(tenant, Supergroup, ids["supergroup"]) if one]
        return [
            *(Ownership(owner.id, "group", one.id) for one in groups),
            *(Ownership(owner.id, "supergroup", one.id) for one in supergroups),
        ]


def _not_found(missing: str, user: Id, kind: ObjectKind, object_id: Id) -> Refused:
    if missing == "user":
        return user_not_found(user)
    return NotFound(f"{kind.upper()}_NOT_FOUND", f"There is no {kind} {object_id!r}.")


class Directory:
    """People, groups, supergroups, ownerships and their expansion. Every method takes the tenant first. Methods raise
    `core.errors.Refused`, with nothing written, and `StoreError`.
    """

    def __init__(self, store: Store) -> None:
        self.records = Records(store)
        self.groups = Collections(self.records, GROUPS)
        self.supergroups = Collections(self.records, SUPERGROUPS)
        self.own_fields = OwnFields(self.records)
        self.users = Users(self.records, self.groups, self.own_fields)
        self.ownerships = Ownerships(self.records)
        self.syncs = Syncs(store)
        self.expander = Expander(self.records, self.groups, self.supergroups)


class Expander:
    """Expands groups and supergroups to their people, each once (D-02).

    The ids of the members are read first, in pages, and the records of each person then, once. No read takes the server
    longer than a page does. The result is not of one moment: members that stay in a changing group are found, others
    may be.
    """

    def __init__(self, records: Records, groups: Groups, supergroups: Supergroups) -> None:
        self._records = records
        self._groups = groups
        self._supergroups = supergroups

    async def expand(self, tenant: str, groups: Sequence[Id], supergroups: Sequence[Id]) -> Expansion:
        """Return the people of these groups and supergroups, each once, with the non-virtual ones of these groups as
        origin.

        Raises NotFound GROUP_NOT_FOUND, SUPERGROUP_NOT_FOUND.
        """
        wanted = await self._groups_of(tenant, groups, supergroups)
        origins: dict[str, list[str]] = {}
        for some in _slices(wanted, _AT_ONCE):
            found = await asyncio.gather(*(self._groups.member_ids(tenant, one.id) for one in some))
            for group, ids in zip(some, found, strict=True):
                _note_origin(origins, group, ids)
        users = await self._records.values(tenant, User, origins)
        pairs = zip(users, origins.values(), strict=True)
        return Expansion([Member(user, origin) for user, origin in pairs if user])

    async def _groups_of(self, tenant: str, groups: Sequence[Id], supergroups: Sequence[Id]) -> list[Group]:
        """Return the groups given and those of the supergroups, each once."""
        found = {id_text(one.id): one for one in await self._groups.require(tenant, groups)}
        await self._supergroups.require(tenant, supergroups)
        names = dict.fromkeys(id_text(one) for one in supergroups)
        members = [one for name in names for one in await self._supergroups.member_ids(tenant, name)]
        further = [one for one in dict.fromkeys(members) if one not in found]
        return [*found.values(), *(one for one in await self._groups.lookup(tenant, further) if one)]


def _slices(items: Sequence[Group], size: int) -> Iterator[list[Group]]:
    rest = iter(items)
    while some := list(islice(rest, size)):
        yield some


def _note_origin(origins: dict[str, list[str]], group: Group, ids: Sequence[str]) -> None:
    """Add the group to the origin of its members; a virtual group only makes them known."""
    for one in ids:
        origin = origins.setdefault(one, [])
        if not group.virtual:
            origin.append(id_text(group.id))
