"""Reads the fields of an action when it runs: a placeholder may have given them any value. Pure.

An empty value means that the field is not written. Every function raises Invalid FIELD_MALFORMED.
"""

import math
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from core.errors import Invalid
from scenarios.durations import read_duration

_EMPTY: tuple[Any, ...] = (None, "")
_FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def text_of(fields: Mapping[str, Any], name: str) -> str:
    """A text or a number as text; "" if it is not written."""
    value = fields.get(name)
    if value in _EMPTY:
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise _malformed(name, "a text", value)
    return str(value)


def flag_of(fields: Mapping[str, Any], name: str) -> bool:
    """False if it is not written."""
    value = fields.get(name)
    found = False if value in _EMPTY else _FLAGS.get(str(value).strip().lower())
    if found is None:
        raise _malformed(name, "true or false", value)
    return found


def number_of(fields: Mapping[str, Any], name: str) -> float | None:
    """A finite number; None if it is not written."""
    value: Any = fields.get(name)
    if value in _EMPTY:
        return None
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise _malformed(name, "a number", value)
    return number


def count_of(fields: Mapping[str, Any], name: str) -> int | None:
    """A whole number above 0; None if it is not written."""
    number = number_of(fields, name)
    if number is not None and (number < 1 or number != int(number)):
        raise _malformed(name, "a whole number above 0", fields.get(name))
    return None if number is None else int(number)


def duration_of(fields: Mapping[str, Any], name: str) -> timedelta | None:
    """None if it is not written."""
    value = fields.get(name)
    found = None if value in _EMPTY else read_duration(value)
    if found is None and value not in _EMPTY:
        raise _malformed(name, "a duration, for example 1h 30m", value)
    return found


def _malformed(name: str, wanted: str, value: Any) -> Invalid:
    return Invalid("FIELD_MALFORMED", f"{name} must be {wanted}, but is {str(value)[:50]!r}", name)
