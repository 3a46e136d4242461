"""Finds every fault of a value that its type refuses, and names each by path and code. The slow gait of `reading`.

A decoder tells the first fault in words for people; a caller wants all of them, by codes that stay. So the type is
walked once more with the value in hand. Only refused bodies come here, so clarity goes before speed.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import Any

from msgspec import inspect

from delivery.http.problems import Fault

MOST = 20  # faults told at once

_TYPE_NAMES = {
    inspect.StrType: "string",
    inspect.IntType: "integer",
    inspect.FloatType: "number",
    inspect.NoneType: "null",
    inspect.ListType: "array",
    inspect.DictType: "object",
    inspect.StructType: "object",
    inspect.LiteralType: "string",
    inspect.EnumType: "string",
}

Faults = Iterator[Fault]


def faults_of(value: object, shape: type, *, text: bool = False) -> list[Fault]:
    """The first faults of `value`, at most `MOST`; none: it fits. `text`: numbers come as text, as in a query."""
    return list(islice(_walk(value, _Spot(_shape(shape), text=text)), MOST))


_shape = lru_cache(inspect.type_info)


@dataclass(frozen=True, slots=True)
class _Spot:
    """Where the walk is: the type that is wanted there and the codes its bounds name."""

    wanted: inspect.Type
    path: str = ""
    codes: Mapping[str, str] | None = None
    text: bool = False

    def at(self, name: object, wanted: inspect.Type) -> "_Spot":
        path = f"{self.path}.{name}" if self.path else str(name)
        return _Spot(wanted, path, None, self.text)

    def fault(self, code: str, message: str) -> Fault:
        code = (self.codes or {}).get(code, code)
        return Fault(_tellable(self.path), code, _tellable(message))


def _tellable(text: str) -> str:
    """What a caller sent may be quoted back only as Unicode, and not at any length."""
    return text[:200].encode(errors="backslashreplace").decode()


def _walk(value: object, spot: _Spot) -> Faults:
    if isinstance(spot.wanted, inspect.Metadata):
        return _walk(value, replace(spot, wanted=spot.wanted.type, codes=spot.wanted.extra))
    if isinstance(spot.wanted, inspect.UnionType):
        return _union(value, spot, spot.wanted)
    if not _fits(value, spot.wanted, spot.text):
        return iter([spot.fault("WRONG_TYPE", f"{_name(spot.wanted)} is wanted.")])
    return _CHECKS[type(spot.wanted)](value, spot, spot.wanted)


def _name(wanted: inspect.Type) -> str:
    if isinstance(wanted, inspect.Metadata):
        return _name(wanted.type)
    return _TYPE_NAMES[type(wanted)]


def _fits(value: object, wanted: inspect.Type, text: bool) -> bool:
    if isinstance(wanted, inspect.Metadata):
        return _fits(value, wanted.type, text)
    if isinstance(wanted, inspect.IntType):
        return _whole(value) or (text and _integer(value))
    if isinstance(wanted, inspect.FloatType):
        return isinstance(value, float) or _whole(value)
    return isinstance(value, _PYTHON_TYPES[_TYPE_NAMES[type(wanted)]])


_PYTHON_TYPES: dict[str, type] = {"string": str, "null": type(None), "array": list, "object": dict}


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _integer(value: object) -> bool:
    """Whether a query's text is an integer: ASCII digits, and no more of them than a 64-bit number has."""
    digits = value.removeprefix("-") if isinstance(value, str) else ""
    return digits.isascii() and digits.isdigit() and len(digits) <= 19


def _union(value: object, spot: _Spot, wanted: inspect.UnionType) -> Faults:
    for member in wanted.types:
        if _fits(value, member, spot.text):
            return _walk(value, replace(spot, wanted=member))
    names = " or ".join(_name(member) for member in wanted.types)
    return iter([spot.fault("WRONG_TYPE", f"{names} is wanted.")])


def _object(value: dict[str, Any], spot: _Spot, wanted: inspect.StructType) -> Faults:
    known = {field.encode_name: field for field in wanted.fields}
    for name in value:
        if name not in known and wanted.forbid_unknown_fields:
            code = "UNKNOWN_PARAMETER" if spot.text else "UNKNOWN_FIELD"
            yield spot.at(name, wanted).fault(code, f"There is no {name!r} here.")
    for name, field in known.items():
        if name in value:
            yield from _walk(value[name], spot.at(name, field.type))
        elif field.required:
            yield spot.at(name, field.type).fault("REQUIRED", f"{name} is missing.")


def _mapping(value: dict[str, Any], spot: _Spot, wanted: inspect.DictType) -> Faults:
    yield from _length(value, spot, wanted)
    for name, item in value.items():
        yield from _walk(name, spot.at(name, wanted.key_type))
        yield from _walk(item, spot.at(name, wanted.value_type))


def _list(value: list[Any], spot: _Spot, wanted: inspect.ListType) -> Faults:
    yield from _length(value, spot, wanted)
    for number, item in enumerate(value):
        yield from _walk(item, spot.at(number, wanted.item_type))


_Sized = inspect.StrType | inspect.ListType | inspect.DictType


def _length(value: Any, spot: _Spot, wanted: _Sized) -> Faults:
    if wanted.min_length is not None and len(value) < wanted.min_length:
        yield replace(spot, codes=_renamed(spot, "short")).fault("TOO_SHORT", f"At least {wanted.min_length} wanted.")
    if wanted.max_length is not None and len(value) > wanted.max_length:
        yield replace(spot, codes=_renamed(spot, "long")).fault("TOO_LONG", f"At most {wanted.max_length} allowed.")


def _renamed(spot: _Spot, bound: str) -> dict[str, str] | None:
    own = (spot.codes or {}).get(bound)
    return {f"TOO_{bound.upper()}": own} if own else None


def _string(value: str, spot: _Spot, wanted: inspect.StrType) -> Faults:
    yield from _length(value, spot, wanted)
    if "\0" in value:
        yield spot.fault("NUL_CHARACTER", "The NUL character is not allowed.")
    if any("\ud800" <= letter <= "\udfff" for letter in value):
        yield spot.fault("LONE_SURROGATE", "Half of a surrogate pair is not a character.")


def _number(value: Any, spot: _Spot, wanted: inspect.IntType | inspect.FloatType) -> Faults:
    number = int(value) if spot.text else value
    low, high = wanted.ge, wanted.le
    if (low is not None and not number >= low) or (high is not None and not number <= high):
        yield spot.fault("OUT_OF_RANGE", f"{low} to {high} is allowed.")


def _choice(value: str, spot: _Spot, wanted: inspect.LiteralType | inspect.EnumType) -> Faults:
    allowed = wanted.values if isinstance(wanted, inspect.LiteralType) else tuple(one.value for one in wanted.cls)
    if value not in allowed:
        yield spot.fault("WRONG_VALUE", f"One of {', '.join(map(str, allowed))} is wanted.")


def _nothing(value: object, spot: _Spot, wanted: inspect.Type) -> Faults:
    return iter(())


_CHECKS: dict[type, Callable[..., Faults]] = {
    inspect.StructType: _object,
    inspect.DictType: _mapping,
    inspect.ListType: _list,
    inspect.StrType: _string,
    inspect.IntType: _number,
    inspect.FloatType: _number,
    inspect.LiteralType: _choice,
    inspect.EnumType: _choice,
    inspect.NoneType: _nothing,
}
