"""How a delivery is written down: its fields in the history, its people in pages, its parcels per channel. Pure.

    people:<page>          [[id, [contacts in each channel], name?, origin?], …]
    parcel:<channel>:<n>   [attempt group, [[id, number, contact, contacts, address], …]]
    plan                   "telegram 90 100,57;sms 3;vk 0"   (channel, recipients with a contact, entries of each parcel
                           unless there is one parcel, with an entry for each of them)

An *entry* is one contact of one recipient in one channel; `number` counts recipients of the delivery from 0, `contact`
the contacts of that recipient in that channel from 0. `lua/shared/outcome.lua` reads the plan.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import msgspec

from core.model.compact_json import compact_json
from core.model.delivery import NewDelivery
from core.model.history_key import Id
from core.model.states import Status

T = TypeVar("T")
Field = str | int
"""The name or the value of one."""
Row = tuple[Id, int, int, int, str]
"""An `Entry` on its way into a parcel."""

PAGE = 200

_encode = msgspec.json.Encoder().encode


class Entry(NamedTuple):
    """One contact of one recipient in one channel. A parcel keeps it as it is: a row of these fields."""

    id: Id
    number: int
    contact: int
    contacts: int
    address: str

    def field(self, channel: str) -> str:
        """Its field among the outcomes."""
        return outcome_field(self.id, channel, self.contact)

    def item(self, status: Status, reason: str = "", reference: str = "", attempts: int = -1) -> list[Any]:
        """Its outcome as the scripts take it (lua/shared/outcome.lua). `attempts` -1 keeps the count that is stored."""
        kind = "i" if isinstance(self.id, int) else "s"
        return [
            str(self.id),
            kind,
            self.number,
            self.contact,
            self.contacts,
            status,
            reason,
            reference.replace("\n", " "),
            attempts,
        ]


def outcome_field(recipient: Id, channel: str, contact: int = 0) -> str:
    return f"{recipient}:{channel}" if contact == 0 else f"{recipient}:{channel}:{contact}"


def dump_parcel(group: int, entries: Sequence[Entry]) -> str:
    return compact_json((group, entries))


_decode_parcel = msgspec.json.Decoder(tuple[int, list[Entry]]).decode


def load_parcel(text: str) -> tuple[int, list[Entry]]:
    """The attempt group and the entries, in their order."""
    return _decode_parcel(text)


def cut(entries: Sequence[T], size: int) -> list[Sequence[T]]:
    """Parcels of at most `size` entries."""
    return (
        [entries]
        if 0 < len(entries) <= size
        else [entries[start : start + size] for start in range(0, len(entries), size)]
    )


def fields_of(order: NewDelivery, parcel_sizes: Mapping[str, int]) -> list[Field]:
    """The history's fields for `lua/delivery/enqueue.lua`, besides how many recipients there are: name, value, name,
    value, …
    """
    people, entries, further = _spread(order)
    fields: list[Field] = ["sender", _encode(order.sender).decode(), "text", order.text, *_options(order)]
    for page, some in enumerate(cut(people, PAGE)):
        fields += (f"people:{page}", _encode(some).decode())
    plan, most_reached = [], 0
    for channel, rows in entries.items():
        reached = len(rows) - further.get(channel, 0)
        if 0 < len(rows) == reached <= parcel_sizes[channel]:  # mostly: one parcel, with one contact of each
            fields += (f"parcel:{channel}:0", _encode((0, rows)).decode())
            plan.append(f"{channel} {reached}")
        else:
            parcels = cut(rows, parcel_sizes[channel])
            for number, one in enumerate(parcels):
                fields += (f"parcel:{channel}:{number}", _encode((0, one)).decode())
            plan.append(_leg_told(channel, reached, len(rows), parcels))
        if reached > most_reached:
            most_reached = reached
    fields += ("plan", ";".join(plan))
    if most_reached < len(people):
        fields += ("reachable", sum(any(contacts) for _, contacts, *_ in people))
    return fields


def _spread(order: NewDelivery) -> tuple[list[list[Any]], dict[str, list[Row]], dict[str, int]]:
    """The people as they are kept; by channel their contacts, and how many of these are not the first of somebody."""
    people: list[list[Any]] = []
    entries: dict[str, list[Row]] = {channel: [] for channel in order.channels}
    further: dict[str, int] = {}
    for number, one in enumerate(order.recipients):
        contacts = []
        for channel, rows in entries.items():
            addresses = one.contacts.get(channel, ())
            contacts.append(len(addresses))
            for contact, address in enumerate(addresses):
                rows.append((one.id, number, contact, len(addresses), address))
            if len(addresses) > 1:
                further[channel] = further.get(channel, 0) + len(addresses) - 1
        row: list[Any] = [one.id, contacts]
        if one.name is not None or one.origin:
            row.append(one.name)
        if one.origin:
            row.append(one.origin)
        people.append(row)
    return people, entries, further


def _leg_told(channel: str, reached: int, entries: int, parcels: Sequence[Sequence[Row]]) -> str:
    """Its part of the plan."""
    if len(parcels) > 1 or entries != reached:
        return f"{channel} {reached} {','.join([str(len(one)) for one in parcels])}"
    return f"{channel} {reached}"


def _options(order: NewDelivery) -> Iterator[Field]:
    """What differs from the usual; the usual is not written, a scheduled delivery is to stay small."""
    if order.origin != USUAL_ORIGIN:
        yield from ("origin", order.origin)
    if order.lane:
        yield from ("lane", order.lane)
    if order.priority != USUAL_PRIORITY:
        yield from ("priority", order.priority)
    if order.kind != USUAL_KIND:
        yield from ("kind", order.kind)
    if order.tags:
        yield from ("tags", compact_json(order.tags))


USUAL_ORIGIN = "api"
USUAL_PRIORITY = 5
USUAL_KIND = "message"


@dataclass(frozen=True, slots=True)
class Person:
    """A recipient as kept: `contacts` counts them in each channel of the delivery, in its order."""

    number: int
    id: Id
    contacts: Sequence[int]
    name: str | None = None
    origin: Sequence[str] = ()


def load_people(text: str, page: int) -> list[Person]:
    return [Person(page * PAGE + n, *row) for n, row in enumerate(msgspec.json.decode(text))]


@dataclass(frozen=True, slots=True)
class Leg:
    """One channel of a delivery. `parcels`: open entries of each parcel at release."""

    channel: str
    people: int
    parcels: Sequence[int]


def load_plan(text: str) -> list[Leg]:
    return [_leg(*part.split(" ")) for part in text.split(";") if part]


def _leg(channel: str, people: str, sizes: str = "") -> Leg:
    if not sizes and people != "0":
        sizes = people
    return Leg(channel, int(people), [int(size) for size in sizes.split(",") if size])
