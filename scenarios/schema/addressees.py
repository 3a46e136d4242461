"""The type of `to`: people, groups and supergroups of the directory."""

from collections.abc import Iterator

from core.model.contacts import recipient_notation
from core.model.people import faults_of_address
from scenarios.bot.nodes import ListNode, MapNode, Node, Scalar, describe, is_empty
from scenarios.schema.types import TEXT, Complaint, Type, has_placeholder
from scenarios.words import sentence

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
