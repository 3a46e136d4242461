"""Ownerships: who may write to which group or supergroup.

The rule: the owner of a supergroup owns each of its groups. What would break it is refused if it gives a right
(`own`, `add_members`) and carried on if it takes one away: `disown` of a group also withdraws the person's
supergroups that contain it (docs/decisions/0036).
"""

from collections import defaultdict

from core.directory.paging import all_ids
from core.directory.records import Records, limit_reached, user_not_found
from core.errors import Conflict, NotFound, Refused
from core.model.history_key import Id
from core.model.people import Group, ObjectKind, Ownership, Supergroup, User, id_text


class Ownerships:
    """Who owns which groups and supergroups."""

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
