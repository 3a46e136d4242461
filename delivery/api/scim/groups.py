"""Groups by SCIM. A group of a client has the id `SOURCE-<its first displayName>`; the client sees and changes these
groups only, and in them only its own people: members that somebody else has added stay.
"""

import secrets
from collections.abc import AsyncIterator, Sequence
from typing import Any

from core.directory.directory import Directory
from core.directory.paging import pages_of_ids
from core.errors import Conflict
from core.model.json_form import Json
from core.model.people import Group, GroupChange, User, faults_of_id, id_text
from delivery.api.scim.people import ScimSource
from delivery.api.scim.resources import ScimGroup, ScimMember, patched, read
from delivery.http.responses.scim import scim_refusal

_EMPTIED_FREELY = 5
"""Members of a group that one request may take out of it without leaving another one."""


class ScimGroups:
    """The groups of a client of SCIM."""

    shape = ScimGroup

    def __init__(self, source: ScimSource) -> None:
        self._source = source
        self._directory: Directory = source.directory
        self._tenant, self._prefix = source.tenant, f"{source.name}-"

    async def create(self, payload: Json) -> Any:
        """Add a group; return the resource. Raises Invalid, Conflict GROUP_EXISTS."""
        resource = read(ScimGroup, payload)
        groups, title = self._directory.groups, resource.display_name
        given = await self._new_id(title)
        members = await self._require(_members(resource))
        await groups.create(self._tenant, Group(given, title, external_id=resource.external_id or ""))
        await groups.add_members(self._tenant, given, members)
        await self._source.report(updated=1)
        return (await self.find(given))[1]

    async def replace(self, given: str, payload: Json) -> Any:
        """Replace the name of a group, and its members if the body has them."""
        before, after = (await self.find(given))[1], read(ScimGroup, payload, replaces=True)
        if "members" not in after.model_fields_set:
            after.members = before.members
        return await self._write(given, before, after)

    async def patch(self, given: str, payload: Json) -> Any:
        """Apply operations to a group."""
        before = (await self.find(given))[1]
        return await self._write(given, before, patched(ScimGroup, before, payload))

    async def delete(self, given: str) -> None:
        """Delete a group; its members stay people."""
        await self.find(given, with_members=False)
        await self._directory.groups.delete(self._tenant, given)
        await self._source.report(updated=1)

    async def find(self, given: str, *, with_members: bool = True) -> tuple[Group, Any]:
        """Return a group and its resource. Raises NotFound GROUP_NOT_FOUND, also for groups of others."""
        if not given.startswith(self._prefix):
            raise self._directory.groups.not_found(given)
        group = await self._directory.groups.find(self._tenant, given)
        members = await self._people_of(given) if with_members else ()
        shown = [ScimMember(value=id_text(one.id), display=one.name, ref=None) for one in members]
        name, external_id = group.title or given.removeprefix(self._prefix), group.external_id or None
        return group, ScimGroup(display_name=name, external_id=external_id, id=given, members=shown or None)

    async def search(self, condition: Any, *, with_members: bool) -> AsyncIterator[Any]:
        """Emit the resources of all groups."""
        store = self._directory.records.store
        key = store.tenant_key("collectionids", self._tenant, "group")
        end = f"({self._prefix[:-1]}."  # the character behind the dash
        async for page in pages_of_ids(store, key, self._prefix, end=end):
            for given in page:
                yield (await self.find(given, with_members=with_members))[1]

    async def _people_of(self, given: str) -> Sequence[User]:
        """Return the members whom the client sees."""
        found = await self._directory.groups.all_members(self._tenant, given)
        return [one for one in found if self._source.name in one.scim]

    async def _new_id(self, title: str) -> str:
        """Return the id of a new group. Raises Conflict GROUP_EXISTS if there is one with this name, Invalid."""
        given = f"{self._prefix}{title}"
        for fault in faults_of_id(given, "displayName"):
            raise fault
        found = (await self._directory.groups.lookup(self._tenant, [given]))[0]
        if found and found.title == title:
            raise Conflict("GROUP_EXISTS", f"There is a group {title!r}.", "displayName")
        return f"{given} {secrets.token_hex(2)}" if found else given

    async def _write(self, given: str, before: Any, after: Any) -> Any:
        groups, (old, new) = self._directory.groups, (_members(before), _members(after))
        joining, leaving = [one for one in new if one not in set(old)], [one for one in old if one not in set(new)]
        if len(leaving) > _EMPTIED_FREELY and not new:
            detail = "One request does not take all members out of a group. Name them, or delete the group."
            raise Conflict("SCIM_GROUP_EMPTIED", detail)
        joining = await self._require(joining)
        if (after.display_name, after.external_id) != (before.display_name, before.external_id):
            change = GroupChange(title=after.display_name, external_id=after.external_id or "")
            await groups.update(self._tenant, given, change)
        if joining:
            await groups.add_members(self._tenant, given, joining)
        for one in leaving:
            await groups.remove_member(self._tenant, given, one)
        await self._source.report(updated=1)
        return (await self.find(given))[1]

    async def _require(self, members: Sequence[str]) -> list[str]:
        """Return the members, who must be people of the client. Raises Invalid SCIM_VALUE_WRONG."""
        found = await self._directory.users.lookup(self._tenant, members)
        for given, user in zip(members, found, strict=True):
            if user is None or self._source.name not in user.scim:
                raise scim_refusal("invalidValue", f"There is no person {given!r} for members.")
        return list(members)


def _members(resource: Any) -> list[str]:
    return list(dict.fromkeys(one.value for one in resource.members or () if one.value))
