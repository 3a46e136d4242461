"""Turns the text of a YAML file into nodes with places. Knows YAML, nothing of bots.

Guarantees: any text gives nodes or problems, never an exception; time and memory are bounded by the length of the
text (depth, aliases). A key is always text, and a key that is there twice is an error. A scalar without quotes is a
number, true or false only if it is written as this value is shown, as in `750`, `1.5`, `true`; `12:30`, `007`, `1.10`
and `yes` are texts. A field that is a number or a flag reads those texts (`scenarios.schema.declaration`).
"""

from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import yaml
from yaml import events
from yaml.constructor import SafeConstructor
from yaml.resolver import Resolver

from core.model.text.characters import nfc
from scenarios.bot import Place
from scenarios.bot.data import ListNode, MapNode, Node, Scalar, Value
from scenarios.loader.reading import Problems
from scenarios.loader.syntax_faults import fault_in
from scenarios.words import SentenceError, Text, sentence

MAX_DEPTH = 50
MAX_SIZE = 1_000_000
"""Values of one file, counting those of an alias as often as it is used."""

Substitute = Callable[[str, Place], str]
"""Replaces variables in a text; the place is for its problems."""

_LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"
_RESOLVER: Any = Resolver()
_CONSTRUCT: dict[str, Callable[[SafeConstructor, yaml.ScalarNode], Any]] = {
    _TAG + "int": SafeConstructor.construct_yaml_int,
    _TAG + "float": SafeConstructor.construct_yaml_float,
    _TAG + "bool": SafeConstructor.construct_yaml_bool,
    _TAG + "null": SafeConstructor.construct_yaml_null,
}
_TEXT = {_TAG + "str", _TAG + "timestamp", _TAG + "merge", _TAG + "value", "!"}


class _Unreadable(SentenceError):
    """The file cannot be read any further."""

    def __init__(self, place: Place, code: str, message: Text) -> None:
        super().__init__(message)
        self.place = place
        self.code = code


def compose(text: str, file: str, problems: Problems, substitute: Substitute | None = None) -> Node | None:
    """Return the root node; None if the file is empty or cannot be read, which is one problem."""
    try:
        return _Composer(text, file, problems, substitute).compose()
    except _Unreadable as error:
        problems.error(error.place, error.code, error.said)
    except yaml.YAMLError as error:
        fault = fault_in(text, error)
        problems.error(Place(file, fault.line, fault.column), "YAML_INVALID", fault.message)
    return None


