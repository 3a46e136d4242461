"""Expands groups and supergroups to their people, each once (D-02).

The ids of the members are read first, in pages, and the records of each person then, once. No read takes the server
longer than a page does, and other callers are served in between; so the result is not of one moment: of a group that
changes meanwhile, members that stay are found, others may be.
"""

import asyncio
from collections.abc import Iterator, Sequence
from itertools import islice

from core.directory.collections import Groups, Supergroups
from core.directory.records import Records
from core.model.history_key import Id
from core.model.people import Expansion, Group, Member, User, id_text

# Groups whose members are read at the same time.
_AT_ONCE = 16


class Expander:
    """Expands groups and supergroups."""

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
