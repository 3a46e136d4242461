"""Values of authors, events and actions: those of YAML and JSON, moments, the missing value; and the nodes of a YAML
file, which have the place of every value. Frozen.

An alias is the same node as its anchor, so a tree may share nodes. `size` counts them as often as they are used.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Final, final

from msgspec import Struct

from scenarios.words import Text, sentence


@final
class Missing:
    """The value of a field that does not exist; unlike null."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = Missing()

Data = None | bool | int | float | str | date | Decimal | Missing | Sequence["Data"] | Mapping[str, "Data"]


class Place(Struct, frozen=True, gc=False):
    """A place in a file. `file` is relative to the bot's folder; lines and columns count from 1."""

    file: str
    line: int = 1
    column: int = 1


Value = str | int | float | bool | None


class Scalar(Struct, frozen=True, gc=False):
    """A single value. `text` is what the author wrote, without quotes. `value` is the same text, unless this is the
    usual form of a number, true, false or null.
    """

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


def plain(node: Node) -> Data:
    """Return the value without places: str, int, float, bool, None, list, dict."""
    if isinstance(node, Scalar):
        return node.value
    if isinstance(node, ListNode):
        return [plain(item) for item in node.items]
    return plain_mapping(node)


def plain_mapping(node: MapNode) -> dict[str, Data]:
    """Return the mapping without places."""
    return {key.text: plain(value) for key, value in node.pairs}


_INTEGER = re.compile(r"[-+]?\d{1,20}", re.ASCII)
_BASES = re.compile(r"0o[0-7]{1,20}|0x[\da-fA-F]{1,16}", re.ASCII)
_FLOAT = re.compile(r"[-+]?(\.\d{1,40}|\d{1,40}(\.\d{0,40})?)([eE][-+]?\d{1,2})?", re.ASCII)
_FLAGS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def read_number(text: str) -> int | float | None:
    """Return the number that a text is in YAML 1.2 (10.3.2), None if it is none: `007` is 7, `1.0e3` 1000."""
    if _INTEGER.fullmatch(text):
        return int(text)
    if _BASES.fullmatch(text):
        return int(text, 0)
    if not _FLOAT.fullmatch(text):
        return None
    number = float(text)
    return int(number) if number.is_integer() and abs(number) < 1e15 else number


def read_flag(text: str) -> bool | None:
    """Return what a text means in YAML 1.1, whose `yes`, `no`, `on` and `off` are flags; None if it means neither."""
    return _FLAGS.get(text.lower()) if text in (text.lower(), text.upper(), text.capitalize()) else None


def text_of(node: Node | None) -> str:
    """Return the text of a scalar; "" of anything else."""
    return node.text if isinstance(node, Scalar) else ""


def is_empty(node: Node | None) -> bool:
    """Return whether nothing is written: null, or an empty mapping, list or text."""
    return node is None or plain_is_empty(node)


def plain_is_empty(node: Node) -> bool:
    if isinstance(node, Scalar):
        return node.value is None or node.value == ""
    return not (node.items if isinstance(node, ListNode) else node.pairs)


def describe(node: Node) -> Text:
    """Return the value in a message."""
    if isinstance(node, ListNode):
        return sentence("list")
    if isinstance(node, MapNode):
        return sentence("mapping")
    return (
        sentence("nothing")
        if node.value is None
        else repr(node.text if len(node.text) <= 60 else node.text[:57] + "...")
    )
