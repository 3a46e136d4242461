"""Reads bodies and queries into the types of `delivery.api`.

A value that does not convert is searched by `validation` for every error, and so is a body with an escape of NUL or of
half a surrogate pair, which `msgspec.convert` takes.
"""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import Generic, TypeVar

import msgspec
from aiohttp import hdrs, web

from core.errors import Refused
from core.model.json_form import Json
from delivery.http.input.validation import field_errors
from delivery.http.responses.problems import InvalidFields, invalid_field

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
