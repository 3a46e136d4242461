"""The type of `to`: people, groups and supergroups of the directory."""

from collections.abc import Iterator

from scenarios.bot.nodes import ListNode, MapNode, Node, describe
from scenarios.schema.types import TEXT, Complaint, Type

_NAMES = ("id", "group", "supergroup")
_PROPERTIES = {
    **{name: {"type": ["string", "integer"]} for name in _NAMES},
    "name": {"type": "string"},
    "contacts": {"type": "object"},
}
_ONE = {"anyOf": [{"type": ["string", "integer"]}, {"type": "object", "properties": _PROPERTIES}]}


def _complaints(node: Node) -> Iterator[Complaint]:
    for item in node.items if isinstance(node, ListNode) else (node,):
        if isinstance(item, MapNode):
            yield from _map_complaints(item)
        else:
            yield from TEXT.check(item)


def _map_complaints(node: MapNode) -> Iterator[Complaint]:
    if sum(node.get(name) is not None for name in _NAMES) != 1:
        yield (
            node,
            f"an addressee has one of id, group and supergroup, but this is {describe(node)} without or with more",
        )
    for key, _ in node.pairs:
        if key.text not in _PROPERTIES:
            yield key, f"an addressee has no {key.text!r}; it has {', '.join(_PROPERTIES)}"


ADDRESSEES = Type(
    "an id, {id}, {group}, {supergroup}, or a list of them",
    {"anyOf": [_ONE, {"type": "array", "items": _ONE}]},
    _complaints,
)
