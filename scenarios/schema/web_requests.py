"""The request of an action `http_request`, and the variables that its response sets (C-97). Pure."""

from collections.abc import Mapping
from datetime import timedelta, tzinfo
from typing import Any

from core.errors import Invalid
from scenarios.bot.durations import read_duration
from scenarios.placeholders.fields import MISSING, find
from scenarios.placeholders.values import as_number, as_text
from scenarios.schema.variables import Change, Declared, change_of

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
SAFE = ("GET", "HEAD", "PUT", "DELETE")
"""The methods whose repetition does nothing a second time (RFC 9110)."""
LONGEST = timedelta(seconds=60)
DEFAULT_TIMEOUT, DEFAULT_RETRIES, MOST_RETRIES = "10s", 2, 5


def method_of(own: Mapping[str, Any]) -> str:
    """Return the method: what is written, or POST with a body, GET without. Raises Invalid FIELD_INVALID."""
    method = as_text(own.get("method")).strip().upper() or ("GET" if own.get("json") is None else "POST")
    if method not in METHODS:
        raise Invalid("FIELD_INVALID", f"method: {method[:20]!r} is none of {', '.join(METHODS)}", "method")
    return method


def headers_of(own: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers. Raises Invalid FIELD_INVALID if one has a line break."""
    headers = {as_text(name): as_text(value) for name, value in (own.get("headers") or {}).items()}
    if any(not text.isprintable() for pair in headers.items() for text in pair):
        raise Invalid("FIELD_INVALID", "headers: a header is one line of text", "headers")
    return headers


def time_limit_of(own: Mapping[str, Any]) -> timedelta:
    return min(read_duration(own.get("timeout") or DEFAULT_TIMEOUT) or LONGEST, LONGEST)


def retries_of(own: Mapping[str, Any]) -> int:
    wanted = as_number(own.get("retries"))
    return min(int(DEFAULT_RETRIES if wanted is None else wanted), MOST_RETRIES)


def saved(own: Mapping[str, Any], response: Mapping[str, Any], declared: Declared, zone: tzinfo) -> list[Change]:
    """Return what `save` does: variable → path in the response, such as `body.rates.USD`. A path that is not there
    forgets the value. Raises VariableFault.
    """
    changes = []
    for name, path in (own.get("save") or {}).items():
        value = find(response, as_text(path))
        changes.append(change_of(as_text(name), None if value is MISSING else value, declared, zone))
    return changes
