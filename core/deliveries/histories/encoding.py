"""The form of a delivery in its history's hash: fields, recipients in pages, the plan of the parcels. Pure.

    people:<page>          [[id, [number of contacts in each channel], name?, origin?, values?, children?, locale?], …]
                           children: [[id, [number of its row, if it is asked about], name], …], of a guardian
                           locale: of who has stated another language than that of the text
    parcel:<channel>:<n>   see `core.deliveries.histories.parcels`
    opted_out              {channel: [number of a recipient that wants no messages there, …]}; missing if there is none
    bound                  `core.model.delivery.Bound`; missing if the sender may write to whomever it names
    blocked                [number of a recipient that was blocked when the delivery was ordered, …]; missing likewise
    content                JSON of `core.model.content.Content`; missing if there is none
    personal               [field, …]: those whose values the recipients have, in this order; missing unless the text
                           is personal
    answer                 JSON of `core.model.question.Question`; missing if the delivery asks nothing
    replies                sender, off, the id of an office, `thread:<id>`, or `about:…` for another message;
                           missing if replies are not looked at
    refused_replies        how many recipients replied though replies are off; `refused_reply:<number>`: who
    texts                  JSON, language → text; missing if there is one text for all languages
    follows                "unreached <suffix>": of a follow-up, whom it goes to and the delivery that it follows
    followed               lines like it: the follow-ups of this delivery
    uninformed             of a delivery to guardians: a list of `core.model.delivery.Uninformed` as JSON
    leave_out              of a follow-up: a list of `core.model.delivery.LeavesOut` as JSON
    left_out               how many people were left out when its parcels were claimed; `left_out:<number>`: why
    plan                   "telegram 90 100,57;sms 3;vk 0"   (channel, recipients with a contact, entries per parcel;
                           without sizes there is one parcel, with one entry for each of these recipients)

`lua/delivery/modules/plan.lua` reads the plan.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import msgspec

from core.deliveries.histories.parcels import EntryRow, cut, cut_aligned, dump_parcel
from core.model.content import Content
from core.model.delivery import (
    DEFAULT_KIND,
    DEFAULT_ORIGIN,
    DEFAULT_PRIORITY,
    Following,
    LeavesOut,
    NewDelivery,
    Recipient,
    Strategy,
    Uninformed,
)
from core.model.history_key import Id, person_key
from core.model.json_form import compact_json
from core.model.question import AskedChild, member_field

FieldOrValue = str | int
"""One argument of HSET: a field's name or its value."""

THREAD = "thread:"
"""Begins `replies` of a delivery that belongs to a thread; the id follows."""
PAGE = 200


@dataclass(frozen=True, slots=True)
class StoredRecipient:
    """A recipient as the history keeps it. `contacts`: how many it has in each channel of the delivery. `values`: for
    the fields of a personal text. `children`: those about whom a guardian gets the message.
    `is_reached`: of a child that is asked about: whether one of its guardians was reached. `locale`: the
    language that it has stated, "" without one, or if it is that of the text.
    """

    number: int
    id: Id
    contacts: Sequence[int]
    name: str | None = None
    origin: Sequence[str] = ()
    values: Sequence[str | None] = ()
    children: Sequence[AskedChild] = ()
    is_reached: bool = False
    locale: str = ""

    @property
    def is_own_child(self) -> bool:
        """Return whether the message is about the recipient itself, beside its guardians."""
        return any(one.number == self.number for one in self.asked_children)

    @property
    def asked_children(self) -> Sequence[AskedChild]:
        """The children for whom it answers; none if it answers for itself."""
        return [one for one in self.children if one.places]


@dataclass(frozen=True, slots=True)
class ChannelPlan:
    """One channel of a delivery. `recipients`: those with a contact. `parcels`: entries of each parcel at release."""

    channel: str
    recipients: int
    parcels: Sequence[int]


def history_fields(delivery: NewDelivery, parcel_sizes: Mapping[str, int]) -> list[FieldOrValue]:
    """Return the arguments of HSET for `lua/delivery/functions/enqueue.lua`, except the number of recipients: field,
    value, field, …

    `parcel_sizes`: for each channel the most recipients of one parcel.
    """
    numbers = child_numbers(delivery)
    recipients, entries, reached = _rows(delivery, numbers)
    fields: list[FieldOrValue] = ["sender", compact_json(delivery.sender), "text", delivery.text]
    fields += _options(delivery)
    fields += _documents(delivery)
    fields += _asked_children(delivery, numbers)
    for page, page_rows in enumerate(cut(recipients, PAGE)):
        fields += (f"people:{page}", compact_json(page_rows))
    plan = []
    for channel, parcels in _parcels(delivery, entries, parcel_sizes).items():
        for number, parcel in enumerate(parcels):
            fields += (f"parcel:{channel}:{number}", dump_parcel(0, parcel, is_personal=delivery.personal is not None))
        plan.append(_dump_channel_plan(channel, reached[channel], len(entries[channel]), parcels))
    fields += ("plan", ";".join(plan))
    if opted_out := _opted_out(delivery):
        fields += ("opted_out", compact_json(opted_out))
    if blocked := [number for number, one in enumerate(delivery.recipients) if one.blocked]:
        fields += ("blocked", compact_json(blocked))
    if hours := _hours(delivery):
        fields += ("hours", compact_json(hours))
    if max(reached.values(), default=0) < len(recipients):
        fields += ("reachable", sum(any(contacts) for _, contacts, *_ in recipients))
    return fields


