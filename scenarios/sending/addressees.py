"""`to`: people, groups and supergroups of the directory, as an author writes them, as the check sees them, and as the
recipients of a delivery.

The person of the event and all people of the bot are known to the bot only (C-106). A person of the directory is one
recipient, however many chats it has with the bot, and gets nothing where it has opted out. Others are named by their
chat, `telegram-bot:100001`.
"""

import asyncio
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import tzinfo
from itertools import groupby
from zlib import crc32

from msgspec import UNSET, Struct, UnsetType

from core.errors import Invalid
from core.model.delivery import Recipient
from core.model.json_form import JsonSchema
from core.model.people import fault_of_address
from core.orders import Addressee
from core.orders.addressing import each_once
from core.orders.order import AnyAddressee, read_recipient
from core.orders.preparation import MAX_RECIPIENTS
from scenarios.bot.data import Data, ListNode, MapNode, Node, Scalar, describe, is_empty, plain
from scenarios.context import Context
from scenarios.engine.triggers import SCHEDULED
from scenarios.placeholders.values import as_list, is_list
from scenarios.schema.conditions import CONDITION, condition_complaints, unmet
from scenarios.schema.rules import RULE_ENTRIES
from scenarios.schema.types import TEXT, Complaint, Type, has_placeholder
from scenarios.stores import step_results
from scenarios.stores.people import People
from scenarios.stores.variables import Variables
from scenarios.words import sentence

PERSON = "person"
"""`to: person`: the person of the event."""


def people_of(written: Data) -> Mapping[str, Data] | None:
    """Return `{people: true}`, perhaps with `when`: all people of the bot; None for other addressees."""
    return written if isinstance(written, Mapping) and written.get("people") else None


class EventPerson(Struct, frozen=True):
    """`person`: the person of the event."""


class BotPeople(Struct, frozen=True):
    """`{people: true}`: all people of the bot, with `when` those whose variables fulfil it."""

    when: Data = None


def read_addressees(value: Data, name: str, zone: tzinfo) -> Sequence[Addressee]:
    """Return the addressees of `{group: "ИВТ-21"}`, `{supergroup: …}`, `{id: 42}`, `{id: 42, contacts: {sms: "+7…"}}`,
    the last two also with `values` of a personal text, an id, `sms:+7…`, `42=sms:+7…`, `group:ИВТ-21`, or a list of
    them. Raises Invalid RECIPIENT_MALFORMED; the rest is checked with the order.
    """
    return [_addressee(one, number) for number, one in enumerate(_each(value))]


def read_audience(value: Data, name: str, zone: tzinfo) -> Sequence[Addressee | EventPerson | BotPeople]:
    """Return the same, with the people whom only the bot knows. Raises Invalid RECIPIENT_MALFORMED, and
    NOBODY_ADDRESSED for a list of nobody.
    """
    found = [_member(one, number) for number, one in enumerate(_each(value))]
    if value is not None and not found:
        raise nobody_addressed()
    return found


def _each(value: Data) -> Sequence[Data]:
    """Return what is written one by one: a placeholder may have put a list into the list."""
    found = [] if value == "" else as_list(value)
    return [one for part in found for one in (part if is_list(part) else [part])]


def _member(written: Data, number: int) -> Addressee | EventPerson | BotPeople:
    if (people := people_of(written)) is not None:
        return BotPeople(people.get("when"))
    return EventPerson() if written == PERSON else _addressee(written, number)


def nobody_addressed() -> Invalid:
    return Invalid("NOBODY_ADDRESSED", sentence("names_no_recipient"), "to")


def _addressee(written: Data, number: int) -> Addressee:
    if isinstance(written, str) and re.search("[:=]", written):
        written = _of_line(written, f"to.{number}")
    if isinstance(written, int | str) and not isinstance(written, bool) and written != "":
        return Addressee(written)
    if isinstance(written, Mapping):
        if group := written.get("group"):
            return Addressee(group=str(group))
        if supergroup := written.get("supergroup"):
            return Addressee(supergroup=str(supergroup))
        if isinstance(user := written.get("id"), int | str) and user != "":
            return _person(user, written, f"to.{number}")
    detail = sentence("addressee_is_one")
    raise Invalid("RECIPIENT_MALFORMED", detail, f"to.{number}")


