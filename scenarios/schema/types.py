"""The types of fields: what is wrong with a value, and how an editor sees the type.

A text with a placeholder (`{name}`) is right for every type, as its value is known only later. An empty value is right,
too: it means that the field is not written.
"""

import re
from collections.abc import Callable, Iterator
from datetime import datetime

from msgspec import Struct

from core.model.json_form import JsonSchema
from scenarios.bot.data import Data, ListNode, MapNode, Node, Scalar, describe, is_empty, read_flag, read_number
from scenarios.bot.suggestion import did_you_mean
from scenarios.words import Sentence, Text, sentence

Complaint = tuple[Node, Text]
"""The node that is wrong, and what is wrong with it."""

Complaints = Callable[[Node], Iterator[Complaint]]

_PLACEHOLDER = re.compile(r"""\{\s*(?:[^\W\d]|['"|])""")
_DURATION = re.compile(r"\s*(\d+\s*[wdhms]\s*)+")


class Type(Struct, frozen=True):
    """`name` as authors read it. `complaints` yields what is wrong with a value. `schema` is its JSON Schema. `reads`:
    makes the value of a text; None for a text that it cannot read. `needed`: the entries of mappings in it, at any
    depth, that placeholders may not leave empty: without a value they would mean something else.
    """

    name: Text
    schema: JsonSchema
    complaints: Complaints
    reads: Callable[[str], int | float | bool | None] | None = None
    needed: tuple[str, ...] = ()

    def read(self, value: Data) -> Data:
        """Return what a value that is written in a file means in a field of this type."""
        found = self.reads(value) if self.reads and isinstance(value, str) else None
        return value if found is None else found

    def check(self, node: Node) -> Iterator[Complaint]:
        """Emit what is wrong with the value of a field of this type."""
        if not is_empty(node) and not has_placeholder(node):
            yield from self.complaints(node)


def has_placeholder(node: Node) -> bool:
    return isinstance(node, Scalar) and isinstance(node.value, str) and bool(_PLACEHOLDER.search(node.value))


def scalar_type(
    name: Text,
    schema: JsonSchema,
    accepts: Callable[[Scalar], bool],
    reads: Callable[[str], int | float | bool | None] | None = None,
) -> Type:
    """Return a type of single values."""

    def complaints(node: Node) -> Iterator[Complaint]:
        if not isinstance(node, Scalar) or not accepts(node):
            yield node, sentence("must_be", wanted=name, found=describe(node))

    return Type(name, schema, complaints, reads)


def choice(*words: str) -> Type:
    """Return one of several words."""
    name = sentence("one_of", words=", ".join(words))

    def complaints(node: Node) -> Iterator[Complaint]:
        if not isinstance(node, Scalar) or node.text not in words:
            complaint = sentence("must_be", wanted=name, found=describe(node))
            yield node, did_you_mean(complaint, node.text, words) if isinstance(node, Scalar) else complaint

    return Type(name, {"enum": list(words)}, complaints)


def choices(*words: str) -> Type:
    """Return one of several words, or a list of them."""
    one = choice(*words)

    def complaints(node: Node) -> Iterator[Complaint]:
        for item in node.items if isinstance(node, ListNode) else (node,):
            yield from one.check(item)

    schema = {"anyOf": [one.schema, {"type": "array", "items": one.schema}]}
    return Type(sentence("list_of", words=", ".join(words)), schema, complaints)


def named(*names: str) -> Type:
    """Return a mapping of some of these names to texts."""
    known = choice(*names)

    def complaints(node: Node) -> Iterator[Complaint]:
        yield from map_complaints(node)
        for key, value in node.pairs if isinstance(node, MapNode) else ():
            yield from known.check(key)
            yield from TEXT.check(value)

    return Type(MAPPING.name, {"type": "object", "properties": dict.fromkeys(names, _SCALAR)}, complaints)


def is_whole(node: Scalar) -> bool:
    return isinstance(read_number(node.text), int)


def is_count(node: Scalar) -> bool:
    return is_whole(node) and (read_number(node.text) or 0) > 0


def is_number(node: Scalar) -> bool:
    return read_number(node.text) is not None


def is_duration(node: Scalar) -> bool:
    return is_whole(node) or _DURATION.fullmatch(node.text) is not None


def is_date(node: Scalar) -> bool:
    try:
        datetime.fromisoformat(node.text)
    except ValueError:
        return False
    return True


def text_complaints(node: Node) -> Iterator[Complaint]:
    if not isinstance(node, Scalar):
        yield node, _unquoted(node, sentence("must_be", wanted=sentence("text"), found=describe(node)))
    elif isinstance(node.value, bool):
        yield node, sentence("means_yaml", value=node.text, meaning=str(node.value).lower())


def _unquoted(node: Node, complaint: Sentence) -> Sentence:
    """Return a complaint with the hint for `text: {name}`, which YAML reads as a mapping."""
    if isinstance(node, MapNode) and len(node.pairs) == 1 and is_empty(node.pairs[0][1]):
        return sentence("write_quotes", text=complaint, quoted=f"{{{node.pairs[0][0].text}}}")
    return complaint


def texts_complaints(node: Node) -> Iterator[Complaint]:
    for item in node.items if isinstance(node, ListNode) else (node,):
        yield from TEXT.check(item)