def _parcels(
    delivery: NewDelivery, entries: Mapping[str, Sequence[EntryRow]], sizes: Mapping[str, int]
) -> dict[str, list[Sequence[EntryRow]]]:
    """Return the entries of each parcel of each channel. With the strategy `first` the parcels with one number have the
    same recipients in all channels, so that the outcomes of one parcel concern one parcel of each later channel. Where
    people are asked wave by wave, each parcel has one person.
    """
    if delivery.question and delivery.question.need:
        return cut_aligned(entries, 1)
    if delivery.strategy is Strategy.FIRST:
        return cut_aligned(entries, sizes[delivery.channels[0]])
    return {channel: cut(rows, sizes[channel]) for channel, rows in entries.items()}


def child_numbers(delivery: NewDelivery) -> dict[str, int]:
    """Return the number of the row of each child that the question is about, by id as text: its own as a recipient, or
    one behind all recipients. Empty if the delivery goes to no guardians, or asks nothing.
    """
    if delivery.question is None or not any(one.children for one in delivery.recipients):
        return {}
    numbers = {str(one.id): number for number, one in enumerate(delivery.recipients)}
    children = dict.fromkeys(str(child.id) for one in delivery.recipients for child in one.children)
    behind = iter(range(len(numbers), len(numbers) + len(children)))
    return {child: numbers[child] if child in numbers else next(behind) for child in children}


def _asked_children(delivery: NewDelivery, numbers: Mapping[str, int]) -> Iterator[FieldOrValue]:
    """Emit the children of guardians: `answers_children:<page>` has the numbers of the rows of each recipient,
    `answers_children` how many rows are asked for; children behind the recipients are members.
    """
    if not numbers:
        return
    rows = [
        [numbers[str(child.id)] for child in one.children] or [number] for number, one in enumerate(delivery.recipients)
    ]
    for page, some in enumerate(cut(rows, PAGE)):
        yield from (f"answers_children:{page}", ";".join(" ".join(map(str, row)) for row in some))
    yield from ("answers_children", len({number for row in rows for number in row}))
    found = {str(child.id): child.id for one in delivery.recipients for child in one.children}
    members = {child: number for child, number in numbers.items() if number >= len(rows)}
    yield from ("answers_members", len(members))
    for child, number in members.items():
        key = person_key(found[child])
        yield from (member_field(number), key, f"answers_number:{key}", number)


def _rows(
    delivery: NewDelivery, numbers: Mapping[str, int]
) -> tuple[list[list[Any]], dict[str, list[EntryRow]], dict[str, int]]:
    """Return the rows of the recipients; by channel the rows of its entries, and how many recipients have a contact
    there."""
    recipients: list[list[Any]] = []
    entries: dict[str, list[EntryRow]] = {channel: [] for channel in delivery.channels}
    reached = dict.fromkeys(entries, 0)
    for number, recipient in enumerate(delivery.recipients):
        contacts = []
        for channel, rows in entries.items():
            addresses = recipient.contacts.get(channel, ())
            contacts.append(len(addresses))
            if addresses:
                reached[channel] += 1
            for contact, address in enumerate(addresses):
                row = recipient.id, number, contact, len(addresses), address
                rows.append((*row, recipient.hours) if recipient.hours else row)
        recipients.append(_recipient_row(recipient, contacts, numbers))
    language = delivery.language
    rows_of_people = zip(delivery.recipients, recipients, strict=True)
    recipients = [_with_locale(row, one.locale) if one.locale != language else row for one, row in rows_of_people]
    if delivery.personal is not None:
        rows_with_values = zip(delivery.recipients, recipients, delivery.personal.values, strict=True)
        recipients = [[*row[:2], one.name, one.origin, values, *row[5:]] for one, row, values in rows_with_values]
    return recipients, entries, reached


def _opted_out(delivery: NewDelivery) -> dict[str, list[int]]:
    """Return channel → numbers of the recipients that want no messages there."""
    leavers = [(number, one.opted_out) for number, one in enumerate(delivery.recipients) if one.opted_out]
    if not leavers:
        return {}
    numbers = {channel: [number for number, left in leavers if channel in left] for channel in delivery.channels}
    return {channel: found for channel, found in numbers.items() if found}


def load_opted_out(text: str | None) -> dict[str, set[int]]:
    decoded: dict[str, set[int]] = msgspec.json.decode(text or "{}", type=dict[str, set[int]])
    return decoded


def _hours(delivery: NewDelivery) -> dict[str, list[int]]:
    """Return the hours in which recipients want messages → the numbers of these recipients."""
    found: dict[str, list[int]] = {}
    for number, one in enumerate(delivery.recipients):
        if one.hours:
            found.setdefault(one.hours, []).append(number)
    return found


