"""Finds the value of a dotted path: `user.phones.0.number`, `items.-1`, the same as `user.phones[0].number`. Pure.

Guarantee: only mappings and lists are entered, never the attributes of an object.
"""

import re
from collections.abc import Container, Mapping, Sequence

from scenarios.bot.data import MISSING, Data

_INDEX = re.compile(r"\[\s*(-?\d+)\s*\]", re.ASCII)


def find(values: Mapping[str, Data], path: str) -> Data:
    """Return the value at a path, or MISSING. A field whose name is the whole path comes first."""
    if path in values:
        return values[path]
    found: Data = values
    for name in names_in(path):
        found = _enter(found, name)
        if found is MISSING:
            return MISSING
    return found


def names_in(path: str) -> list[str]:
    """Return the names of a path, from the outside in: `items[-1].n` has `items`, `-1` and `n`."""
    return _INDEX.sub(r".\1", path).split(".")


def starts_in(path: str, fields: Container[str]) -> bool:
    """Return whether a path, or the field in which it starts, is one of `fields`: `info.text` is, if `info` is."""
    if path in fields:
        return True
    names = names_in(path)
    return any(".".join(names[:length]) in fields for length in range(1, len(names)))


def _enter(value: Data, name: str) -> Data:
    if isinstance(value, Mapping):
        return value.get(name, MISSING)
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return _element(value, name)
    return MISSING


def _element(values: Sequence[Data], name: str) -> Data:
    """Return the element at an index; -1 is the last."""
    digits = name.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 10):
        return MISSING
    index = int(name)
    return values[index] if -len(values) <= index < len(values) else MISSING
