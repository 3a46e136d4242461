"""Makes addressees of the people of another delivery who were not reached, or have not answered it (D-50).

A person is left out who was reached by the delivery, by an earlier follow-up of it, or by the delivery that it follows
itself. This is decided twice: here for all people of the delivery, and again when a parcel is claimed
(lua/delivery/modules/follow_up.lua) for those who were reached meanwhile.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from core.deliveries.deliveries import Deliveries
from core.deliveries.histories.encoding import StoredRecipient, load_leaves_out, load_links
from core.deliveries.histories.projection import HistoryFields, row_numbers
from core.deliveries.histories.reader import HistoryReader
from core.deliveries.histories.recipient_search import STILL_COMING, why_not_reached
from core.directory import Directory
from core.errors import Conflict, Invalid, NotFound, Refused
from core.model.delivery import Following, FollowUp, LeavesOut, NewDelivery
from core.model.history_key import HistoryKey
from core.model.people import id_text
from core.model.question import row_field
from core.model.states import DeliveryState, Reason
from core.orders.order import Addressee, AnyAddressee, Caller, Order, Placed
from core.orders.sending_policy import allowed_people
from core.redis.store import Store

PLACE = "recipients.0"
MOST = 50
"""Deliveries that one follow-up reads."""
GONE = "gone"
"""Why a person is left out who was deleted, or whom the sender may not address any more."""
_REASONS = {Following.UNREACHED: Reason.REACHED_MEANWHILE, Following.UNANSWERED: Reason.ANSWERED}


class FollowedPeople(Struct, frozen=True):
    """The recipients of a follow-up. `rows`: place of an addressee → its numbers in the deliveries looked at.
    `left_out`: why → the number of people of the other delivery that it omits. `waiting`: recipients that the other
    delivery may still reach.
    """

    addressees: Placed
    follow_up: FollowUp
    rows: Mapping[str, Sequence[int]]
    left_out: Mapping[str, int]
    waiting: int

    def linked(self, delivery: NewDelivery) -> NewDelivery:
        """Return the delivery as the follow-up, with the number of each recipient in the deliveries looked at."""
        rows = [self.rows[one.place] for one in delivery.recipients]
        links = [
            LeavesOut(link.suffix, link.of, [row[column] for row in rows])
            for column, link in enumerate(self.follow_up.leaves_out)
        ]
        return replace(delivery, follows=replace(self.follow_up, leaves_out=links))


class _Followed(Struct, frozen=True):
    """The delivery that is followed, and the links of each of its recipients: their numbers are in its order."""

    key: HistoryKey
    fields: HistoryFields
    recipients: Sequence[StoredRecipient]
    links: Sequence[LeavesOut]


class FollowUps:
    """One per process. `open_to_staff`: the tenants in which staff writes to all."""

    def __init__(
        self, store: Store, deliveries: Deliveries, directory: Directory, open_to_staff: Collection[str]
    ) -> None:
        self._reader = HistoryReader(store)
        self._deliveries = deliveries
        self._directory = directory
        self._open_to_staff = open_to_staff

    async def people(self, order: Order, caller: Caller) -> FollowedPeople | None:
        """Return the recipients of a follow-up; None for another order. Raises Invalid FOLLOWED_NOT_FOUND,
        HISTORY_KEY_MALFORMED, FOLLOWED_ASKS_NOTHING, FOLLOW_UP_LANE, NOBODY_LEFT; Conflict NOT_RELEASED,
        FOLLOW_UPS_TOO_MANY.
        """
        given = order.addressees[0] if order.addressees else None
        if not isinstance(given, Addressee) or not given.follow_up:
            return None
        try:
            found = await self._followed(given.follow_up, given.of or Following.UNREACHED, caller)
        except NotFound as unknown:
            raise Invalid("FOLLOWED_NOT_FOUND", unknown.detail, f"{PLACE}.follow_up") from None
        except Refused as refusal:
            refusal.path = f"{PLACE}.follow_up"
            raise
        if order.delivery.lane not in (None, found.fields["lane"]):
            detail = "A follow-up has no lane, or that of the delivery that it follows."
            raise Invalid("FOLLOW_UP_LANE", detail, "lane")
        return await self._people(found, caller)

    async def _people(self, found: _Followed, caller: Caller) -> FollowedPeople:
        done = await self._left_out(found, caller.tenant)
        rest = [one for one in found.recipients if one.number not in done]
        addressees = await self._addressees(found, rest, caller)
        left_out = Counter[str](done.values())
        left_out[GONE] = len(rest) - len(addressees)
        if not addressees:
            raise Invalid("NOBODY_LEFT", "Nobody is left whom the follow-up would go to.", f"{PLACE}.follow_up")
        numbers = [one.number for one, _ in addressees]
        waiting = await self._waiting(found, caller.tenant, numbers)
        placed = [(f"{PLACE}.follow_up.{number}", *one) for number, one in enumerate(addressees)]
        return FollowedPeople(
            [(place, one) for place, _, one in placed],
            FollowUp(found.key, found.links[0].of, found.links),
            {place: [link.numbers[one.number] for link in found.links] for place, one, _ in placed},
            {why: count for why, count in left_out.items() if count},
            waiting,
        )

    async def _followed(self, given: str, of: Following, caller: Caller) -> _Followed:
        key = HistoryKey.parse(given)
        if caller.person and key.sender != id_text(caller.person.id):
            raise NotFound("HISTORY_NOT_FOUND", "There is no such delivery.")
        fields = await self._reader.fields(key, caller.tenant)
        if fields["state"] == DeliveryState.SCHEDULED:
            raise Conflict("NOT_RELEASED", "The delivery has not been released; nobody is missing yet.")
        if of is Following.UNANSWERED and not fields["answer"]:
            raise Invalid("FOLLOWED_ASKS_NOTHING", "The delivery asks nothing.")
        recipients = await self._reader.recipients(key, fields)
        links = [LeavesOut(key.suffix, of, range(len(recipients)))]
        links += load_leaves_out((await self._reader.read_fields(key, ["leave_out"]))["leave_out"])
        siblings = [suffix for same, suffix in load_links(fields["followed"]) if same is of]
        if len(links) + len(siblings) > MOST:
            raise Conflict("FOLLOW_UPS_TOO_MANY", f"At most {MOST} deliveries follow one another.")
        for suffix in siblings:
            links.append(await self._sibling(key, HistoryKey.of(key.shard, suffix), of, recipients))
        return _Followed(key, fields, recipients, links)

    async def _sibling(
        self, followed: HistoryKey, key: HistoryKey, of: Following, recipients: Sequence[StoredRecipient]
    ) -> LeavesOut:
        """Return the link to an earlier follow-up; without its people if it is kept no more."""
        links = load_leaves_out((await self._reader.read_fields(key, ["leave_out"]))["leave_out"])
        own = (link.numbers for link in links if link.suffix == followed.suffix)
        numbers = {number: there for link in own for there, number in enumerate(link)}
        return LeavesOut(key.suffix, of, [numbers.get(one.number, -1) for one in recipients])

    async def _left_out(self, found: _Followed, tenant: str) -> Mapping[int, Reason]:
        """Return, by their numbers, the recipients of whom a delivery needs nothing more, and why."""
        left_out: dict[int, Reason] = {}
        for link in found.links:
            done = await self._done(HistoryKey.of(found.key.shard, link.suffix), link.of, tenant)
            for number, there in enumerate(link.numbers):
                if there in done:
                    left_out.setdefault(number, _REASONS[link.of])
        return left_out

    async def _done(self, key: HistoryKey, of: Following, tenant: str) -> Collection[int]:
        """Return the numbers of those whom a delivery has reached, or who have answered it."""
        try:
            fields = await self._reader.fields(key, tenant)
        except NotFound:
            return ()
        total = int(fields["recipients"] or 0)
        if of is Following.UNREACHED:
            return await self._deliveries.recipients.reached(key, total)
        if not fields["answer"]:
            return ()
        people = await self._reader.recipients(key, fields)
        rows = await self._reader.answers(key, fields, people)
        return {one.number for one in people if all(rows[row_field(number)] for number in row_numbers(one))}

    async def _waiting(self, found: _Followed, tenant: str, numbers: Sequence[int]) -> int:
        if found.fields["finished"] is not None:
            return 0
        records = await self._deliveries.recipients.records_of(found.key, tenant, numbers)
        return sum(why_not_reached(one) in STILL_COMING for one in records)

    # who they are now

    async def _addressees(
        self, found: _Followed, recipients: Sequence[StoredRecipient], caller: Caller
    ) -> Sequence[tuple[StoredRecipient, AnyAddressee]]:
        """Return the people with their contacts of today: those of the directory, else those of the delivery."""
        users = await self._directory.users.lookup(caller.tenant, [one.id for one in recipients])
        unknown = {one.number for one, user in zip(recipients, users, strict=True) if user is None}
        contacts = await self._contacts(found, unknown) if unknown else {}
        allowed = None
        if person := caller.person:
            allowed = await allowed_people(self._directory, caller.tenant, person, self._open_to_staff)
        fields: list[str] = json.loads(found.fields["personal"] or "[]")
        people: list[tuple[StoredRecipient, AnyAddressee]] = []
        for one in recipients:
            values = {field: value for field, value in zip(fields, one.values, strict=False) if value is not None}
            given = contacts.get(one.number, {})
            was_deleted = one.number in unknown and any(one.contacts) and not given
            if was_deleted or (allowed is not None and id_text(one.id) not in allowed):
                continue
            if one.number not in unknown:
                people.append((one, Addressee(one.id, one.name, values=dict(values))))
            elif person is None:
                same: dict[str, str | list[str]] = {channel: list(some) for channel, some in given.items()}
                people.append((one, Addressee(one.id, one.name, contacts=same, values=dict(values))))
        return people

    async def _contacts(self, found: _Followed, numbers: Collection[int]) -> Mapping[int, Mapping[str, Sequence[str]]]:
        """Return number → channel → the addresses that the delivery was given."""
        contacts: dict[int, dict[str, list[str]]] = defaultdict(dict)
        async for parcel in self._reader.parcels(found.key, found.fields):
            for entry in parcel.entries:
                if entry.number in numbers and entry.address:
                    addresses = contacts[entry.number].setdefault(parcel.channel, [])
                    addresses += [entry.address] if entry.address not in addresses else []
        return contacts
