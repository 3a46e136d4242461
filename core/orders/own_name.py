"""The rules for messages of a signed-in person: only in its own name, and only to the recipients that the bots allow.

Those are itself, the groups and supergroups that it owns (checked by `core.orders.addressing`), and their members. An
administrator writes to all people, and so does staff where the tenant allows it. Lane and priority are for programs:
with them a delivery delays those of others.
"""

from collections.abc import Collection

from msgspec.structs import replace

from core.admission.quotas import ADMIN, STAFF
from core.directory import Directory
from core.errors import Forbidden
from core.model.delivery import DEFAULT_PRIORITY, NewDelivery, Recipient, Sender
from core.model.people import User, id_text
from core.orders.order import Order, UserRef

TRIAL = "trial"
"""The kind of a delivery that people send to themselves first."""


def is_trial(order: Order, person: User | None) -> bool:
    """Return whether a person tries a message on itself: that costs no quota."""
    if person is None or order.delivery.kind != TRIAL:
        return False
    own = id_text(person.id)
    return all(isinstance(one, UserRef) and id_text(one.id) == own for one in order.addressees)


async def in_own_name(
    directory: Directory, tenant: str, person: User, order: Order, open_to_staff: Collection[str] = ()
) -> NewDelivery:
    """Return the delivery with the person as its sender. `open_to_staff`: the tenants in which staff writes to all.
    Raises Forbidden NOT_YOURSELF, FOR_PROGRAMS, CONTACTS_NOT_ALLOWED, NOT_OWNER.
    """
    given = order.delivery
    if id_text(given.sender.id) != id_text(person.id):
        raise Forbidden("NOT_YOURSELF", "A person sends only in its own name.", "sender.id")
    if given.lane is not None or given.priority != DEFAULT_PRIORITY:
        path = "priority" if given.lane is None else "lane"
        raise Forbidden("FOR_PROGRAMS", "A person has no lane and no priority of its own.", path)
    if person.role != ADMIN:
        _refuse_contacts(order)
        await _check_people(directory, tenant, person, order, open_to_staff)
    return replace(given, sender=Sender(person.id, person.name, person.role))


def _refuse_contacts(order: Order) -> None:
    for number, one in enumerate(order.addressees):
        if isinstance(one, Recipient):
            path = f"{one.place or f'recipients.{number}'}.contacts"
            raise Forbidden("CONTACTS_NOT_ALLOWED", "A person writes to people of the directory, by their id.", path)


async def allowed_people(
    directory: Directory, tenant: str, person: User, open_to_staff: Collection[str]
) -> Collection[str] | None:
    """Return the ids of the people to whom a person may write; None: all."""
    if person.role == ADMIN or (person.role == STAFF and tenant in open_to_staff):
        return None
    allowed = {id_text(person.id)}
    for owned in await directory.ownerships.of(tenant, person.id):
        if owned.kind == "group":  # the owner of a supergroup owns each of its groups
            allowed.update(await directory.groups.member_ids(tenant, owned.id))
    return allowed


async def _check_people(
    directory: Directory, tenant: str, person: User, order: Order, open_to_staff: Collection[str]
) -> None:
    """Check that the sender may write to these people. Raises Forbidden NOT_OWNER for the first person in no group of
    the sender. An unknown id is refused as one.
    """
    named = [(n, id_text(one.id)) for n, one in enumerate(order.addressees) if isinstance(one, UserRef)]
    if all(user == id_text(person.id) for _, user in named):
        return
    allowed = await allowed_people(directory, tenant, person, open_to_staff)
    for number, user in named:
        if allowed is not None and user not in allowed:
            raise Forbidden(
                "NOT_OWNER", f"The person {user!r} is in no group of the sender.", f"recipients.{number}.id"
            )
