"""`to`: people, groups and supergroups of the directory, as an author writes them, as the check sees them, and in the
form of the recipients of the HTTP API. Pure.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import UNSET, UnsetType

from core.errors import Invalid
from core.model.contacts import recipient_notation
from core.model.people import faults_of_address
from core.orders import Addressee
from scenarios.bot.data import Data
from scenarios.bot.nodes import ListNode, MapNode, Node, Scalar, describe, is_empty
from scenarios.schema.types import TEXT, Complaint, Type, has_placeholder
from scenarios.words import sentence


def addressees(written: Data) -> Sequence[Addressee]:
    """Return the addressees of `{group: "ИВТ-21"}`, `{supergroup: …}`, `{id: 42}`, `{id: 42, contacts: {sms: "+7…"}}`,
    the last two also with `values` of a personal text, an id, `sms:+7…`, `42=sms:+7…`, `group:ИВТ-21`, or a list of
    them.

    Raises Invalid RECIPIENT_MALFORMED, NOBODY_ADDRESSED; the rest is checked with the order.
    """
    found = [_addressee(one, number) for number, one in enumerate(_listed(written))]
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
        used = {str(channel): [str(one) for one in _listed(given)] for channel, given in contacts.items()}
    filled: dict[str, str | float | None] | UnsetType = UNSET
    if values:
        filled = {str(field): str(value) for field, value in values.items()}
    return Addressee(user, name, used, filled)


def _listed(written: Data) -> Sequence[Data]:
    if written is None:
        return ()
    return written if isinstance(written, list | tuple) else [written]


_NAMES = ("id", "group", "supergroup")
_PROPERTIES = {
    **{name: {"type": ["string", "integer"]} for name in _NAMES},
    "name": {"type": "string"},
    "contacts": {"type": "object"},
    "values": {"type": "object"},
}
_ONE = {"anyOf": [{"type": ["string", "integer"]}, {"type": "object", "properties": _PROPERTIES}]}


def _complaints(node: Node) -> Iterator[Complaint]:
    for item in node.items if isinstance(node, ListNode) else (node,):
        if isinstance(item, MapNode):
            yield from _map_complaints(item)
        else:
            yield from TEXT.check(item)
            yield from _line_complaints(item)


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
    for key, _ in node.pairs:
        if key.text not in _PROPERTIES:
            yield key, sentence("addressee_has_no", name=key.text, words=", ".join(_PROPERTIES))


ADDRESSEES = Type(
    "an id, a contact such as sms:+7…, {id}, {group}, {supergroup}, or a list of them",
    {"anyOf": [_ONE, {"type": "array", "items": _ONE}]},
    _complaints,
)
