"""The rules of an installation that hold for every delivery: quotas by role, quiet hours and office hours by tenant."""

from collections.abc import Collection, Mapping

from msgspec import Struct

from core.admission.quiet_hours import TenantOfficeHours, TenantQuietHours
from core.admission.quotas import ADMIN, STAFF
from core.model.delivery import Quota


class OfficeChat(Struct, frozen=True):
    """A group chat of a bot in which an office answers, with a topic for each person. `office`: the id of its group.
    `chat`: its address in the channel.
    """

    tenant: str
    office: str
    channel: str
    chat: str


class SendingPolicy(Struct, frozen=True):
    """`quotas`: role → quota; a role that is not in it has none. `staff_writes_to_all`: the tenants in which staff
    writes to every person and group of the directory. Without arguments nothing is limited.
    """

    quotas: Mapping[str, Quota] = {}
    quiet_hours: TenantQuietHours = TenantQuietHours()
    staff_writes_to_all: Collection[str] = frozenset()
    office_hours: TenantOfficeHours = TenantOfficeHours()
    office_chat: OfficeChat | None = None


def writes_to_all(role: str | None, tenant: str, open_to_staff: Collection[str]) -> bool:
    """Return whether a person with this role may write to every person and group of the tenant."""
    return role == ADMIN or (role == STAFF and tenant in open_to_staff)
