"""Times on the wall clock of a zone, also in the nights in which the clock changes."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.model.clock import from_wall, is_skipped

BERLIN = ZoneInfo("Europe/Berlin")
ZONES = [ZoneInfo(name) for name in ("Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Pacific/Apia", "UTC")]


@pytest.mark.parametrize(
    ("wall", "now", "moment"),
    [
        ("2026-11-22T14:30", "2026-11-22T10:00Z", "2026-11-22T13:30Z"),
        # Autumn: 25 October 2026, 03:00 becomes 02:00 (01:00 UTC), so 02:30 comes twice.
        ("2026-10-25T02:30", "2026-10-24T20:00Z", "2026-10-25T00:30Z"),
        ("2026-10-25T02:30", "2026-10-25T00:29Z", "2026-10-25T00:30Z"),
        ("2026-10-25T02:30", "2026-10-25T00:30Z", "2026-10-25T01:30Z"),
        ("2026-10-25T02:30", "2026-10-25T01:10Z", "2026-10-25T01:30Z"),
        # Spring: 29 March 2026, 02:00 becomes 03:00 (01:00 UTC), so 02:30 does not come.
        ("2026-03-29T01:59", "2026-03-28T20:00Z", "2026-03-29T00:59Z"),
        ("2026-03-29T02:00", "2026-03-28T20:00Z", "2026-03-29T01:00Z"),
        ("2026-03-29T02:30", "2026-03-28T20:00Z", "2026-03-29T01:00Z"),
        ("2026-03-29T02:30:15", "2026-03-28T20:00Z", "2026-03-29T01:00Z"),
        ("2026-03-29T03:00", "2026-03-28T20:00Z", "2026-03-29T01:00Z"),
    ],
)
def test_a_time_that_comes_twice_is_the_next_one_and_a_skipped_one_the_minute_after(
    wall: str, now: str, moment: str
) -> None:
    found = from_wall(datetime.fromisoformat(wall), BERLIN, datetime.fromisoformat(now))
    assert (found, found.tzinfo) == (datetime.fromisoformat(moment), UTC)


def test_without_the_current_time_the_first_of_two_moments_counts() -> None:
    assert from_wall(datetime.fromisoformat("2026-10-25T02:30"), BERLIN) == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)


moments = st.builds(
    lambda night, offset: night + offset,
    st.sampled_from(
        [datetime(2011, 12, 30, tzinfo=UTC), datetime(2026, 3, 29, tzinfo=UTC), datetime(2026, 4, 5, tzinfo=UTC)]
    ),
    st.timedeltas(timedelta(days=-3), timedelta(days=300)),
)


@given(moments, st.sampled_from(ZONES))
def test_each_moment_is_found_again_from_what_the_clock_shows(moment: datetime, zone: ZoneInfo) -> None:
    wall = moment.astimezone(zone).replace(tzinfo=None, fold=0)
    assert not is_skipped(wall, zone)
    assert from_wall(wall, zone, moment - timedelta(microseconds=1)) == moment


@given(moments.map(lambda at: at.replace(tzinfo=None)), st.sampled_from(ZONES))
def test_only_a_skipped_time_becomes_another_and_it_is_the_first_after_the_skip(wall: datetime, zone: ZoneInfo) -> None:
    found = from_wall(wall, zone)
    shown = found.astimezone(zone).replace(tzinfo=None)
    assert is_skipped(wall, zone) == (shown != wall)
    if shown != wall:
        before = (found - timedelta(minutes=1)).astimezone(zone).replace(tzinfo=None)
        assert before < wall < shown