def _of_line(line: str, path: str) -> Mapping[str, Data]:
    try:
        return read_recipient(line)
    except ValueError as error:
        raise Invalid("RECIPIENT_MALFORMED", str(error), path) from None


def _person(user: int | str, written: Mapping[str, Data], path: str) -> Addressee:
    name = str(written["name"]) if written.get("name") else UNSET
    contacts, values = written.get("contacts"), written.get("values")
    if values is not None and not isinstance(values, Mapping):
        raise Invalid("RECIPIENT_MALFORMED", "Values are {name: value}.", f"{path}.values")
    used: dict[str, str | list[str]] | UnsetType = UNSET
    if isinstance(contacts, Mapping):
        used = {str(channel): [str(one) for one in as_list(given)] for channel, given in contacts.items()}
    filled: dict[str, str | float | None] | UnsetType = UNSET
    if values:
        filled = {str(field): str(value) for field, value in values.items()}
    return Addressee(user, name, used, filled)


_NAMES = ("id", "group", "supergroup")
_PROPERTIES: JsonSchema = {
    **{name: {"type": ["string", "integer"]} for name in _NAMES},
    "name": {"type": "string"},
    "contacts": {"type": "object"},
    "values": {"type": "object"},
}
_PEOPLE: JsonSchema = {"people": {"enum": [True]}, "when": CONDITION.schema}


def _schema(properties: JsonSchema) -> JsonSchema:
    one = {"anyOf": [{"type": ["string", "integer"]}, {"type": "object", "properties": properties}]}
    return {"anyOf": [one, {"type": "array", "items": one}]}


def _complaints(node: Node) -> Iterator[Complaint]:
    for item in node.items if isinstance(node, ListNode) else (node,):
        yield from _complaints_of(item)


def _audience_complaints(node: Node) -> Iterator[Complaint]:
    for item in node.items if isinstance(node, ListNode) else (node,):
        if isinstance(item, MapNode) and (item.get("people") or item.get("when")):
            yield from _people_complaints(item)
        elif isinstance(item, Scalar) and item.text == "people":
            yield item, sentence("addressee_people_true")
        else:
            yield from _complaints_of(item)


def _complaints_of(item: Node) -> Iterator[Complaint]:
    if isinstance(item, MapNode):
        yield from _map_complaints(item)
    else:
        yield from TEXT.check(item)
        yield from _line_complaints(item)


def _people_complaints(node: MapNode) -> Iterator[Complaint]:
    people, when = node.get("people"), node.get("when")
    if people is None or plain(people) is not True:
        yield people or node, sentence("addressee_people_true")
    if when is not None:
        yield from condition_complaints(when)
    yield from _unknown_names(node, _PEOPLE)


def _unknown_names(node: MapNode, names: Collection[str]) -> Iterator[Complaint]:
    for key, _ in node.pairs:
        if key.text not in names:
            yield key, sentence("addressee_has_no", name=key.text, words=", ".join(names))


def _line_complaints(node: Node) -> Iterator[Complaint]:
    """Yield what is wrong with an addressee in one line: `sms:+7…`, `42=sms:+7…`, `group:ИВТ-21`."""
    if not isinstance(node, Scalar) or has_placeholder(node) or is_empty(node):
        return
    try:
        contacts = read_recipient(node.text).get("contacts", {})
    except ValueError:
        contacts = {"": [""]}
    if any(fault_of_address(channel, one) for channel, given in contacts.items() for one in given):
        yield (
            node,
            sentence("addressee_sms_sms_group", found=node.text),
        )


def _map_complaints(node: MapNode) -> Iterator[Complaint]:
    if sum(node.get(name) is not None for name in _NAMES) != 1:
        yield (
            node,
            sentence("addressee_has_one_id", found=describe(node)),
        )
    yield from _unknown_names(node, _PROPERTIES)
    contacts = node.get("contacts")
    for key, given in contacts.pairs if isinstance(contacts, MapNode) else ():
        for one in given.items if isinstance(given, ListNode) else (given,):
            if isinstance(one, Scalar) and not has_placeholder(one) and fault_of_address(key.text, one.text):
                yield one, sentence("addressee_sms_sms_group", found=f"{key.text}:{one.text}")


