"""Groups by SCIM. A group of a client has the id `SOURCE-<its first displayName>`; the client sees and changes these
groups only, and in them only its own people: members that somebody else has added stay.
"""

import re
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence

from scim2_models.path import FilterNode

from core.directory.directory import Directory
from core.directory.records import pages_of_ids
from core.errors import Conflict
from core.model.json_form import Json, JsonObject
from core.model.people import Group, GroupChange, User, faults_of_id, id_text
from delivery.api.scim.people import ScimSource
from delivery.api.scim.resources import ScimGroup, ScimMember, ScimSearch, operations_of, patched, read, search_of
from delivery.http.responses.problems import scim_refusal

_MEMBERS = re.compile(
    r"(?:urn:ietf:params:scim:schemas:core:2\.0:Group:)?members"
    r"(?:\[\s*value\s+eq\s+\"(?P<value>[^\"]+)\"\s*\])?",
    re.IGNORECASE,
)
"""The path of all members of a group, or of one."""
_EMPTIED_FREELY = 5
"""Members of a group that one request may take out of it without leaving another one."""


class ScimGroups:
    """The groups of a client of SCIM. Their members may be many thousands, which the library is too slow for: they are
    read from bodies and written into answers apart from the other attributes.
    """

    body_limit = 2**20

    def __init__(self, source: ScimSource) -> None:
        self._source = source
        self._directory: Directory = source.directory
        self._tenant, self._prefix = source.tenant, f"{source.name}-"

    async def create(self, payload: Json) -> ScimGroup:
        """Add a group; return the resource. Raises Invalid, Conflict GROUP_EXISTS."""
        rest, named = _apart(payload)
        resource = read(ScimGroup, rest)
        members = await self._require(named or [])
        groups, title = self._directory.groups, resource.display_name or ""
        given = await self._new_id(title)
        await groups.create(self._tenant, Group(given, title, external_id=resource.external_id or ""))
        await groups.add_members(self._tenant, given, members)
        await self._source.report(updated=1)
        return (await self.find(given))[1]

    async def replace(self, given: str, payload: Json) -> ScimGroup:
        """Replace the name of a group, and its members if the body has them."""
        before = (await self.find(given))[1]
        rest, named = _apart(payload)
        after = read(ScimGroup, rest, replaces=True)
        members = await self._own_members(given)
        return await self._write(before, after, members, named)

    async def patch(self, given: str, payload: Json) -> ScimGroup:
        before = (await self.find(given))[1]
        others: list[JsonObject] = []
        members = await self._own_members(given)
        wanted: dict[str, None] | None = None
        for one in operations_of(payload):
            found = _MEMBERS.fullmatch(str(one.get("path") or ""))
            if found is None:
                others.append(one)
                continue
            wanted = dict.fromkeys(members) if wanted is None else wanted
            _apply(wanted, one, found["value"])
        after = patched(ScimGroup, before, others) if others or wanted is None else before
        return await self._write(before, after, members, None if wanted is None else list(wanted))

    async def delete(self, given: str) -> None:
        """Delete a group; its members stay people."""
        await self.find(given)
        await self._directory.groups.delete(self._tenant, given)
        await self._source.report(updated=1)

    async def find(self, given: str) -> tuple[Group, ScimGroup]:
        """Return a group and its resource without members. Raises NotFound GROUP_NOT_FOUND, also for other groups."""
        if not given.startswith(self._prefix):
            raise self._directory.groups.not_found(given)
        group = await self._directory.groups.find(self._tenant, given)
        return group, self._resource(group)

    def asked(self, query: Mapping[str, str]) -> ScimSearch[ScimGroup]:
        """Return the question of a query. Raises Invalid SCIM_FILTER_WRONG, SCIM_VALUE_WRONG."""
        return search_of(ScimGroup, query)

    async def search(self, condition: FilterNode | None) -> AsyncIterator[Group]:
        store = self._directory.records.store
        key = store.tenant_key("collectionids", self._tenant, "group")
        end = f"({self._prefix[:-1]}."  # the character behind the dash
        async for page in pages_of_ids(store, key, self._prefix, end=end):
            for group in await self._directory.groups.lookup(self._tenant, page):
                if group:
                    yield group

    async def resource_of(self, found: Group, *, with_members: bool) -> ScimGroup:
        resource = self._resource(found)
        if with_members:
            people = await self.members_of(id_text(found.id))
            resource.members = [ScimMember(value=id_text(one.id), display=one.name, ref=None) for one in people] or None
        return resource

    async def members_of(self, given: str) -> Sequence[User]:
        """Return the members whom the client sees."""
        found = await self._directory.groups.all_members(self._tenant, given)
        return [one for one in found if self._source.name in one.scim]

    def _resource(self, group: Group) -> ScimGroup:
        name = group.title or id_text(group.id).removeprefix(self._prefix)
        return ScimGroup(display_name=name, external_id=group.external_id or None, id=id_text(group.id))

    async def _own_members(self, given: str) -> list[str]:
        return [id_text(one.id) for one in await self.members_of(given)]

    async def _new_id(self, title: str) -> str:
        """Return the id of a new group. Raises Conflict GROUP_EXISTS if there is one with this name, Invalid."""
        given = f"{self._prefix}{title}"
        for fault in faults_of_id(given, "displayName"):
            raise fault
        found = (await self._directory.groups.lookup(self._tenant, [given]))[0]
        if found and found.title == title:
            raise Conflict("GROUP_EXISTS", f"There is a group {title!r}.", "displayName")
        return f"{given} {secrets.token_hex(2)}" if found else given

    async def _write(
        self, before: ScimGroup, after: ScimGroup, members: Sequence[str], wanted: Sequence[str] | None
    ) -> ScimGroup:
        """Write what differs. `wanted`: the members afterwards, None for those of before."""
        groups, given, wanted = self._directory.groups, before.id or "", members if wanted is None else wanted
        known, stay = set(members), set(wanted)
        leaving = [one for one in members if one not in stay]
        if len(leaving) > _EMPTIED_FREELY and not wanted:
            detail = "One request does not take all members out of a group. Name them, or delete the group."
            raise Conflict("SCIM_GROUP_EMPTIED", detail)
        joining = await self._require([one for one in wanted if one not in known])
        if (after.display_name, after.external_id) != (before.display_name, before.external_id):
            change = GroupChange(title=after.display_name or "", external_id=after.external_id or "")
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


