"""Durations and times as people read them. Pure."""

from datetime import datetime, timedelta, tzinfo

_UNITS = {"ru": ("сек", "мин", "ч", "дн"), "en": ("s", "min", "h", "d")}
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400


def duration(span: timedelta, locale: str) -> str:
    """Return a duration in its two largest units, rounded up: after it, what was refused is possible again."""
    second, minute, hour, day = _UNITS["en" if locale.startswith("en") else "ru"]
    seconds = max(1, -(-span // timedelta(seconds=1)))
    if seconds < _MINUTE:
        return f"{seconds} {second}"
    minutes = -(-seconds // _MINUTE)
    if minutes < 60:
        return f"{minutes} {minute}"
    days, rest = divmod(minutes, _DAY // _MINUTE)
    hours, minutes = divmod(rest, 60)
    parts = [(days, day), (hours, hour), (0 if days else minutes, minute)]
    return " ".join(f"{number} {unit}" for number, unit in parts if number)


def moment(at: datetime, timezone: tzinfo) -> str:
    """Return a time on the wall clock of a time zone."""
    return f"{at.astimezone(timezone):%d.%m.%Y %H:%M}"
