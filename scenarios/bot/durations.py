"""Durations as bot authors write them: `1w 2d 3h 15m 10s`, or whole seconds. Pure."""

import re
from collections.abc import Mapping
from datetime import timedelta

from scenarios.bot.data import Data

NAMES = ("expire", "unexpired", "duration")
"""The attributes of any action that are durations."""

SECONDS = "_seconds"

_UNITS = {"w": "weeks", "d": "days", "h": "hours", "m": "minutes", "s": "seconds"}
_SIZES = ((86400, "d"), (3600, "h"), (60, "m"), (1, "s"))
_PART = re.compile(r"(\d{1,9})\s*([wdhms])", re.ASCII)
_WHOLE = re.compile(r"\s*((\d{1,9}\s*[wdhms]\s*)+|\d{1,9}\s*)", re.ASCII)


def read_duration(value: Data) -> timedelta | None:
    """Return the duration, None if the value is none. A number is one of seconds."""
    text = str(value).lower()
    if isinstance(value, bool) or not _WHOLE.fullmatch(text):
        return None
    if text.strip().isdigit():
        return timedelta(seconds=int(text))
    try:
        return sum((timedelta(**{_UNITS[unit]: int(number)}) for number, unit in _PART.findall(text)), timedelta())
    except OverflowError:
        return None


def as_written(duration: timedelta) -> str:
    """Return a duration as authors write it, in the largest unit of which it is a whole number."""
    seconds = int(duration.total_seconds())
    size, unit = next((size, unit) for size, unit in _SIZES if seconds % size == 0)
    return f"{seconds // size}{unit}"


def with_seconds(attributes: Mapping[str, Data]) -> dict[str, Data]:
    """Return the attributes, and for each duration among them the same in seconds: `expire` also gives
    `expire_seconds`."""
    found = {name: read_duration(attributes[name]) for name in NAMES if name in attributes}
    seconds = {f"{name}{SECONDS}": int(value.total_seconds()) for name, value in found.items() if value is not None}
    return {**seconds, **attributes}