def _apart(payload: Json) -> tuple[Json, list[str] | None]:
    """Return a body without its members, and the members; None if it does not say who they are."""
    if not isinstance(payload, dict):
        return payload, None
    named = [_values(payload[name]) for name in payload if name.casefold() == "members"]
    rest = {name: value for name, value in payload.items() if name.casefold() != "members"}
    return rest, named[0] if named else None


def _apply(members: dict[str, None], operation: JsonObject, value: str | None) -> None:
    """Apply an operation to the members of a group. `value`: the one whom its path selects, None for all. Raises
    Invalid SCIM_VALUE_WRONG.
    """
    op = str(operation.get("op")).casefold()
    given = [value] if value is not None else _values(operation.get("value"))
    if op not in ("add", "remove", "replace") or (value is not None and op != "remove"):
        raise scim_refusal("invalidValue", "Members are added, removed or replaced; a path of one removes it.")
    if op == "replace" or (op == "remove" and value is None and operation.get("value") is None):
        members.clear()
    for one in given:
        if op == "remove":
            members.pop(one, None)
        else:
            members[one] = None


def _values(value: Json) -> list[str]:
    """Return the ids of members, each once. Raises Invalid SCIM_VALUE_WRONG."""
    listed = value if isinstance(value, list) else [] if value is None else [value]
    given = [one.get("value") if isinstance(one, dict) else None for one in listed]
    ids = [one for one in given if isinstance(one, str) and one]
    if len(ids) < len(given):
        raise scim_refusal("invalidValue", 'Members are objects with a "value", the id of a person.')
    return list(dict.fromkeys(ids))