def map_complaints(node: Node) -> Iterator[Complaint]:
    if not isinstance(node, MapNode):
        yield node, sentence("must_be", wanted=sentence("mapping"), found=describe(node))


def keyboard_complaints(node: Node) -> Iterator[Complaint]:
    if not isinstance(node, ListNode):
        yield node, sentence("must_list_rows", found=describe(node))
        return
    for row in node.items:
        if isinstance(row, ListNode):
            for button in row.items:
                yield from button_complaints(button)
        elif not is_empty(row) and not has_placeholder(row):
            yield row, sentence("row_list_buttons_example", found=describe(row))


def keys_complaints(node: Node) -> Iterator[Complaint]:
    yield from keyboard_complaints(node)
    rows = [row for row in node.items if isinstance(row, ListNode)] if isinstance(node, ListNode) else []
    for button in (one for row in rows for one in row.items if isinstance(one, MapNode)):
        for _, goal in button.pairs:
            if isinstance(goal, Scalar) and goal.text != REQUEST_CONTACT and not has_placeholder(goal):
                yield goal, sentence("button_reply_writes_text")


def button_complaints(node: Node) -> Iterator[Complaint]:
    """Yield the complaints of a button: it is its text, or a mapping from the text to a scenario or an address."""
    if not isinstance(node, MapNode):
        yield from TEXT.check(node)
        return
    for _, target in node.pairs:
        if is_empty(target):
            yield target, sentence("button_leads_nowhere")
        yield from TEXT.check(target)


REQUEST_CONTACT = "request_contact"
"""The word of a keyboard behind the text of a button that asks for the person's contact."""

ATTACHMENT_TYPES = ("photo", "video", "document", "animation", "audio", "voice")


def attachment_complaints(node: Node) -> Iterator[Complaint]:
    for item in node.items if isinstance(node, ListNode) else (node,):
        if isinstance(item, MapNode):
            yield from attachment_map_complaints(item)
        else:
            yield from TEXT.check(item)


def attachment_map_complaints(node: MapNode) -> Iterator[Complaint]:
    if is_empty(file := node.get("file")) and is_empty(node.get("file_id")):
        yield node, sentence("attachment_names_file_file")
    if file is not None:
        yield from TEXT.check(file)
    if (kind := node.get("type")) is not None:
        yield from choice(*ATTACHMENT_TYPES).check(kind)


def nothing(_: Node) -> Iterator[Complaint]:
    yield from ()


_SCALAR = {"type": ["string", "number"]}
_TEXTS = {"anyOf": [_SCALAR, {"type": "array", "items": _SCALAR}]}
_BUTTON = {"anyOf": [_SCALAR, {"type": "object", "additionalProperties": _SCALAR}]}
_FILE = {
    "type": "object",
    "properties": {"file": {"type": "string"}, "type": {"enum": list(ATTACHMENT_TYPES)}},
    "required": ["file"],
}
_ATTACHMENT = {"anyOf": [{"type": "string"}, _FILE]}
_ACTIONS = {"anyOf": [{"type": "array", "items": {"$ref": "#/$defs/action"}}, {"type": "string"}]}
_OUTCOME = {"enum": ["completed", "failed", "unknown", "drop", "any", True, False]}

TEXT = Type(sentence("text"), _SCALAR, text_complaints)
TEXTS = Type("a text or a list of texts", _TEXTS, texts_complaints)
WHOLE = scalar_type(sentence("whole_number"), {"type": "integer"}, is_whole, read_number)
COUNT = scalar_type(sentence("whole_number_above"), {"type": "integer", "minimum": 1}, is_count, read_number)
NUMBER = scalar_type(sentence("number"), {"type": "number"}, is_number, read_number)
FLAG = scalar_type(
    sentence("true_false"), {"type": "boolean"}, lambda node: read_flag(node.text) is not None, read_flag
)
DURATION = scalar_type(sentence("duration_example_h_m"), {"type": ["string", "integer"]}, is_duration)
DATE = scalar_type(sentence("date_example"), {"type": "string"}, is_date)
MAPPING = Type(sentence("mapping"), {"type": "object"}, map_complaints)
ANY = Type("any value", {}, nothing)
KEYBOARD = Type(
    "a list of rows of buttons",
    {"type": "array", "items": {"type": "array", "items": _BUTTON}},
    keyboard_complaints,
)
KEYS = Type(
    f"a list of rows of texts, or of {{text: {REQUEST_CONTACT}}}",
    {"type": "array", "items": {"type": "array", "items": _BUTTON}},
    keys_complaints,
)
ATTACHMENT = Type(
    "a file, {file, type}, or a list of them",
    {"anyOf": [_ATTACHMENT, {"type": "array", "items": _ATTACHMENT}]},
    attachment_complaints,
)
FILE = Type("a file", {"type": "string"}, text_complaints)
SCENARIOS = Type("a scenario's name or a list of names", _TEXTS, texts_complaints)
ACTIONS = Type("a list of actions", _ACTIONS, nothing)  # the loader reports the rest
OUTCOMES = Type(
    "completed, failed, unknown, drop, a list of them, any or true",
    {"anyOf": [_OUTCOME, {"type": "array", "items": _OUTCOME}]},
    nothing,  # the loader reports them
)
