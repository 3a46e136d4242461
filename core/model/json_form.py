"""The forms of JSON in which functions, histories and jobs store data: without spaces, and read back without loss of a
value.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]
"""A value of JSON. The field of a struct cannot have this type: msgspec has no recursive types."""
JsonValue = Any
"""A value of JSON, as the field of a struct."""
JsonObject = Mapping[str, Any]
"""An object of JSON with any fields, as the field of a struct."""
JsonSchema = dict[str, Any]
"""A JSON Schema."""

_encode = msgspec.json.Encoder().encode


def compact_json(value: Any) -> str:
    """Return JSON without spaces; non-ASCII letters are not escaped."""
    return _encode(value).decode()


FAULTS = (TypeError, ValueError, OverflowError, RecursionError)
"""The errors that `encoded` raises."""


def encoded(data: Any) -> bytes:
    """Return data as JSON. Raises one of `FAULTS` for what JSON does not have, as NaN, which would become null, and for
    two keys of a dict that would become one.
    """
    text, builtins = msgspec.json.encode(data), msgspec.to_builtins(data, str_keys=True)
    json.dumps(builtins, allow_nan=False)
    if msgspec.json.encode(builtins) != text:
        raise ValueError("two keys of a dict are one text in JSON")
    return text
