"""`{price|format:currency}`: dates and numbers as people write them."""

from collections.abc import Callable
from datetime import datetime, tzinfo
from functools import partial

from scenarios.bot.data import Data
from scenarios.placeholders.modifiers.table import ModifierError, modifier, number_from, one_of
from scenarios.placeholders.values import as_moment, as_text, in_utc, rounded
from scenarios.words import sentence


def _date(form: str, value: Data, zone: tzinfo | None) -> str:
    return _known(as_moment(value, zone), value).strftime(form)


def _timestamp(value: Data, zone: tzinfo | None) -> int:
    return int(_known(in_utc(value, zone), value).timestamp())


def _known(moment: datetime | None, value: Data) -> datetime:
    if moment is None:
        raise ModifierError(sentence("not_date", value=as_text(value)))
    return moment


def _decimals(places: int, unit: str, value: Data, zone: tzinfo | None) -> str:
    return rounded(number_from(value), places) + unit


_FORMATS: dict[str, Callable[[Data, tzinfo | None], Data]] = {
    "timestamp": _timestamp,
    "date": partial(_date, "%d.%m.%Y"),
    "time": partial(_date, "%H:%M"),
    "time_full": partial(_date, "%H:%M:%S"),
    "datetime": partial(_date, "%d.%m.%Y %H:%M"),
    "datetime_full": partial(_date, "%d.%m.%Y %H:%M:%S"),
    "pg_date": partial(_date, "%Y-%m-%d"),
    "pg_datetime": partial(_date, "%Y-%m-%d %H:%M:%S"),
    "currency": partial(_decimals, 2, " ₽"),
    "percent": partial(_decimals, 1, "%"),
    "number": partial(_decimals, 2, ""),
}


@modifier("format", "f", partial(one_of, _FORMATS), zoned=True)
def format_as(value: Data, formatted: Callable[[Data, tzinfo | None], Data], zone: tzinfo | None) -> Data:
    """`f` is one of: date (25.12.2024), time (15:30), datetime (both), time_full and datetime_full (with seconds),
    pg_date (2024-12-25), pg_datetime (2024-12-25 15:30:00), timestamp (seconds since 1970, an int), currency
    (1000.00 ₽), percent (25.5%), number (two decimals). Dates are read from ISO 8601, `25.12.2024[ 15:30]` and seconds.
    """
    return formatted(value, zone)