def load_hours(text: str | None) -> dict[int, str]:
    """Return the number of each recipient that wants messages in hours of its own, and these hours."""
    decoded: dict[str, list[int]] = msgspec.json.decode(text or "{}", type=dict[str, list[int]])
    return {number: hours for hours, numbers in decoded.items() for number in numbers}


def _recipient_row(recipient: Recipient, contacts: list[int], numbers: Mapping[str, int]) -> list[Any]:
    if recipient.children:
        places = [[numbers[str(one.id)]] if numbers else [] for one in recipient.children]
        children = [[one.id, place, one.name] for one, place in zip(recipient.children, places, strict=True)]
        return [recipient.id, contacts, recipient.name, recipient.origin, (), children]
    if recipient.origin:
        return [recipient.id, contacts, recipient.name, recipient.origin]
    return [recipient.id, contacts] if recipient.name is None else [recipient.id, contacts, recipient.name]


_NO_VALUES = (None, None, None, (), (), ())


def _with_locale(row: list[Any], locale: str) -> list[Any]:
    return [*row, *_NO_VALUES[len(row) :], locale] if locale else row


def _dump_channel_plan(channel: str, reached: int, entries: int, parcels: Sequence[Sequence[EntryRow]]) -> str:
    if entries == reached and (not parcels or (len(parcels) == 1 and entries)):
        return f"{channel} {reached}"
    return f"{channel} {reached} {','.join(str(len(parcel)) for parcel in parcels)}"


def _options(delivery: NewDelivery) -> Iterator[FieldOrValue]:
    """Emit what differs from the defaults. Defaults are not stored, because scheduled deliveries must stay small."""
    if delivery.origin != DEFAULT_ORIGIN:
        yield from ("origin", delivery.origin)
    if delivery.lane:
        yield from ("lane", delivery.lane)
    if delivery.priority != DEFAULT_PRIORITY:
        yield from ("priority", delivery.priority)
    if delivery.kind != DEFAULT_KIND:
        yield from ("kind", delivery.kind)
    if delivery.tags:
        yield from ("tags", compact_json(delivery.tags))
    if delivery.strategy is Strategy.FIRST:
        yield from ("strategy", "first")
    if delivery.wait is not None:
        yield from ("wait", delivery.wait // timedelta(milliseconds=1))


def _documents(delivery: NewDelivery) -> Iterator[FieldOrValue]:
    """Emit what is stored as JSON, and where replies go, if the delivery has it."""
    personal = delivery.personal.fields if delivery.personal else None
    leave_out = delivery.follows.leaves_out if delivery.follows else None
    documents = {
        "content": delivery.content,
        "personal": personal,
        "answer": delivery.question,
        "leave_out": leave_out,
        "texts": delivery.texts or None,
        "uninformed": delivery.uninformed or None,
    }
    for name, value in documents.items():
        if value is not None:
            yield from (name, compact_json(value))
    if delivery.replies or delivery.thread:
        yield from ("replies", delivery.replies or f"{THREAD}{delivery.thread}")
    if delivery.bound:
        yield from ("bound", delivery.bound)
    if delivery.follows:
        yield from ("follows", dump_link(delivery.follows.of, delivery.follows.key.suffix))


def dump_link(of: Following, suffix: str) -> str:
    """Return a link between a delivery and its follow-up, as lua/delivery/modules/follow_up.lua writes it."""
    return f"{of} {suffix}"


def load_links(text: str | None) -> list[tuple[Following, str]]:
    """Return the links of a field, each as `of` and the suffix of the other delivery."""
    lines = [line.partition(" ") for line in (text or "").split("\n") if line]
    return [(Following(of), suffix) for of, _, suffix in lines]


_decode_leaves_out = msgspec.json.Decoder(list[LeavesOut]).decode


def load_leaves_out(text: str | None) -> list[LeavesOut]:
    return _decode_leaves_out(text) if text else []


_decode_uninformed = msgspec.json.Decoder(list[Uninformed]).decode


def load_uninformed(text: str | None) -> list[Uninformed]:
    return _decode_uninformed(text) if text else []


_decode_content = msgspec.json.Decoder(Content).decode


def load_content(text: str | None) -> Content | None:
    return _decode_content(text) if text else None


def load_recipients(text: str, page: int) -> list[StoredRecipient]:
    return [_load_recipient(page * PAGE + n, row) for n, row in enumerate(msgspec.json.decode(text))]


def _load_recipient(number: int, row: list[Any]) -> StoredRecipient:
    found = StoredRecipient(number, *row[:5])
    if len(row) <= 5:
        return found
    return replace(found, children=msgspec.convert(row[5], list[AskedChild]), locale=row[6] if len(row) > 6 else "")


def load_plan(text: str) -> list[ChannelPlan]:
    return [_load_channel_plan(*part.split(" ")) for part in text.split(";") if part]


def _load_channel_plan(channel: str, recipients: str, sizes: str = "") -> ChannelPlan:
    if not sizes and recipients != "0":
        sizes = recipients
    return ChannelPlan(channel, int(recipients), [int(size) for size in sizes.split(",") if size])
