"""Delivery times as people type them, in the time zone of the tenant; durations as people read them."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from bots.conversation.times import TimePassed, read_time, tomorrow_morning
from bots.wording import duration, moment

MOSCOW = ZoneInfo("Europe/Moscow")
NOW = datetime(2026, 11, 22, 12, 0, tzinfo=MOSCOW)


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("14:30", "22.11.2026 14:30"),
        (" 14.30 ", "22.11.2026 14:30"),
        ("9:00", "23.11.2026 09:00"),
        ("12:00", "23.11.2026 12:00"),
        ("завтра в 9:00", "23.11.2026 09:00"),
        ("Tomorrow 23:15", "23.11.2026 23:15"),
        ("25.11 9:00", "25.11.2026 09:00"),
        ("1.2.2027 at 9:00", "01.02.2027 09:00"),
    ],
)
def test_a_typed_time_is_read_in_the_time_zone(typed: str, expected: str) -> None:
    found = read_time(typed, NOW, MOSCOW)
    assert found is not None
    assert found.tzinfo is UTC
    assert moment(found, MOSCOW) == expected


@pytest.mark.parametrize("typed", ["", "soon", "25:00", "9", "31.2.2027 9:00", "9:60", "22.11.2026"])
def test_what_is_no_time_is_recognized(typed: str) -> None:
    assert read_time(typed, NOW, MOSCOW) is None


@pytest.mark.parametrize("typed", ["22.11 11:59", "1.1.2020 9:00", "22.11.2026 12:00"])
def test_a_passed_time_is_refused(typed: str) -> None:
    with pytest.raises(TimePassed):
        read_time(typed, NOW, MOSCOW)


def test_tomorrow_morning_is_nine_o_clock_also_over_a_change_of_the_clock() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    evening = datetime(2026, 10, 24, 23, tzinfo=berlin)
    assert moment(tomorrow_morning(evening, berlin), berlin) == "25.10.2026 09:00"


@pytest.mark.parametrize(
    ("span", "read"),
    [
        (timedelta(0), "1 s"),
        (timedelta(seconds=59), "59 s"),
        (timedelta(seconds=61), "2 min"),
        (timedelta(minutes=59, seconds=30), "1 h"),
        (timedelta(hours=23, minutes=1), "23 h 1 min"),
        (timedelta(days=1), "1 d"),
        (timedelta(days=1, hours=2, minutes=5), "1 d 2 h"),
    ],
)
def test_a_duration_is_read_in_its_two_largest_units(span: timedelta, read: str) -> None:
    assert duration(span, "en") == read
