"""Reads bodies and queries into the types of `delivery.api`, and finds every error in them; each has a path and a code.

A decoder reports the first error as text for people. A client needs all of them, with stable codes. So a value that
does not convert is walked once more along its type, and so is a body with an escape of NUL or of half a surrogate pair,
which `msgspec.convert` takes. Only refused bodies and queries come there, so clarity goes before speed.
"""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import Generic, TypeVar

import msgspec
from aiohttp import hdrs, web
from msgspec import inspect

from core.errors import Invalid, Refused
from core.model.field_types import END, NOT_BLANK
from core.model.json_form import Json
from core.model.text.characters import refusal
from delivery.http.responses.problems import FieldError, InvalidFields, invalid_field

MAX_ERRORS = 20
"""Errors reported at once."""

_TYPE_NAMES = {
    inspect.StrType: "string",
    inspect.BoolType: "boolean",
    inspect.IntType: "integer",
    inspect.FloatType: "number",
    inspect.NoneType: "null",
    inspect.ListType: "array",
    inspect.DictType: "object",
    inspect.StructType: "object",
    inspect.LiteralType: "string",
    inspect.EnumType: "string",
}

Errors = Iterator[FieldError]


def field_errors(value: Json, shape: type, *, numbers_are_text: bool = False) -> list[FieldError]:
    """Return the first `MAX_ERRORS` errors of `value`, none if it is valid. In a query numbers are text."""
    return list(islice(_walk(value, _FieldPlace(_type_info(shape), numbers_are_text=numbers_are_text)), MAX_ERRORS))


def check_faults(faults: Iterable[Invalid]) -> None:
    """Check that core has found no faults. Raises `InvalidFields` with the first `MAX_ERRORS`."""
    errors = [FieldError(fault.path, fault.code, fault.detail) for fault in faults]
    if errors:
        raise InvalidFields(errors[:MAX_ERRORS])


_type_info = lru_cache(inspect.type_info)


@dataclass(frozen=True, slots=True)
class _FieldPlace:
    """A place in the value: its path, the type expected there, the codes that its bounds name, and its description."""

    expected: inspect.Type
    path: str = ""
    codes: Mapping[str, str] | None = None
    numbers_are_text: bool = False
    description: str = ""

    def child(self, name: str | int, expected: inspect.Type) -> "_FieldPlace":
        path = f"{self.path}.{name}" if self.path else str(name)
        return _FieldPlace(expected, path, None, self.numbers_are_text)

    def error(self, code: str, message: str) -> FieldError:
        code = (self.codes or {}).get(code, code)
        return FieldError(_quotable(self.path), code, _quotable(message))


def _quotable(text: str) -> str:
    """Return what a client sent as it may be quoted back: valid Unicode, cut to a length."""
    return text[:200].encode(errors="backslashreplace").decode()


def _walk(value: Json, place: _FieldPlace) -> Errors:
    if isinstance(place.expected, inspect.Metadata):
        meta = place.expected
        description = (meta.extra_json_schema or {}).get("description", "")
        return _walk(value, replace(place, expected=meta.type, codes=meta.extra, description=description))
    if isinstance(place.expected, inspect.UnionType):
        return _union(value, place, place.expected)
    if isinstance(place.expected, inspect.AnyType):
        return iter(())
    if not _has_type(value, place.expected, place.numbers_are_text):
        return iter([place.error("WRONG_TYPE", f"It must be of type {_name(place.expected)}.")])
    return _CHECKS[type(place.expected)](value, place, place.expected)


def _name(expected: inspect.Type) -> str:
    if isinstance(expected, inspect.Metadata):
        return _name(expected.type)
    return _TYPE_NAMES[type(expected)]


def _has_type(value: Json, expected: inspect.Type, numbers_are_text: bool) -> bool:
    if isinstance(expected, inspect.Metadata):
        return _has_type(value, expected.type, numbers_are_text)
    if isinstance(expected, inspect.IntType):
        return _is_integer(value) or (numbers_are_text and _is_integer_text(value))
    if isinstance(expected, inspect.FloatType):
        return isinstance(value, float) or _is_integer(value)
    return isinstance(value, _PYTHON_TYPES[_TYPE_NAMES[type(expected)]])


_PYTHON_TYPES: dict[str, type] = {"string": str, "boolean": bool, "null": type(None), "array": list, "object": dict}


def _is_integer(value: Json) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_integer_text(value: Json) -> bool:
    """Return whether a text is an integer: ASCII digits with an optional minus sign, at most as many as a 64-bit number
    has.
    """
    digits = value.removeprefix("-") if isinstance(value, str) else ""
    return digits.isascii() and digits.isdigit() and len(digits) <= 19


