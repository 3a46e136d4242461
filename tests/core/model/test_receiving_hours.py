"""The hours in which a person wants messages: when they open next, by the wall clock of their zone."""

from datetime import UTC, datetime

import pytest

from core.errors import Invalid
from core.model.hours import next_opening, read_hours


def at(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%d %H:%M").replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("hours", "now", "opens"),
    [
        ("", "2026-11-28 03:00", None),
        ("08:00-22:00 Europe/Moscow", "2026-11-28 05:00", None),
        ("08:00-22:00 Europe/Moscow", "2026-11-28 18:59", None),
        ("08:00-22:00 Europe/Moscow", "2026-11-28 19:00", "2026-11-29 05:00"),
        ("08:00-22:00 Europe/Moscow", "2026-11-28 04:59", "2026-11-28 05:00"),
        ("22:00-02:00 UTC", "2026-11-28 01:59", None),
        ("22:00-02:00 UTC", "2026-11-28 02:00", "2026-11-28 22:00"),
        ("18:00-18:00 UTC", "2026-11-28 18:00", None),
        ("18:00-18:00 UTC", "2026-11-28 18:01", "2026-11-29 18:00"),
        ("00:00-00:00 UTC", "2026-11-28 23:59", "2026-11-29 00:00"),
        ("08:00-09:00 Europe/Berlin", "2026-10-24 12:00", "2026-10-25 07:00"),  # the clock is put back at night
        ("02:30-03:30 Europe/Berlin", "2027-03-28 00:00", "2027-03-28 01:30"),  # there is no 02:30
    ],
)
def test_the_next_opening_is_on_the_wall_clock_of_the_zone(hours: str, now: str, opens: str | None) -> None:
    assert next_opening(hours, at(now)) == (at(opens) if opens else None)


@pytest.mark.parametrize(
    ("ordered", "now", "opens"),
    [
        ("2026-11-28 17:59", "2026-11-28 18:29", None),
        ("2026-11-28 17:59", "2026-11-28 18:30", "2026-11-29 18:00"),
        ("2026-11-28 18:01", "2026-11-28 18:29", "2026-11-29 18:00"),
        ("2026-11-27 12:00", "2026-11-28 12:00", "2026-11-28 18:00"),
    ],
)
def test_what_is_ordered_after_the_time_of_the_day_waits_for_the_next(
    ordered: str, now: str, opens: str | None
) -> None:
    assert next_opening("18:00-18:00 UTC", at(now), at(ordered)) == (at(opens) if opens else None)


@pytest.mark.parametrize("hours", ["8:00-22:00 UTC", "08:00-24:00 UTC", "08:00-22:00", "08:00-22:00 Nowhere/Here", "-"])
def test_what_is_no_hours_is_refused(hours: str) -> None:
    with pytest.raises(Invalid, match=r"is not like 08:00-22:00 Europe/Moscow"):
        read_hours(hours)
