"""Who reads an office: a group whose members answer what people reply, except students."""

from collections.abc import Sequence

from core.directory.directory import Directory
from core.model.history_key import Id
from core.model.people import User

READING_ROLES = frozenset({"trainer", "staff", "admin"})


async def readers_of_office(directory: Directory, tenant: str, group: Id) -> Sequence[User] | None:
    """Return the members of a group that read it as an office; None for a group without members, which a program may
    read. Raises StoreError.
    """
    members = await directory.groups.member_ids(tenant, group)
    found = await directory.users.lookup(tenant, members) if members else []
    return [user for user in found if user and not user.blocked and user.role in READING_ROLES] if members else None