ADDRESSEES = Type(
    "an id, a contact such as sms:+7…, {id}, {group}, {supergroup}, or a list of them",
    _schema(_PROPERTIES),
    _complaints,
)
AUDIENCE = Type(
    "person, an id, a contact such as sms:+7…, {id}, {group}, {supergroup}, {people: true}, or a list of them",
    _schema({**_PROPERTIES, **_PEOPLE}),
    _audience_complaints,
    needed=RULE_ENTRIES,
)


IN_DELIVERY = MAX_RECIPIENTS * 9 // 10
"""People of one delivery, on average: they are distributed by a hash, and no delivery may have more than the most."""
_AT_ONCE = 100


async def audience(
    context: Context, to: Sequence[Addressee | EventPerson | BotPeople], *, in_chats: bool
) -> Sequence[AnyAddressee]:
    """Return the recipients. `in_chats`: people of the bot get it in their chats with the bot. Raises Invalid
    NOBODY_ADDRESSED.
    """
    found: list[AnyAddressee] = []
    for one in to:
        if isinstance(one, BotPeople):
            found += await _people(context, one, in_chats=in_chats)
        elif isinstance(one, Addressee):
            found.append(one)
        elif context.person not in ("", SCHEDULED):
            found.append(await _recipient(context, context.channel, context.person, in_chats=False))
    if not found:
        raise nobody_addressed()
    return found


async def parts(context: Context, people: Sequence[AnyAddressee]) -> Sequence[Sequence[AnyAddressee]]:
    """Return the people of each delivery. A repeat after a crash has each person in the same one, although people may
    have come meanwhile.
    """
    if len(people) <= IN_DELIVERY:
        return [people]
    count = int(await step_results.remember(context, str(-(-len(people) // IN_DELIVERY))))
    numbered = sorted(((crc32(str(one.id).encode()) % count, n) for n, one in enumerate(people)))
    return [[people[n] for _, n in part] for _, part in groupby(numbered, key=lambda pair: pair[0])]


async def _people(context: Context, wanted: BotPeople, *, in_chats: bool) -> Sequence[Recipient]:
    """Return the people of the bot whose variables fulfil `when`, in the order of their names in the store."""
    chats = sorted([one async for one in People(context.services.core.store, context.services.tenant).all()])
    found: list[Recipient] = []
    for start in range(0, len(chats), _AT_ONCE):
        page = chats[start : start + _AT_ONCE]
        met = await asyncio.gather(*(_is_meant(context, wanted, *chat) for chat in page))
        meant = [chat for chat, is_meant in zip(page, met, strict=True) if is_meant]
        found += await asyncio.gather(*(_recipient(context, *chat, in_chats=in_chats) for chat in meant))
    return each_once(found)


async def _is_meant(context: Context, wanted: BotPeople, channel: str, person: str) -> bool:
    if not wanted.when:
        return True
    services = context.services
    about = {"channel": channel, "user_id": person, "chat_id": person}
    seen = await Variables(services.core.store, services.tenant).seen(context.bot, about, services.now_ms())
    return not unmet(wanted.when, seen)


async def _recipient(context: Context, channel: str, person: str, *, in_chats: bool) -> Recipient:
    """Return a person of the bot. `in_chats`: without the contacts that only the directory has."""
    services = context.services
    core, tenant = services.core, services.tenant
    user = await core.directory.users.by_contact(tenant, channel, person)
    if user is None:
        known = await People(core.store, tenant).find(channel, person)
        name = f"{known.first_name} {known.last_name}".strip() if known else ""
        return Recipient(f"{channel}:{person}", name or None, {channel: [person]})
    contacts = {channel: [person]} if in_chats else {**user.contacts, channel: user.contacts.get(channel) or [person]}
    left = tuple(contacts) if user.blocked else user.opt_out
    wanted = {name: addresses for name, addresses in contacts.items() if name not in left}
    return Recipient(
        user.id,
        user.name,
        wanted,
        opted_out=left,
        fields=user.fields,
        locale=user.locale or "",
        blocked=user.blocked,
    )