def _union(value: Json, place: _FieldPlace, expected: inspect.UnionType) -> Errors:
    for member in expected.types:
        if _has_type(value, member, place.numbers_are_text):
            return _walk(value, replace(place, expected=member))
    names = " or ".join(_name(member) for member in expected.types)
    return iter([place.error("WRONG_TYPE", f"It must be of type {names}.")])


def _struct(value: Mapping[str, Json], place: _FieldPlace, expected: inspect.StructType) -> Errors:
    known = {field.encode_name: field for field in expected.fields}
    for name in value:
        if name not in known and expected.forbid_unknown_fields:
            code = "UNKNOWN_PARAMETER" if place.numbers_are_text else "UNKNOWN_FIELD"
            yield place.child(name, expected).error(code, f"{name!r} is unknown.")
    for name, field in known.items():
        if name in value:
            yield from _walk(value[name], place.child(name, field.type))
        elif field.required:
            yield place.child(name, field.type).error("REQUIRED", f"{name} is missing.")


def _mapping(value: Mapping[str, Json], place: _FieldPlace, expected: inspect.DictType) -> Errors:
    yield from _length(value, place, expected)
    for name, item in value.items():
        yield from _walk(name, place.child(name, expected.key_type))
        yield from _walk(item, place.child(name, expected.value_type))


def _list(value: Sequence[Json], place: _FieldPlace, expected: inspect.ListType) -> Errors:
    yield from _length(value, place, expected)
    for number, item in enumerate(value):
        yield from _walk(item, place.child(number, expected.item_type))


_Bounded = inspect.StrType | inspect.ListType | inspect.DictType


def _length(value: Sized, place: _FieldPlace, expected: _Bounded) -> Errors:
    if expected.min_length is not None and len(value) < expected.min_length:
        place_with_codes = replace(place, codes=_codes_of_bound(place, "short"))
        yield place_with_codes.error("TOO_SHORT", f"The minimum length is {expected.min_length}.")
    if expected.max_length is not None and len(value) > expected.max_length:
        place_with_codes = replace(place, codes=_codes_of_bound(place, "long"))
        yield place_with_codes.error("TOO_LONG", f"The maximum length is {expected.max_length}.")


def _codes_of_bound(place: _FieldPlace, bound: str) -> dict[str, str] | None:
    own = (place.codes or {}).get(bound)
    return {f"TOO_{bound.upper()}": own} if own else None


def _string(value: str, place: _FieldPlace, expected: inspect.StrType) -> Errors:
    yield from _length(value, place, expected)
    if "\0" in value:
        yield place.error("NUL_CHARACTER", "The NUL character is not allowed.")
    elif any("\ud800" <= letter <= "\udfff" for letter in value):
        yield place.error("LONE_SURROGATE", "Half of a surrogate pair is not a character.")
    elif (value or not expected.min_length) and expected.pattern and not re.search(expected.pattern, value):
        code = (place.codes or {}).get("pattern", "WRONG_FORMAT")
        if expected.pattern == NOT_BLANK:
            yield place.error(code, "It has only white space.")
            return
        form = expected.pattern.replace(END, "$")
        wanted = f"{form}: {place.description}" if place.description else form
        yield place.error(code, (code == "NOT_PRINTABLE" and refusal(value)) or f"It must match {wanted}.")


def _number(value: str | float, place: _FieldPlace, expected: inspect.IntType | inspect.FloatType) -> Errors:
    number = int(value) if isinstance(value, str) else value
    low, high = expected.ge, expected.le
    if (low is not None and not number >= low) or (high is not None and not number <= high):
        yield place.error("OUT_OF_RANGE", f"The range is {low} to {high}.")


def _choice(value: str, place: _FieldPlace, expected: inspect.LiteralType | inspect.EnumType) -> Errors:
    allowed = expected.values if isinstance(expected, inspect.LiteralType) else [one.value for one in expected.cls]
    if value not in allowed:
        yield place.error("WRONG_VALUE", f"Allowed values: {', '.join(map(str, allowed))}.")


def _no_check(value: Json, place: _FieldPlace, expected: inspect.Type) -> Errors:
    return iter(())


_CHECKS: dict[type, Callable[..., Errors]] = {
    inspect.StructType: _struct,
    inspect.DictType: _mapping,
    inspect.ListType: _list,
    inspect.StrType: _string,
    inspect.IntType: _number,
    inspect.FloatType: _number,
    inspect.LiteralType: _choice,
    inspect.EnumType: _choice,
    inspect.NoneType: _no_check,
    inspect.BoolType: _no_check,
}


T = TypeVar("T", bound=msgspec.Struct)

JSON_TYPES = frozenset({"application/json"})
# The last two are what HTTP clients send by default with raw bytes.
NDJSON_TYPES = frozenset(
    {"application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines", "application/json",
     "application/octet-stream"}
)  # fmt: skip

