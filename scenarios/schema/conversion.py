"""Reads the attributes of an action, of which a placeholder may have made texts. Pure.

Each function gets a value, the name of the field and the zone of moments without one. It returns None for a value that
is missing or empty, so that the default holds, and raises Invalid FIELD_INVALID for one that cannot be used; the text
becomes the `error` of the action.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo

from core.errors import Invalid
from scenarios.bot.data import Data
from scenarios.bot.times import read_duration
from scenarios.placeholders.values import as_number, as_text, in_utc, is_list, is_true
from scenarios.words import Text, sentence


def text(value: Data, name: str = "", zone: tzinfo = UTC) -> str | None:
    return as_text(value).strip() or None


def text_or_empty(value: Data, name: str = "", zone: tzinfo = UTC) -> str:
    """Return a text; unlike a missing one, an empty one has a meaning."""
    return as_text(value).strip()


def verbatim(value: Data, name: str = "", zone: tzinfo = UTC) -> str | None:
    """Return a text with the spaces around it."""
    return None if value is None else str(value)


def shown(value: Data, name: str = "", zone: tzinfo = UTC) -> str | None:
    """Return a value of any kind as the text of a message shows it."""
    return as_text(value) or None


def texts(value: Data, name: str = "", zone: tzinfo = UTC) -> tuple[str, ...]:
    """Return the texts of a list, or of a text with commas."""
    elements: Sequence[Data] = list(value or ()) if is_list(value) else as_text(value).split(",")
    return tuple(text for element in elements if (text := as_text(element).strip()))


def elements(value: Data, name: str = "", zone: tzinfo = UTC) -> tuple[str, ...]:
    """Return the texts of a list, or the one text."""
    return tuple(as_text(one) for one in (value if is_list(value) else [value]) if one not in (None, ""))


def whole(value: Data, name: str = "", zone: tzinfo = UTC) -> int | None:
    if not (written := as_text(value).strip()):
        return None
    found = as_number(written)
    if found is None or found != int(found):
        raise invalid(name, written, sentence("whole_number"))
    return int(found)


def count(value: Data, name: str = "", zone: tzinfo = UTC) -> int | None:
    """Return a whole number above 0."""
    found = whole(value, name, zone)
    if found is not None and found < 1:
        raise invalid(name, str(found), sentence("whole_number_above"))
    return found


def number(value: Data, name: str = "", zone: tzinfo = UTC) -> float | None:
    if not (written := as_text(value).strip()):
        return None
    found = as_number(written)
    if found is None:
        raise invalid(name, written, sentence("number"))
    return float(found)


def flag(value: Data, name: str = "", zone: tzinfo = UTC) -> bool | None:
    return None if value in (None, "") else is_true(value)


def duration(value: Data, name: str = "", zone: tzinfo = UTC) -> timedelta | None:
    if not (written := as_text(value).strip()):
        return None
    found = read_duration(written)
    if found is None:
        raise invalid(name, written, sentence("duration_example_h_m"))
    return found


def moment(value: Data, name: str = "", zone: tzinfo = UTC) -> datetime | None:
    """Return a moment in UTC; one without a zone is in `zone`. A date is the beginning of that day."""
    if value in (None, ""):
        return None
    found = in_utc(value, zone, datetime.now(UTC))
    if found is None:
        raise invalid(name, as_text(value), sentence("date_example"))
    return found


def mapping(value: Data, name: str = "", zone: tzinfo = UTC) -> Mapping[str, Data] | None:
    return value if isinstance(value, Mapping) else None


def anything(value: Data, name: str = "", zone: tzinfo = UTC) -> Data:
    return value


def word(*words: str) -> Callable[[Data, str, tzinfo], str | None]:
    """Return what reads one of several words."""

    def read(value: Data, name: str = "", zone: tzinfo = UTC) -> str | None:
        written = text(value, name, zone)
        if written and written not in words:
            raise Invalid(
                "FIELD_INVALID", sentence("word_is_none_of", field=name, value=written, words=", ".join(words)), name
            )
        return written

    return read


def invalid(name: str, text: str, wanted: Text) -> Invalid:
    return Invalid("FIELD_INVALID", sentence("field_is_not", field=name, value=text[:100], text=wanted), name)