class _Composer:
    """Reads the events of one file, which PyYAML parses, by recursive descent."""

    def __init__(self, text: str, file: str, problems: Problems, substitute: Substitute | None) -> None:
        self._events: Iterator[yaml.Event] = yaml.parse(nfc(text), Loader=_LOADER)
        self._file = file
        self._problems = problems
        self._substitute = substitute
        self._anchors: dict[str, Node] = {}

    def compose(self) -> Node | None:
        next(self._events)  # the stream's start
        if isinstance(next(self._events), events.StreamEndEvent):
            return None
        root = self._node(next(self._events), 0)
        next(self._events)  # the document's end
        after = next(self._events)
        if not isinstance(after, events.StreamEndEvent):
            self._refuse(after, "SEVERAL_DOCUMENTS", sentence("file_holds_one_document"))
        return root

    def _node(self, event: yaml.Event, depth: int) -> Node:
        if isinstance(event, events.AliasEvent):
            return self._alias(event)
        assert isinstance(event, events.ScalarEvent | events.CollectionStartEvent)
        node = self._scalar(event) if isinstance(event, events.ScalarEvent) else self._collection(event, depth + 1)
        if node.size > MAX_SIZE:
            self._refuse(event, "TOO_LARGE", sentence("more_than_values_counting", most=MAX_SIZE))
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _alias(self, event: events.AliasEvent) -> Node:
        if event.anchor not in self._anchors:
            self._refuse(event, "UNKNOWN_ANCHOR", sentence("no_complete_value_before", anchor=str(event.anchor)))
        return self._anchors[event.anchor]

    def _collection(self, event: events.CollectionStartEvent, depth: int) -> Node:
        if depth > MAX_DEPTH:
            self._refuse(event, "TOO_DEEP", sentence("lists_mappings_nested_more", most=MAX_DEPTH))
        is_list = isinstance(event, events.SequenceStartEvent)
        if event.tag not in (None, "!", _TAG + ("seq" if is_list else "map")):
            self._complain(event, "UNKNOWN_TAG", sentence("tag_has_no_meaning", tag=short_tag(event.tag)))
        return self._list(event, depth) if is_list else self._map(event, depth)

    def _list(self, start: yaml.Event, depth: int) -> ListNode:
        items = []
        while not isinstance(event := next(self._events), events.SequenceEndEvent):
            items.append(self._node(event, depth))
        return ListNode(tuple(items), *position(start), 1 + sum(item.size for item in items))

    def _map(self, start: yaml.Event, depth: int) -> MapNode:
        own: dict[str, tuple[Scalar, Node]] = {}
        merged: dict[str, tuple[Scalar, Node]] = {}
        while not isinstance(event := next(self._events), events.MappingEndEvent):
            key, value = self._key(event, depth), self._node(next(self._events), depth)
            if is_merge(event):
                merged = {**self._merge(key, value), **merged}
            else:
                self._add(own, key, value)
        pairs = tuple({**merged, **own}.values())
        return MapNode(pairs, *position(start), 1 + sum(value.size for _, value in pairs))

    def _key(self, event: yaml.Event, depth: int) -> Scalar:
        node = self._node(event, depth)
        if isinstance(node, Scalar):
            return node
        self._complain(event, "KEY_NOT_TEXT", sentence("name_before_colon_text"))
        return Scalar("", "", node.line, node.column)

    def _add(self, pairs: dict[str, tuple[Scalar, Node]], key: Scalar, value: Node) -> None:
        if key.text in pairs:
            first = pairs[key.text][0].line
            place = Place(self._file, key.line, key.column)
            self._problems.error(place, "DUPLICATE_KEY", sentence("already_line", name=key.text, line=first))
        pairs[key.text] = (key, value)

    def _merge(self, key: Scalar, value: Node) -> dict[str, tuple[Scalar, Node]]:
        """Return the pairs that `<<: *anchor` brings; of several mappings the first one wins."""
        sources = value.items if isinstance(value, ListNode) else (value,)
        merged: dict[str, tuple[Scalar, Node]] = {}
        for source in reversed(sources):
            if isinstance(source, MapNode):
                merged.update({name.text: (name, inner) for name, inner in source.pairs})
            else:
                place = Place(self._file, key.line, key.column)
                self._problems.error(place, "WRONG_TYPE", sentence("takes_mapping_list_mappings"))
        return merged

    def _scalar(self, event: events.ScalarEvent) -> Scalar:
        line, column = position(event)
        text: str = event.value
        if self._substitute is not None and ("${" in text or "{text." in text):
            text = self._substitute(text, Place(self._file, line, column))
        return Scalar(self._value(event, text), text, line, column)

    def _value(self, event: events.ScalarEvent, text: str) -> Value:
        if event.tag is None and not event.implicit[0]:  # quoted
            return text
        tag = event.tag or _RESOLVER.resolve(yaml.ScalarNode, text, event.implicit)
        if tag in _TEXT:
            return text
        if tag not in _CONSTRUCT:
            self._complain(
                event,
                "UNKNOWN_TAG",
                sentence("tag_has_no_meaning_2", tag=short_tag(tag)),
            )
            return f"{short_tag(tag)} {text}".strip()
        return self._constructed(event, tag, text)

    def _constructed(self, event: yaml.Event, tag: str, text: str) -> Value:
        try:
            value: Value = _CONSTRUCT[tag](SafeConstructor(), yaml.ScalarNode(tag, text))
        except (ValueError, KeyError, IndexError, OverflowError):
            self._complain(event, "WRONG_TYPE", sentence("not_value_type", value=text[:60], type=short_tag(tag)))
            return text
        return value if value is None or written(value) == text else text

    def _complain(self, event: yaml.Event, code: str, message: Text) -> None:
        self._problems.error(Place(self._file, *position(event)), code, message)

    def _refuse(self, event: yaml.Event, code: str, message: Text) -> NoReturn:
        raise _Unreadable(Place(self._file, *position(event)), code, message)


def written(value: str | float) -> str:
    """Return the one way to write a value that makes it no text."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def is_merge(event: yaml.Event) -> bool:
    return isinstance(event, events.ScalarEvent) and event.value == "<<" and bool(event.implicit[0])


def position(event: yaml.Event) -> tuple[int, int]:
    mark = event.start_mark
    assert mark
    return mark.line + 1, mark.column + 1


def short_tag(tag: str) -> str:
    return "!!" + tag.removeprefix(_TAG) if tag.startswith(_TAG) else tag
