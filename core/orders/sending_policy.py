"""What senders may: the rules of the installation by role and tenant, and those for messages of a signed-in person.

A signed-in person writes only in its own name, and only to the recipients that the bots allow: itself, the groups and
supergroups that it owns (checked by `core.orders.addressing`), and their members. An administrator writes to all people
and groups, and so does staff where the tenant allows it. Lane and priority are for programs: with them a delivery
delays those of others.
"""

from collections.abc import Collection, Mapping

from msgspec import Struct, UnsetType
from msgspec.structs import replace

from core.admission.quotas import ADMIN, STAFF
from core.directory import Directory
from core.errors import Forbidden
from core.model.delivery import DEFAULT_PRIORITY, NewDelivery, Quota, Recipient, Sender
from core.model.hours import TenantOfficeHours, TenantQuietHours
from core.model.people import User, id_text
from core.orders.order import Addressee, Placed


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


TRIAL = "trial"
"""The kind of a delivery that people send to themselves first."""


def is_trial(delivery: NewDelivery, addressees: Placed, person: User | None) -> bool:
    """Return whether a person tries a message on itself: that costs no quota."""
    if person is None or delivery.kind != TRIAL:
        return False
    own = id_text(person.id)
    people = [one for _, one in addressees if isinstance(one, Addressee) and one.is_in_directory]
    return len(people) == len(addressees) and all(
        not isinstance(one.id, UnsetType) and id_text(one.id) == own for one in people
    )


async def in_own_name(
    directory: Directory,
    tenant: str,
    person: User,
    given: NewDelivery,
    addressees: Placed,
    open_to_staff: Collection[str] = (),
) -> NewDelivery:
    """Return the delivery with the person as its sender. `open_to_staff`: the tenants in which staff writes to all.
    Raises Forbidden NOT_YOURSELF, FOR_PROGRAMS, CONTACTS_NOT_ALLOWED, NOT_OWNER.
    """
    if id_text(given.sender.id) != id_text(person.id):
        raise Forbidden("NOT_YOURSELF", "A person sends only in its own name.", "sender.id")
    if given.lane is not None or given.priority != DEFAULT_PRIORITY:
        path = "priority" if given.lane is None else "lane"
        raise Forbidden("FOR_PROGRAMS", "A person has no lane and no priority of its own.", path)
    if person.role != ADMIN:
        _refuse_contacts(addressees)
        await _check_people(directory, tenant, person, addressees, open_to_staff)
    return replace(given, sender=Sender(person.id, person.name, person.role))


def _refuse_contacts(addressees: Placed) -> None:
    for place, one in addressees:
        if isinstance(one, Recipient) or one.has_contacts:
            detail = "A person writes to people of the directory, by their id."
            raise Forbidden("CONTACTS_NOT_ALLOWED", detail, f"{place}.contacts")


async def allowed_people(
    directory: Directory, tenant: str, person: User, open_to_staff: Collection[str]
) -> Collection[str] | None:
    """Return the ids of the people that a person may address; None means all."""
    if writes_to_all(person.role, tenant, open_to_staff):
        return None
    allowed = {id_text(person.id)}
    for owned in await directory.ownerships.of(tenant, person.id):
        if owned.kind == "group":  # the owner of a supergroup owns each of its groups
            allowed.update(await directory.groups.member_ids(tenant, owned.id))
    return allowed


async def _check_people(
    directory: Directory, tenant: str, person: User, addressees: Placed, open_to_staff: Collection[str]
) -> None:
    """Check that the sender may write to these people. Raises Forbidden NOT_OWNER for the first person in no group of
    the sender. An unknown id is refused as one.
    """
    named = [
        (place, id_text(one.id))
        for place, one in addressees
        if isinstance(one, Addressee) and not isinstance(one.id, UnsetType)
    ]
    if all(user == id_text(person.id) for _, user in named):
        return
    allowed = await allowed_people(directory, tenant, person, open_to_staff)
    for place, user in named:
        if allowed is not None and user not in allowed:
            raise Forbidden("NOT_OWNER", "The person is in no group of the sender.", f"{place}.id")