_LARGE = 2**14
"""Bytes. Reading fewer takes less than a millisecond, and the search for errors a few."""
_EXACT = 2**53
"""Below it a float has no neighbour that is also an integer."""
_DOUBTFUL_ESCAPE = re.compile(rb"\\u(0000|d[89a-f])", re.IGNORECASE)


def check_content_type(request: web.Request, allowed: frozenset[str]) -> None:
    """Check what a body is. Raises `Refused` CONTENT_TYPE_UNSUPPORTED. A body without a content type is accepted."""
    given = request.headers.get(hdrs.CONTENT_TYPE)
    if given is None or not request.body_exists:
        return
    name, _, parameters = given.lower().partition(";")
    if name.strip() not in allowed or ("charset" in parameters and "utf-8" not in parameters):
        raise Refused("CONTENT_TYPE_UNSUPPORTED", f"The content type must be {min(allowed)} in UTF-8.")


class BodyReader(Generic[T]):
    """Reads bodies of one type."""

    def __init__(self, shape: type[T]) -> None:
        self._shape = shape

    async def read(self, raw: bytes) -> T:
        """Return the body. Raises `InvalidFields` with every error. A large body is read in a thread, so that other
        requests go on.
        """
        return self._read(raw) if len(raw) < _LARGE else await asyncio.to_thread(self._read, raw)

    def _read(self, raw: bytes) -> T:
        value = parse(raw)
        if not _DOUBTFUL_ESCAPE.search(raw):
            with suppress(msgspec.ValidationError):
                return msgspec.convert(value, self._shape)
        if errors := field_errors(value, self._shape):
            raise InvalidFields(errors)
        return msgspec.convert(value, self._shape)  # cannot fail: validation is stricter


def parse(raw: bytes) -> Json:
    """Parse strict JSON (RFC 8259; names are unique as in I-JSON, RFC 7493). Raises `InvalidFields` JSON_…"""
    if raw.startswith(b"\xef\xbb\xbf"):
        raise invalid_field("", "JSON_BYTE_ORDER_MARK", "The body begins with a byte order mark.")
    try:
        value: Json = _PARSER.decode(raw.decode())
        return value
    except UnicodeDecodeError as error:
        raise invalid_field("", "JSON_NOT_UTF8", f"Byte {error.start} is not UTF-8.") from None
    except RecursionError:
        raise invalid_field("", "JSON_TOO_DEEP", "The body is nested too deeply.") from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise invalid_field("", "JSON_MALFORMED", f"The body is not JSON from {place} on.") from None
    except ValueError:  # more digits than Python converts
        raise invalid_field("", "JSON_MALFORMED", "A number in the body has too many digits.") from None


def _unique_names(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    names = dict(pairs)
    if len(names) < len(pairs):
        name = Counter(name for name, _ in pairs).most_common(1)[0][0][:64]
        raise invalid_field("", "JSON_DUPLICATE_KEY", f"The name {name!a} occurs twice in one object.")
    return names


def _refuse_constant(name: str) -> None:
    raise invalid_field("", "JSON_NOT_A_NUMBER", f"{name} is not JSON.")


def _read_number(text: str) -> float | int:
    """Return a number with a point or an exponent. To JSON 15.0 and 15 are one number, so it is an integer if it is
    exact."""
    number = float(text)
    return int(number) if number.is_integer() and abs(number) < _EXACT else number


_PARSER = json.JSONDecoder(object_pairs_hook=_unique_names, parse_constant=_refuse_constant, parse_float=_read_number)


class QueryReader(Generic[T]):
    """Reads query strings of one type. Only a parameter whose type is a list may be repeated."""

    def __init__(self, shape: type[T]) -> None:
        self._shape = shape
        fields = msgspec.structs.fields(shape)
        self._may_be_empty = not any(field.required for field in fields)
        self._lists = frozenset(field.name for field in fields if "list[" in str(field.type))

    def read(self, pairs: Collection[tuple[str, str]]) -> T:
        """Return the query. Raises `InvalidFields`."""
        if not pairs and self._may_be_empty:
            return self._shape()
        values = self._collect(pairs)
        if errors := field_errors(values, self._shape, numbers_are_text=True):
            raise InvalidFields(errors)
        return msgspec.convert(values, self._shape, strict=False)

    def _collect(self, pairs: Iterable[tuple[str, str]]) -> dict[str, str | list[str]]:
        values: dict[str, str] = {}
        lists: dict[str, list[str]] = {}
        for name, value in pairs:
            if name in self._lists:
                lists.setdefault(name, []).append(value)
            elif name in values:
                raise invalid_field(name, "PARAMETER_REPEATED", f"{name} is given more than once.")
            else:
                values[name] = value
        return {**values, **lists}
