"""The methods that strings and arrays have, and the two functions."""

from collections.abc import Callable, Sequence
from typing import cast

from sandbox.vkscript.errors import RunError
from sandbox.vkscript.operators import number_of, text_of
from sandbox.vkscript.run import Run, Value

Arguments = Sequence[Value]


def _place(arguments: Arguments, number: int, otherwise: int | None = None) -> int | None:
    return int(number_of(arguments[number])) if len(arguments) > number else otherwise


def _pushed(items: list[Value], arguments: Arguments) -> Value:
    items.extend(arguments)
    return len(items)


def _put_before(items: list[Value], arguments: Arguments) -> Value:
    items[:0] = arguments
    return len(items)


def _spliced(items: list[Value], arguments: Arguments) -> Value:
    start = _from_end(len(items), _place(arguments, 0, 0) or 0)
    end = start + max(_place(arguments, 1, len(items)) or 0, 0)
    gone = items[start:end]
    items[start:end] = arguments[2:]
    return gone


def _from_end(length: int, place: int) -> int:
    return max(length + place, 0) if place < 0 else min(place, length)


def _substring(text: str, arguments: Arguments) -> Value:
    start = _from_end(len(text), _place(arguments, 0, 0) or 0)
    return text[start : start + max(_place(arguments, 1, len(text)) or 0, 0)]


def _split(text: str, arguments: Arguments) -> Value:
    separator = text_of(arguments[0]) if arguments else ""
    return cast("list[Value]", text.split(separator) if separator else list(text))


def _index(items: list[Value] | str, arguments: Arguments) -> Value:
    wanted = arguments[0] if arguments else None
    if isinstance(items, str):
        return items.find(text_of(wanted))
    return items.index(wanted) if wanted in items else -1


_OF_ARRAY: dict[str, Callable[[list[Value], Arguments], Value]] = {
    "push": _pushed,
    "pop": lambda items, _: items.pop() if items else None,
    "shift": lambda items, _: items.pop(0) if items else None,
    "unshift": _put_before,
    "splice": _spliced,
    "slice": lambda items, arguments: items[_place(arguments, 0) : _place(arguments, 1)],
    "indexOf": _index,
    "join": lambda items, arguments: (text_of(arguments[0]) if arguments else ",").join(map(text_of, items)),
}

_OF_STRING: dict[str, Callable[[str, Arguments], Value]] = {
    "substr": _substring,
    "slice": lambda text, arguments: text[_place(arguments, 0) : _place(arguments, 1)],
    "split": _split,
    "indexOf": _index,
}


def method(run: Run, subject: Value, name: str, arguments: Arguments) -> Value:
    """Call a method of a string or an array; what goes into an array is copied. Raises RunError for an unknown one."""
    if isinstance(subject, list) and name in _OF_ARRAY:
        return _OF_ARRAY[name](subject, [run.copied(argument) for argument in arguments])
    if isinstance(subject, str) and name in _OF_STRING:
        return _OF_STRING[name](subject, arguments)
    raise RunError(f"Unknown method {name}")


def _leading_number(value: Value) -> int:
    if not isinstance(value, str):
        return int(number_of(value))
    digits = 1 if value[:1] in ("-", "+") else 0
    while digits < min(len(value), 20) and "0" <= value[digits] <= "9":
        digits += 1
    return int(number_of(value[:digits]))


FUNCTIONS: dict[str, Callable[[Value], Value]] = {
    "parseInt": _leading_number,
    "parseDouble": lambda value: float(number_of(value)),
}
