"""Reads single values of what an action sees, which a placeholder may have made a text. Pure.

Each function returns None for a value that is missing or empty, and raises Invalid FIELD_INVALID if it cannot be
used; its text becomes the `error` of the action.
"""

from collections.abc import Container, Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

from core.errors import Invalid
from scenarios.bot.durations import read_duration
from scenarios.placeholders.attributes import Prepared
from scenarios.placeholders.values import as_number, as_text, in_utc, is_list, is_true

Seen = Mapping[str, Any]


def written_or_seen(prepared: Prepared, written: Container[str], *names: str) -> Seen:
    """Return where these fields are read, which belong together and which an action of the same type may have returned
    before: in what the author wrote in this action, if one of them is among it, otherwise in all that the action sees.
    """
    return prepared.own if any(name in written for name in names) else prepared.seen


def text_of(seen: Seen, name: str) -> str:
    """Return a text, "" if there is none."""
    return as_text(seen.get(name)).strip()


def texts_of(seen: Seen, name: str) -> list[str]:
    """Return the texts of a list, or of a text with commas."""
    value = seen.get(name)
    elements: Sequence[Any] = list(value or ()) if is_list(value) else as_text(value).split(",")
    return [text for element in elements if (text := as_text(element).strip())]


def whole_of(seen: Seen, name: str) -> int | None:
    if not (text := text_of(seen, name)):
        return None
    number = as_number(text)
    if number is None or number != int(number):
        raise invalid(name, text, "a whole number")
    return int(number)


def count_of(seen: Seen, name: str) -> int | None:
    """Return a whole number above 0."""
    number = whole_of(seen, name)
    if number is not None and number < 1:
        raise invalid(name, str(number), "a whole number above 0")
    return number


def number_of(seen: Seen, name: str) -> float | None:
    if not (text := text_of(seen, name)):
        return None
    number = as_number(text)
    if number is None:
        raise invalid(name, text, "a number")
    return float(number)


def flag_of(seen: Seen, name: str, default: bool = False) -> bool:
    value = seen.get(name)
    return default if value in (None, "") else is_true(value)


def duration_of(seen: Seen, name: str) -> timedelta | None:
    if not (text := text_of(seen, name)):
        return None
    duration = read_duration(text)
    if duration is None:
        raise invalid(name, text, "a duration, for example 1h 30m")
    return duration


def moment_of(seen: Seen, name: str, zone: tzinfo) -> datetime | None:
    """Return a moment in UTC; one without a zone is in `zone`. A date is the beginning of that day."""
    value = seen.get(name)
    if value in (None, ""):
        return None
    moment = in_utc(value, zone, datetime.now(UTC))
    if moment is None:
        raise invalid(name, as_text(value), "a date, for example 2026-11-22")
    return moment


def invalid(name: str, text: str, wanted: str) -> Invalid:
    return Invalid("FIELD_INVALID", f"{name}: {text[:100]!r} is not {wanted}", name)
