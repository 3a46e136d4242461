"""When iterations are due: no drift, none twice, none skipped; windows on the user's wall clock."""

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import Invalid
from core.jobs import DailyWindow, Schedule

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
MINUTES = timedelta(minutes=1)
EVERY_TEN = Schedule(10 * MINUTES)
MOSCOW = ZoneInfo("Europe/Moscow")
BERLIN = ZoneInfo("Europe/Berlin")


def test_iterations_are_due_on_a_grid_without_drift() -> None:
    due = NOON
    for n in range(1, 100):
        due = EVERY_TEN.next(NOON, due, due + timedelta(seconds=30), UTC)
        assert due == NOON + n * 10 * MINUTES


def test_iterations_that_were_missed_are_made_up_for_by_one_at_once() -> None:
    late = NOON + 57 * MINUTES
    assert EVERY_TEN.next(NOON, NOON, late, UTC) == late, "an iteration that took 57 minutes"
    assert EVERY_TEN.next(NOON, late, late + MINUTES, UTC) == NOON + 60 * MINUTES


def test_outside_the_window_an_iteration_waits_for_its_opening() -> None:
    schedule = Schedule(10 * MINUTES, DailyWindow(time(9), time(20)))
    assert schedule.in_window(NOON, MOSCOW) == NOON
    evening = datetime(2026, 11, 22, 20, 30, tzinfo=MOSCOW)
    assert schedule.in_window(evening, MOSCOW) == datetime(2026, 11, 23, 9, tzinfo=MOSCOW)
    early = datetime(2026, 11, 22, 3, tzinfo=MOSCOW)
    assert schedule.in_window(early, MOSCOW) == datetime(2026, 11, 22, 9, tzinfo=MOSCOW)


def test_a_window_may_cross_midnight_and_a_change_of_the_clock() -> None:
    schedule = Schedule(10 * MINUTES, DailyWindow(time(22), time(4)))
    assert schedule.in_window(datetime(2026, 11, 22, 3, tzinfo=BERLIN), BERLIN) == datetime(
        2026, 11, 22, 3, tzinfo=BERLIN
    )
    day_of_change = datetime(2026, 10, 25, 12, tzinfo=BERLIN)
    assert schedule.in_window(day_of_change, BERLIN) == datetime(2026, 10, 25, 22, tzinfo=BERLIN)


@pytest.mark.parametrize(
    ("at", "opens"),
    [
        ("2026-10-25T00:50Z", "2026-10-25T01:30Z"),  # 02:50, and 02:30 comes again
        ("2026-10-25T01:10Z", "2026-10-25T01:30Z"),  # the second 02:10
        ("2026-03-29T00:10Z", "2026-03-29T01:00Z"),  # 02:30 does not come
    ],
)
def test_a_window_that_opens_while_the_clock_changes_opens_later_and_at_a_time_that_exists(at: str, opens: str) -> None:
    schedule = Schedule(10 * MINUTES, DailyWindow(time(2, 30), time(2, 45)))
    assert schedule.in_window(datetime.fromisoformat(at), BERLIN) == datetime.fromisoformat(opens)


@given(
    st.integers(1, 10_000).map(lambda seconds: timedelta(seconds=seconds)),
    st.integers(0, 100_000).map(lambda seconds: timedelta(seconds=seconds)),
    st.integers(0, 100_000).map(lambda seconds: timedelta(seconds=seconds)),
)
def test_the_next_iteration_is_later_and_at_most_a_period_away(
    period: timedelta, begun_after: timedelta, took: timedelta
) -> None:
    begun = NOON + begun_after
    following = Schedule(period).next(NOON, begun, begun + took, UTC)
    assert following > begun
    assert begun + took <= following <= begun + took + period


@pytest.mark.parametrize("period", [timedelta(0), timedelta(seconds=-1), timedelta(days=3650)])
def test_a_period_out_of_range_is_refused(period: timedelta) -> None:
    with pytest.raises(Invalid) as refusal:
        Schedule(period)
    assert refusal.value.code == "PERIOD_OUT_OF_RANGE"


def test_an_empty_window_is_refused() -> None:
    with pytest.raises(Invalid) as refusal:
        Schedule(MINUTES, DailyWindow(time(9), time(9)))
    assert refusal.value.code == "WINDOW_EMPTY"
