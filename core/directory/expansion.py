"""Expands groups and supergroups to their people, each once (D-02).

The ids of the members are read first, in pages, and the records of each person then, once. No read takes the server
longer than a page does, and other callers are served in between; so the result is not of one moment: of a group that
changes meanwhile, members that stay are found, others may be.
"""

import asyncio
from collections.abc import Iterator, Sequence
from itertools import islice

from core.directory.groups import group_not_found
from core.directory.paging import all_ids
from core.directory.records import SHARD, Records
from core.directory.supergroups import supergroup_not_found
from core.model.history_key import Id
from core.model.people import Expansion, Group, Member, Supergroup, User, id_text
from core.redis.keys import KEYS

# Groups whose members are read at the same time.
_AT_ONCE = 16


class Expanding(Records):
    """Expansion: a part of the directory."""

    async def expand(self, tenant: str, groups: Sequence[Id], supergroups: Sequence[Id]) -> Expansion:
        """Return the people of these groups and supergroups, each once, with the non-virtual ones of these groups as
        origin.

        Raises NotFound GROUP_NOT_FOUND, SUPERGROUP_NOT_FOUND.
        """
        wanted = await self._groups(tenant, groups, supergroups)
        origins: dict[str, list[str]] = {}
        for some in _slices(wanted, _AT_ONCE):
            found = await asyncio.gather(*(self._member_ids(tenant, one) for one in some))
            for group, ids in zip(some, found, strict=True):
                _note_origin(origins, group, ids)
        users = await self._values(tenant, User, list(origins))
        pairs = zip(users, origins.values(), strict=True)
        return Expansion([Member(user, origin) for user, origin in pairs if user])

    async def _groups(self, tenant: str, groups: Sequence[Id], supergroups: Sequence[Id]) -> list[Group]:
        """Return the groups given and those of the supergroups, each once."""
        found = {}
        known = await self._values(tenant, Group, [id_text(one) for one in groups])
        for given, group in zip(groups, known, strict=True):
            if group is None:
                raise group_not_found(given)
            found[id_text(given)] = group
        parts = await self._parts(tenant, supergroups)
        further = [one for one in dict.fromkeys(parts) if one not in found]
        return [*found.values(), *(one for one in await self._values(tenant, Group, further) if one)]

    async def _parts(self, tenant: str, supergroups: Sequence[Id]) -> list[str]:
        """Return the ids of the groups of supergroups."""
        known = await self._values(tenant, Supergroup, [id_text(one) for one in supergroups])
        for given, supergroup in zip(supergroups, known, strict=True):
            if supergroup is None:
                raise supergroup_not_found(given)
        names = dict.fromkeys(id_text(one) for one in supergroups)
        return [one for name in names for one in await all_ids(self._store, KEYS["parts"].at(SHARD, tenant, name))]

    async def _member_ids(self, tenant: str, group: Group) -> list[str]:
        return await all_ids(self._store, KEYS["members"].at(SHARD, tenant, id_text(group.id)))


def _slices(items: Sequence[Group], size: int) -> Iterator[list[Group]]:
    rest = iter(items)
    while some := list(islice(rest, size)):
        yield some


def _note_origin(origins: dict[str, list[str]], group: Group, ids: Sequence[str]) -> None:
    """Adds the group to the origin of its members; a virtual group only makes them known."""
    for one in ids:
        origin = origins.setdefault(one, [])
        if not group.virtual:
            origin.append(id_text(group.id))
