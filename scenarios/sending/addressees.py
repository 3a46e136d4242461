"""`to`: people, groups and supergroups of the directory, as an author writes them, as the check sees them, and in the
form of the recipients of the HTTP API. Pure.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec import UNSET, UnsetType

from core.errors import Invalid
from core.model.contacts import recipient_notation
from core.model.json_form import JsonSchema
from core.model.people import faults_of_address
from core.orders import Addressee
from scenarios.bot.data import Data
from scenarios.bot.nodes import ListNode, MapNode, Node, Scalar, describe, is_empty, plain
from scenarios.schema.conditions import CONDITION, condition_complaints
from scenarios.schema.rules import RULE_ENTRIES
from scenarios.schema.types import TEXT, Complaint, Type, has_placeholder
from scenarios.words import sentence

PERSON = "person"
"""`to: person`: the person of the event."""


def people_of(written: Data) -> Mapping[str, Data] | None:
    """Return `{people: true}`, perhaps with `when`: all people of the bot; None for other addressees."""
    return written if isinstance(written, Mapping) and written.get("people") else None


def addressees(written: Data) -> Sequence[Addressee]:
    """Return the addressees of `{group: "ИВТ-21"}`, `{supergroup: …}`, `{id: 42}`, `{id: 42, contacts: {sms: "+7…"}}`,
    the last two also with `values` of a personal text, an id, `sms:+7…`, `42=sms:+7…`, `group:ИВТ-21`, or a list of
    them.

    Raises Invalid RECIPIENT_MALFORMED, NOBODY_ADDRESSED; the rest is checked with the order.
    """
    found = [_addressee(one, number) for number, one in enumerate(listed(written))]
    if not found:
        raise Invalid("NOBODY_ADDRESSED", sentence("names_no_recipient"), "to")
    return found


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
        return recipient_notation.read(line)
    except ValueError as error:
        raise Invalid("RECIPIENT_MALFORMED", str(error), path) from None


def _person(user: int | str, written: Mapping[str, Data], path: str) -> Addressee:
    name = str(written["name"]) if written.get("name") else UNSET
    contacts, values = written.get("contacts"), written.get("values")
    if values is not None and not isinstance(values, Mapping):
        raise Invalid("RECIPIENT_MALFORMED", "Values are {name: value}.", f"{path}.values")
    used: dict[str, str | list[str]] | UnsetType = UNSET
    if isinstance(contacts, Mapping):
        used = {str(channel): [str(one) for one in listed(given)] for channel, given in contacts.items()}
    filled: dict[str, str | float | None] | UnsetType = UNSET
    if values:
        filled = {str(field): str(value) for field, value in values.items()}
    return Addressee(user, name, used, filled)


def listed(written: Data) -> Sequence[Data]:
    """Return the elements of a list, or the one element; none of None."""
    if written is None:
        return ()
    return written if isinstance(written, list | tuple) else [written]


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
        contacts = recipient_notation.read(node.text).get("contacts", {})
    except ValueError:
        contacts = {"": [""]}
    if any(any(faults_of_address(channel, one)) for channel, given in contacts.items() for one in given):
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
            if isinstance(one, Scalar) and not has_placeholder(one) and any(faults_of_address(key.text, one.text)):
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
