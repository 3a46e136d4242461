"""Delivery times as people type them, in the time zone of the tenant; durations as people read them."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from core.orders.check import TimePassed, TypedTime, read_time
from core.sentence import duration
from scenarios.sending.person import moment

MOSCOW, BERLIN = ZoneInfo("Europe/Moscow"), ZoneInfo("Europe/Berlin")
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
    assert (found.at.tzinfo, found.skipped) == (UTC, "")
    assert moment(found.at, MOSCOW) == expected


@pytest.mark.parametrize("typed", ["", "soon", "25:00", "9", "31.2.2027 9:00", "9:60", "22.11.2026"])
def test_what_is_no_time_is_recognized(typed: str) -> None:
    assert read_time(typed, NOW, MOSCOW) is None


@pytest.mark.parametrize("typed", ["22.11 11:59", "1.1.2020 9:00", "22.11.2026 12:00"])
def test_a_passed_time_is_refused(typed: str) -> None:
    with pytest.raises(TimePassed):
        read_time(typed, NOW, MOSCOW)


@pytest.mark.parametrize(
    ("now", "typed", "at", "skipped"),
    [
        # 25 October 2026, 03:00 becomes 02:00 (01:00 UTC). Now is the second 02:10.
        ("2026-10-25T01:10Z", "2:30", "2026-10-25T01:30Z", ""),
        ("2026-10-25T01:10Z", "25.10 2:30", "2026-10-25T01:30Z", ""),
        ("2026-10-25T00:50Z", "2:30", "2026-10-25T01:30Z", ""),
        ("2026-10-25T00:10Z", "2:30", "2026-10-25T00:30Z", ""),
        ("2026-10-25T01:40Z", "2:30", "2026-10-26T01:30Z", ""),
        ("2026-10-25T01:10Z", "tomorrow 2:30", "2026-10-26T01:30Z", ""),
        # 29 March 2026, 02:00 becomes 03:00 (01:00 UTC).
        ("2026-03-29T00:10Z", "2:30", "2026-03-29T01:00Z", "02:30"),
        ("2026-03-28T12:00Z", "tomorrow 2:30", "2026-03-29T01:00Z", "02:30"),
        ("2026-03-28T12:00Z", "29.3 2:30", "2026-03-29T01:00Z", "02:30"),
        ("2026-03-29T01:10Z", "2:30", "2026-03-30T00:30Z", ""),
    ],
)
def test_a_time_in_a_night_in_which_the_clock_changes_is_the_next_that_exists(
    now: str, typed: str, at: str, skipped: str
) -> None:
    found = read_time(typed, datetime.fromisoformat(now), BERLIN)
    assert found == TypedTime(datetime.fromisoformat(at), skipped)


def test_both_of_a_time_that_comes_twice_can_have_passed() -> None:
    with pytest.raises(TimePassed):
        read_time("25.10 2:30", datetime(2026, 10, 25, 1, 30, tzinfo=UTC), BERLIN)


@pytest.mark.parametrize("typed", ["1.1.0001 0:30", "31.12.9999 23:30"])
@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/New_York"])
def test_a_year_at_the_end_of_the_calendar_does_not_end_the_dialog(typed: str, zone: str) -> None:
    with suppress(TimePassed):
        read_time(typed, NOW, ZoneInfo(zone))


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
    assert duration(span).in_language("en") == read
