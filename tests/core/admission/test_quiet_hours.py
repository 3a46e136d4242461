"""Quiet hours: what is moved, to when, also in the nights in which the clock changes."""

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.model.hours import QuietHours, TenantQuietHours

NO_SPREAD = timedelta()
BERLIN, MOSCOW = ZoneInfo("Europe/Berlin"), ZoneInfo("Europe/Moscow")
NIGHT = QuietHours(time(0), time(7), MOSCOW)
LATE = QuietHours(time(22), time(8), MOSCOW)


def moscow(text: str) -> datetime:
    return datetime.fromisoformat(f"{text}+03:00")


@pytest.mark.parametrize(
    ("hours", "at", "moved"),
    [
        (NIGHT, "2026-11-21T00:00:00", "2026-11-21T07:00:00"),
        (NIGHT, "2026-11-21T03:12:45.678", "2026-11-21T07:00:00"),
        (NIGHT, "2026-11-21T06:59:59.999", "2026-11-21T07:00:00"),
        (NIGHT, "2026-11-21T07:00:00", None),
        (NIGHT, "2026-11-20T23:59:59.999", None),
        (LATE, "2026-11-21T22:00:00", "2026-11-22T08:00:00"),
        (LATE, "2026-11-21T23:59:59.999", "2026-11-22T08:00:00"),
        (LATE, "2026-11-22T00:00:00", "2026-11-22T08:00:00"),
        (LATE, "2026-11-22T07:59:59.999", "2026-11-22T08:00:00"),
        (LATE, "2026-11-22T08:00:00", None),
        (LATE, "2026-11-22T21:59:59.999", None),
        (LATE, "2026-12-31T23:00:00", "2027-01-01T08:00:00"),
    ],
)
def test_a_moment_in_quiet_hours_is_moved_to_their_end(hours: QuietHours, at: str, moved: str | None) -> None:
    assert hours.moved(moscow(at), NO_SPREAD) == (moved and moscow(moved))


@pytest.mark.parametrize(
    ("begin", "end", "at", "moved"),
    [
        # Spring: 29 March 2026, 02:00 becomes 03:00 (01:00 UTC).
        ("00:00", "07:00", "2026-03-28T23:30:00Z", "2026-03-29T05:00:00Z"),
        ("22:00", "08:00", "2026-03-28T21:30:00Z", "2026-03-29T06:00:00Z"),
        ("00:00", "02:30", "2026-03-28T23:30:00Z", "2026-03-29T01:00:00Z"),
        ("02:30", "07:00", "2026-03-29T00:59:59Z", None),
        ("02:30", "07:00", "2026-03-29T01:00:00Z", "2026-03-29T05:00:00Z"),
        # Autumn: 25 October 2026, 03:00 becomes 02:00 (01:00 UTC).
        ("00:00", "07:00", "2026-10-24T22:30:00Z", "2026-10-25T06:00:00Z"),
        ("22:00", "08:00", "2026-10-24T20:30:00Z", "2026-10-25T07:00:00Z"),
        ("00:00", "02:30", "2026-10-24T23:30:00Z", "2026-10-25T00:30:00Z"),
        ("00:00", "02:30", "2026-10-25T00:45:00Z", None),
        ("00:00", "02:30", "2026-10-25T01:10:20Z", "2026-10-25T01:30:00Z"),
    ],
)
def test_the_wall_clock_counts_when_the_clock_changes(begin: str, end: str, at: str, moved: str | None) -> None:
    hours = QuietHours(time.fromisoformat(begin), time.fromisoformat(end), BERLIN)
    expected = datetime.fromisoformat(moved) if moved else None
    assert hours.moved(datetime.fromisoformat(at), NO_SPREAD) == expected


def test_the_spread_does_not_lead_back_into_quiet_hours() -> None:
    """In the autumn night 02:58 comes twice; three minutes after the first one it is 02:01, which is quiet."""
    hours = QuietHours(time(0), time(2, 58), BERLIN)
    first = datetime(2026, 10, 25, 0, 58, tzinfo=UTC)
    assert hours.moved(first - timedelta(hours=1), timedelta(minutes=3)) == first


minutes = st.integers(0, 24 * 60 - 1).map(lambda n: time(n // 60, n % 60))
nights = st.sampled_from([datetime(2026, 3, 29, tzinfo=UTC), datetime(2026, 10, 25, tzinfo=UTC)])
moments = st.timedeltas(timedelta(0), timedelta(days=800)).map(
    lambda after: datetime(2026, 1, 1, tzinfo=UTC) + after
) | st.builds(lambda night, offset: night + offset, nights, st.timedeltas(timedelta(days=-1), timedelta(days=1)))
zones = st.sampled_from([BERLIN, MOSCOW, ZoneInfo("America/St_Johns"), ZoneInfo("Australia/Lord_Howe"), UTC])


@given(begin=minutes, end=minutes, zone=zones, at=moments)
def test_a_moved_moment_is_later_and_never_in_quiet_hours(begin: time, end: time, zone: ZoneInfo, at: datetime) -> None:
    hours = QuietHours(begin, end, zone)
    moved = hours.moved(at)
    assert (moved is not None) == hours.contain(at)
    if moved is None:
        return
    assert at < moved
    assert not hours.contain(moved)
    first = hours.moved(at, NO_SPREAD)
    assert first is not None
    assert timedelta(0) <= moved - first <= timedelta(minutes=5, seconds=59)
    before = first - timedelta(seconds=1)
    assert before < at or hours.contain(before), "no moment between was allowed"


def test_the_spread_covers_almost_six_minutes() -> None:
    moved = [NIGHT.moved(moscow("2026-11-21T03:00:00")) for _ in range(1000)]
    spreads = [(one - moscow("2026-11-21T07:00:00")).total_seconds() for one in moved if one]
    assert 0 <= min(spreads) < 30
    assert 330 < max(spreads) <= 359


def test_each_tenant_has_its_own_time_zone() -> None:
    both = TenantQuietHours(NIGHT, {"berlin": BERLIN})
    assert (both.of("moscow"), both.of("berlin")) == (NIGHT, QuietHours(time(0), time(7), BERLIN))
    assert TenantQuietHours(None, {"berlin": BERLIN}).of("berlin") is None
