"""Who reads an office: a group whose members answer what people reply, except students."""

from collections.abc import Sequence
from enum import StrEnum

from core.directory.directory import Directory
from core.model.history_key import Id
from core.model.people import User

READING_ROLES = frozenset({"trainer", "staff", "admin"})


class OfficeState(StrEnum):
    """Whether people read an office. `NO_MEMBERS`: only a program does. `NO_READERS`: each member is a student or
    blocked, or has no role.
    """

    READ = "read"
    NO_GROUP = "no_group"
    NO_MEMBERS = "no_members"
    NO_READERS = "no_readers"


def unread_office(group: str, tenant: str, state: OfficeState) -> str:
    """Return why an office has no reader, and what is lost."""
    why = {
        OfficeState.NO_GROUP: f"there is no group {group!r} in the tenant {tenant!r}",
        OfficeState.NO_MEMBERS: f"the group {group!r} has no members",
        OfficeState.NO_READERS: f"no member of the group {group!r} is trainer, staff or admin",
    }
    return f"{why[state]}: nobody gets what people write to no delivery and no bot"


async def state_of_office(directory: Directory, tenant: str, group: Id) -> OfficeState:
    """Return whether people read an office. Raises StoreError."""
    (known,) = await directory.groups.lookup(tenant, [group])
    if known is None:
        return OfficeState.NO_GROUP
    readers = await readers_of_office(directory, tenant, group)
    if readers is None:
        return OfficeState.NO_MEMBERS
    return OfficeState.READ if readers else OfficeState.NO_READERS


async def is_read(directory: Directory, tenant: str, group: Id) -> bool:
    """Return whether people or a program read an office. Raises StoreError."""
    return await state_of_office(directory, tenant, group) in (OfficeState.READ, OfficeState.NO_MEMBERS)


async def readers_of_office(directory: Directory, tenant: str, group: Id) -> Sequence[User] | None:
    """Return the members of a group that read it as an office; None for a group without members, which a program may
    read. Raises StoreError.
    """
    members = await directory.groups.member_ids(tenant, group)
    found = await directory.users.lookup(tenant, members) if members else []
    return [user for user in found if user and not user.blocked and user.role in READING_ROLES] if members else None
