"""Numbers, exact in decimals, `{price|*0.9}`; numbers and dates as people write them, `{price|format:currency}`."""

from collections.abc import Callable
from datetime import datetime, tzinfo
from decimal import Decimal
from functools import partial

from scenarios.bot.data import Data
from scenarios.placeholders.modifiers.table import ModifierError, modifier, number_from, one_of
from scenarios.placeholders.values import ARITHMETIC, LARGEST, as_moment, as_text, from_number, in_utc, rounded
from scenarios.words import sentence


def _calculate(sign: str, value: Data, operand: Decimal) -> int | float:
    number = number_from(value)
    if sign in "/%" and not operand:
        raise ModifierError(sentence("division_zero"))
    result = _CALCULATIONS[sign](number, operand)
    if abs(result) >= LARGEST:
        raise ModifierError(sentence("result_too_large"))
    return from_number(result)


def _remainder(number: Decimal, divisor: Decimal) -> Decimal:
    """Return the remainder with the sign of the divisor, as in Python: -7 % 3 is 2."""
    return ARITHMETIC.remainder(ARITHMETIC.add(ARITHMETIC.remainder(number, divisor), divisor), divisor)


_CALCULATIONS: dict[str, Callable[[Decimal, Decimal], Decimal]] = {
    "+": ARITHMETIC.add,
    "-": ARITHMETIC.subtract,
    "*": ARITHMETIC.multiply,
    "/": ARITHMETIC.divide,
    "%": _remainder,
}


@modifier("+", "n", number_from)
def add(value: Data, operand: Decimal) -> int | float:
    """Adds `n`. In all arithmetic, numbers in texts count as numbers; a whole result is an int, any other a float."""
    return _calculate("+", value, operand)


@modifier("-", "n", number_from)
def subtract(value: Data, operand: Decimal) -> int | float:
    """Subtracts `n`."""
    return _calculate("-", value, operand)


@modifier("*", "n", number_from)
def multiply(value: Data, operand: Decimal) -> int | float:
    """Multiplies by `n`: `{price|*0.9}`."""
    return _calculate("*", value, operand)


@modifier("/", "n", number_from)
def divide(value: Data, operand: Decimal) -> int | float:
    """Divides by `n`. Division by zero leaves the value as it is."""
    return _calculate("/", value, operand)


@modifier("%", "n", number_from)
def remainder(value: Data, operand: Decimal) -> int | float:
    """The remainder of a division by `n`."""
    return _calculate("%", value, operand)


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
