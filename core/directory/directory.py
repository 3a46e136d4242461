"""The directory of all tenants, and the expansion of its groups and supergroups to people."""

import asyncio
from collections.abc import Iterator, Sequence
from itertools import islice

from core.directory.collections import GROUPS, SUPERGROUPS, Collections, Groups, Supergroups
from core.directory.ownerships import Ownerships
from core.directory.records import Records
from core.directory.users import Users
from core.model.history_key import Id
from core.model.people import Expansion, Group, Member, User, id_text
from core.redis.store import Store

# Groups whose members are read at the same time.
_AT_ONCE = 16


class Directory:
    """People, groups, supergroups, ownerships and their expansion. Every method takes the tenant first. Methods raise
    `core.errors.Refused`, with nothing written, and `StoreError`.
    """

    def __init__(self, store: Store) -> None:
        self.records = Records(store)
        self.groups = Collections(self.records, GROUPS)
        self.supergroups = Collections(self.records, SUPERGROUPS)
        self.users = Users(self.records, self.groups)
        self.ownerships = Ownerships(self.records)
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
