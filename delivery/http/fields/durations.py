"""Durations of the API: ISO 8601 without years and months, whose length varies (PT2M, PT1H30M, P1D)."""

import re
from datetime import timedelta

_FORM = re.compile(
    r"P(?=[0-9T])(?:(?P<weeks>\d{1,8})W)?(?:(?P<days>\d{1,8})D)?"
    r"(?:T(?=[0-9])(?:(?P<hours>\d{1,9})H)?(?:(?P<minutes>\d{1,9})M)?(?:(?P<seconds>\d{1,9}(?:[.,]\d{1,3})?)S)?)?",
    re.ASCII,
)
DURATION = (
    r"P(?=[0-9T])([0-9]{1,8}W)?([0-9]{1,8}D)?(T(?=[0-9])([0-9]{1,9}H)?([0-9]{1,9}M)?([0-9]{1,9}([.,][0-9]{1,3})?S)?)?"
)
"""The same form in the dialect of JSON Schema."""


def read_duration(text: str) -> timedelta | None:
    """Return the duration, None if the text is not one. Precision: milliseconds."""
    found = _FORM.fullmatch(text)
    if found is None:
        return None
    return timedelta(**{unit: float(number.replace(",", ".")) for unit, number in found.groupdict(default="0").items()})


def write_duration(duration: timedelta) -> str:
    """Return a duration in seconds and the larger units: PT2M, P1DT1H, PT0.5S."""
    hours, rest = divmod(duration - timedelta(days=duration.days), timedelta(hours=1))
    minutes, seconds = divmod(rest, timedelta(minutes=1))
    parts = ((hours, "H"), (minutes, "M"), (seconds / timedelta(seconds=1), "S"))
    time = "".join(f"{number:g}{unit}" for number, unit in parts if number)
    days = f"{duration.days}D" if duration.days else ""
    return f"P{days}T{time}" if time else f"P{days or 'T0S'}"
