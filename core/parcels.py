"""How a delivery is written down: its fields in the history, its people in pages, its parcels per channel. Pure.

    people:<page>          [[id, [contacts in each channel], name?, origin?], …]
    parcel:<channel>:<n>   [attempt group, [[id, number, contact, contacts, address], …]]
    plan                   "telegram 2 100,57;vk 0 "   (channel, recipients with a contact, entries of each parcel)

An *entry* is one contact of one recipient in one channel; `number` counts recipients of the delivery from 0, `contact`
the contacts of that recipient in that channel from 0. `lua/parts/outcome.lua` reads the plan.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import msgspec

from core.orders import Id, Order, Recipient
from core.words import Status

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
        """Its outcome as the scripts take it (lua/parts/outcome.lua). `attempts` -1 keeps the count that is stored."""
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


def compact(value: Any) -> str:
    """JSON without spaces, letters as they are."""
    return _encode(value).decode()


def dump_parcel(group: int, entries: Sequence[Entry]) -> str:
    return compact((group, entries))


_decode_parcel = msgspec.json.Decoder(tuple[int, list[Entry]]).decode


def load_parcel(text: str) -> tuple[int, list[Entry]]:
    """The attempt group and the entries, in their order."""
    return _decode_parcel(text)


def cut(entries: Sequence[Entry], size: int) -> list[Sequence[Entry]]:
    """Parcels of at most `size` entries."""
    return [entries[start : start + size] for start in range(0, len(entries), size)]


def entries_of(recipients: Sequence[Recipient], channel: str) -> list[Entry]:
    """All contacts in a channel, in the order of recipients."""
    return [
        Entry(recipient.id, number, contact, len(addresses), address)
        for number, recipient in enumerate(recipients)
        if (addresses := recipient.contacts.get(channel, ()))
        for contact, address in enumerate(addresses)
    ]


def fields_of(order: Order, parcel_sizes: Mapping[str, int]) -> list[str | int]:
    """The history's fields for `lua/enqueue.lua`: name, value, name, value, …"""
    fields: dict[str, str | int] = {
        "sender": compact(order.sender.as_json()),
        "text": order.text,
        "origin": order.origin,
        "channels": ",".join(order.channels),
        "recipients": len(order.recipients),
        "reachable": sum(not person.contacts.keys().isdisjoint(order.channels) for person in order.recipients),
    }
    fields |= _options(order)
    fields |= _people(order)
    plan = []
    for channel in order.channels:
        entries = entries_of(order.recipients, channel)
        parcels = cut(entries, parcel_sizes[channel])
        people = sum(entry.contact == 0 for entry in entries)
        plan.append(f"{channel} {people} {','.join([str(len(parcel)) for parcel in parcels])}")
        for n, parcel in enumerate(parcels):
            fields[f"parcel:{channel}:{n}"] = dump_parcel(0, parcel)
    fields["plan"] = ";".join(plan)
    return list(chain.from_iterable(fields.items()))


def _options(order: Order) -> dict[str, str | int]:
    """What differs from the usual; the usual is not written, a scheduled delivery is to stay small."""
    found: dict[str, str | int] = {}
    if order.lane:
        found["lane"] = order.lane
    if order.priority != USUAL_PRIORITY:
        found["priority"] = order.priority
    if order.kind != USUAL_KIND:
        found["kind"] = order.kind
    if order.tags:
        found["tags"] = compact(list(order.tags))
    return found


USUAL_PRIORITY = 5
USUAL_KIND = "message"


def _people(order: Order) -> dict[str, str]:
    rows = [_person(recipient, order.channels) for recipient in order.recipients]
    return {f"people:{n}": compact(rows[n * PAGE : (n + 1) * PAGE]) for n in range(-(-len(rows) // PAGE))}


def _person(recipient: Recipient, channels: Sequence[str]) -> list[Any]:
    row: list[Any] = [recipient.id, [len(recipient.contacts.get(channel, ())) for channel in channels]]
    if recipient.name is not None or recipient.origin:
        row.append(recipient.name)
    if recipient.origin:
        row.append(list(recipient.origin))
    return row


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


def _leg(channel: str, people: str, sizes: str) -> Leg:
    return Leg(channel, int(people), [int(size) for size in sizes.split(",") if size])
