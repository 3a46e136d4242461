"""What senders may: the rules of the installation by role and tenant, and those for messages of a signed-in person.

A signed-in person writes only in its own name, and only to the recipients that the bots allow: itself, the groups and
supergroups that it owns (checked by `core.orders.addressing`), and their members. An administrator writes to all people
and groups, and so does staff where the tenant allows it. Lane and priority are for programs: with them a delivery
delays those of others.

An order is checked when it is made. While it waits for its time, for a retry or for a reminder, its sender may be
blocked, deleted, or lose a group or its role: `SenderRights`, which `couriers.sending.parcel` asks before the first
attempt of each claim.
"""

from collections.abc import Collection, Mapping, Sequence

import msgspec
from msgspec import Struct, UnsetType
from msgspec.structs import replace

from core.admission.quotas import ADMIN, STAFF
from core.deliveries.histories.encoding import PAGE, StoredRecipient, load_recipients
from core.deliveries.histories.reader import HistoryReader
from core.directory import Directory
from core.directory.departed import DepartedPeople
from core.errors import Forbidden
from core.model.delivery import DEFAULT_PRIORITY, Bound, NewDelivery, Quota, Recipient, Sender
from core.model.history_key import HistoryKey
from core.model.hours import TenantOfficeHours, TenantQuietHours
from core.model.people import User, id_text
from core.model.states import Reason
from core.orders.order import Addressee, Placed
from core.redis.store import Store


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


class SenderRights:
    """One per process. `open_to_staff`: the tenants in which staff writes to all. Methods raise StoreError."""

    def __init__(self, store: Store, open_to_staff: Collection[str] = ()) -> None:
        self._reader = HistoryReader(store)
        self._directory = Directory(store)
        self._departed = DepartedPeople(store)
        self._open_to_staff = open_to_staff

    async def refusals(self, key: HistoryKey, tenant: str, numbers: Collection[int]) -> Mapping[int, Reason]:
        """Return why the sender may not write to recipients of its delivery any more, by their numbers. A sender that
        the directory has never known may write to all.
        """
        (sender,) = await self._directory.users.lookup(tenant, [key.sender])
        if sender is None:
            heir = await self._departed.heir_of(tenant, key.sender)
            (sender,) = await self._directory.users.lookup(tenant, [heir]) if heir else (None,)
            if sender is None and heir is None:
                return {}
        if sender is None or sender.blocked:
            return dict.fromkeys(numbers, Reason.SENDER_BLOCKED)
        return await self._forbidden(key, tenant, sender, numbers)

    async def _forbidden(
        self, key: HistoryKey, tenant: str, sender: User, numbers: Collection[int]
    ) -> Mapping[int, Reason]:
        fields = await self._reader.read_fields(key, ("bound", "sender"))
        ordered_as = msgspec.json.decode(fields["sender"] or '{"id":""}', type=Sender)
        role = sender.role or ordered_as.role
        if not fields["bound"] or writes_to_all(role, tenant, self._open_to_staff):
            return {}
        allowed = None
        if fields["bound"] == Bound.PEOPLE:
            allowed = await allowed_people(self._directory, tenant, sender, self._open_to_staff)
        recipients = await self._recipients(key, numbers)
        owned = await self._owned(tenant, sender, {group for one in recipients for group in one.origin})
        forbidden = [one.number for one in recipients if not _is_allowed(one, owned, allowed)]
        return dict.fromkeys(forbidden, Reason.SENDER_NOT_ALLOWED)

    async def _owned(self, tenant: str, sender: User, groups: Collection[str]) -> Collection[str]:
        owns = self._directory.ownerships.owns
        return {group for group in groups if await owns(tenant, sender.id, "group", group)}

    async def _recipients(self, key: HistoryKey, numbers: Collection[int]) -> Sequence[StoredRecipient]:
        pages = sorted({number // PAGE for number in numbers})
        texts = await self._reader.read_fields(key, [f"people:{page}" for page in pages])
        found = [one for page in pages for one in load_recipients(texts[f"people:{page}"] or "[]", page)]
        return [one for one in found if one.number in numbers]


def _is_allowed(recipient: StoredRecipient, owned: Collection[str], allowed: Collection[str] | None) -> bool:
    """Return whether the sender owns a group through which a person was addressed, or may address it, or a child of
    whom it is a guardian, by its id. `allowed`: whom it may address so; None for all.
    """
    if any(group in owned for group in recipient.origin):
        return True
    about = [recipient.id, *(child.id for child in recipient.children)]
    return not recipient.origin if allowed is None else any(id_text(one) in allowed for one in about)
