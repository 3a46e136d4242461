"""The content of a YAML file with the place of every value: scalars, lists and mappings. Frozen.

An alias is the same node as its anchor, so a tree may share nodes. `size` counts them as often as they are used.
"""

from typing import Any

from msgspec import Struct

Value = str | int | float | bool | None


class Scalar(Struct, frozen=True, gc=False):
    """A single value. `text` is what the author wrote, without quotes: `yes` where `value` is True."""

    value: Value
    text: str
    line: int
    column: int

    size = 1


class ListNode(Struct, frozen=True):
    """A sequence."""

    items: tuple["Node", ...]
    line: int
    column: int
    size: int


class MapNode(Struct, frozen=True):
    """A mapping. `pairs` in the order of the file; no key is there twice. Keys are the written text."""

    pairs: tuple[tuple[Scalar, "Node"], ...]
    line: int
    column: int
    size: int

    def get(self, name: str) -> "Node | None":
        return next((value for key, value in self.pairs if key.text == name), None)


Node = Scalar | ListNode | MapNode


def plain(node: Node) -> Any:
    """Return the value without places: str, int, float, bool, None, list, dict."""
    if isinstance(node, Scalar):
        return node.value
    if isinstance(node, ListNode):
        return [plain(item) for item in node.items]
    return {key.text: plain(value) for key, value in node.pairs}


def is_empty(node: Node | None) -> bool:
    """Return whether nothing is written: null, or an empty mapping, list or text."""
    return node is None or plain_is_empty(node)


def plain_is_empty(node: Node) -> bool:
    if isinstance(node, Scalar):
        return node.value is None or node.value == ""
    return not (node.items if isinstance(node, ListNode) else node.pairs)


def describe(node: Node) -> str:
    """Return the value in a message."""
    if isinstance(node, ListNode):
        return "a list"
    if isinstance(node, MapNode):
        return "a mapping"
    return "nothing" if node.value is None else repr(node.text if len(node.text) <= 60 else node.text[:57] + "...")
