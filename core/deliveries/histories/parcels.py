"""Parcels: the slices of a delivery's recipients for one channel, as the history keeps them. Pure.

    parcel:<channel>:<n>   [attempt group, [[id, number, contact, contacts, address, hours?], …], 1?]

The third value is there if the text is personal. A courier of a version that does not know this cannot read the parcel,
so it does not send the text with its marks.

An *entry* is one contact of one recipient in one channel; `number` counts the recipients of the delivery from 0,
`contact` the contacts of that recipient in that channel from 0.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec

from core.model.contacts.addresses import canonical
from core.model.history_key import HistoryKey, Id
from core.model.json_form import compact_json
from core.model.states import Status

T = TypeVar("T")

PARTS, DETAIL, NOT_SHOWN = "\x1d", "\x1e", "\x1f"
"""Begin, behind the reference of a stored outcome, in how many parts it was paid, what the provider said and the list
of what was not shown.
"""

_ONE_LINE = str.maketrans({"\n": " ", PARTS: " ", DETAIL: " ", NOT_SHOWN: " "})

EntryRow = tuple[Id, int, int, int, str] | tuple[Id, int, int, int, str, str]
"""An `Entry` that is being written: a plain tuple, because a delivery may have 10,000 of them."""


class PaidParts(NamedTuple):
    """In how many parts a message is paid, and what each costs, as the operator has written it."""

    parts: int
    price: str


class StoredReference(NamedTuple):
    """The part of a stored outcome behind its numbers. `parts`: in how many it was paid, 0 if it was not paid in parts.
    `detail`: what the provider said.
    """

    reference: str
    parts: int
    detail: str
    not_shown: Sequence[str]


class Entry(NamedTuple):
    """One contact of one recipient in one channel. Its fields are the row that a parcel keeps. `hours`: in which the
    recipient wants messages; the row has them if it does not want them at any time.
    """

    id: Id
    number: int
    contact: int
    contacts: int
    address: str
    hours: str = ""

    def field(self, channel: str) -> str:
        """Return the name of its field among the outcomes."""
        return outcome_field(self.id, channel, self.contact)

    def item(
        self,
        status: Status,
        reason: str = "",
        reference: str = "",
        attempts: int = -1,
        not_shown: Sequence[str] = (),
        detail: str = "",
        exchange: str = "",
        paid: PaidParts | None = None,
    ) -> list[Any]:
        """Return its outcome as the functions take it (lua/delivery/modules/outcome.lua). `attempts` -1 keeps the count
        that is stored. `detail`: what the provider said, in one line. `exchange`: a line for
        `lua/delivery/modules/exchanges.lua`. `paid`: of a message that was sent or may have been; None if it is not
        paid in parts.
        """
        item = [
            str(self.id),
            "i" if isinstance(self.id, int) else "s",
            self.number,
            self.contact,
            self.contacts,
            status,
            reason,
            reference.translate(_ONE_LINE),
            attempts,
        ]
        if not (not_shown or detail or exchange or paid):
            return item
        said = [compact_json(not_shown) if not_shown else "", detail.translate(_ONE_LINE), exchange]
        return [*item, *said, *(paid or ())]


def outcome_field(recipient: Id, channel: str, contact: int = 0) -> str:
    """Return the field of one contact in the hash of outcomes."""
    return f"{recipient}:{channel}" if contact == 0 else f"{recipient}:{channel}:{contact}"


def load_reference(text: str) -> StoredReference:
    text, _, listed = text.partition(NOT_SHOWN)
    text, _, detail = text.partition(DETAIL)
    reference, _, parts = text.partition(PARTS)
    not_shown = msgspec.json.decode(listed, type=tuple[str, ...]) if listed else ()
    return StoredReference(reference, int(parts.rstrip("+") or 0), detail, not_shown)


def parcel_task(key: HistoryKey, channel: str, number: int) -> str:
    """Return the id of the task that a parcel becomes (`parcel_id` in lua/delivery/modules/plan.lua)."""
    return f"{key.ns}.{key.sender}.{channel}.{number}"


Row = TypeVar("Row", EntryRow, Entry)


def split_label(label: str) -> tuple[str, int]:
    """Return the channel of a label, and the wave of reminders, 0 for the channel itself
    (lua/delivery/modules/plan.lua).
    """
    channel, _, wave = label.partition("~")
    return channel, int(wave or 0)


class StoredParcel(NamedTuple):
    """A parcel as it was cut. `number`: which of the channel's parcels. `group`: its attempt group."""

    channel: str
    number: int
    group: int
    entries: Sequence[Entry]
    personal: int = 0


def cut(rows: Sequence[T], size: int) -> list[Sequence[T]]:
    """Slices of at most `size`; none if there are no rows."""
    if 0 < len(rows) <= size:
        return [rows]
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def cut_aligned(rows: Mapping[str, Sequence[Row]], recipients: int) -> dict[str, list[Sequence[Row]]]:
    """Return parcels by channel, of at most `recipients` recipients, the same ones under the same number in each
    channel. A parcel without entries is empty.
    """
    numbers = sorted({row[1] for of_channel in rows.values() for row in of_channel})
    parcel_of = {number: place // recipients for place, number in enumerate(numbers)}
    parcels: dict[str, list[Sequence[Row]]] = {}
    for channel, of_channel in rows.items():
        found: list[list[Row]] = [[] for _ in range(-(-len(numbers) // recipients))]
        for row in of_channel:
            found[parcel_of[row[1]]].append(row)
        parcels[channel] = list(found)
    return parcels


def dump_parcel(group: int, entries: Sequence[EntryRow], *, is_personal: bool = False) -> str:
    return compact_json((group, entries, 1) if is_personal else (group, entries))


class LoadedParcel(NamedTuple):
    """A parcel as it is stored. `personal`: 1 if the text of the delivery is."""

    group: int
    entries: list[Entry]
    personal: int = 0


load_parcel = msgspec.json.Decoder(LoadedParcel).decode
"""Return a stored parcel, its entries in their order."""


def ids_of(recipients: Collection[str], entries: Iterable[tuple[str, Entry]]) -> dict[str, str]:
    """Return recipient → its id, for those that are named by their id, or by one of their addresses, such as
    `sms:+79990000001` in any written form. `entries`: each with its channel.
    """
    split = ((one, *one.partition(":")[::2]) for one in recipients)
    places = {(channel, canonical(channel, address)): one for one, channel, address in split}
    found: dict[str, str] = {}
    for channel, entry in entries:
        name = str(entry.id)
        if name in recipients:
            found[name] = name
        if one := places.get((channel, canonical(channel, entry.address))):
            found.setdefault(one, name)
    return found
