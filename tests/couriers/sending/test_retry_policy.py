"""The retry policy at its boundaries: how long a provider remembers a random id, how many attempts there are."""

from datetime import timedelta

import pytest

from core.model.clock import Backoff
from core.model.states import Reason, Status
from couriers.sending.interface import FOREVER, NEVER, Deferred, Halted, Outcome, Partly, Unknown
from couriers.sending.retry_policy import Final, Postponed, decide, still_remembered
from tests.support.stack import HOUR

SECOND = timedelta(seconds=1)
PAUSE = Backoff(first=10 * SECOND, longest=10 * SECOND, attempts=4)


def decided(outcome: Outcome, attempts: int = 0, age: timedelta = timedelta(0), remembers: timedelta = HOUR) -> object:
    """The decision with the whole pause of 10 s."""
    return decide(outcome, attempts, age, remembers, PAUSE, jitter=1.0)


@pytest.mark.parametrize("outcome", [Unknown(), Partly(Deferred(Reason.THROTTLED), "5")], ids=["unknown", "partly"])
def test_an_unclear_message_is_repeated_only_if_the_provider_still_knows_its_id_after_the_pause(
    outcome: Outcome,
) -> None:
    """The age counts from the first unclear attempt, and the pause before the repeat is a part of it."""
    known = decided(outcome, age=HOUR - 11 * SECOND)
    assert isinstance(known, Postponed)
    assert known.unclear
    for age in (HOUR - 10 * SECOND, HOUR - 9 * SECOND, 2 * HOUR):
        forgotten = decided(outcome, age=age)
        assert isinstance(forgotten, Final)
        assert forgotten.status is Status.UNKNOWN
    assert isinstance(decided(outcome, age=1000 * HOUR, remembers=FOREVER), Postponed)
    assert isinstance(decided(outcome, remembers=NEVER), Final)


@pytest.mark.parametrize(("outcome", "end"), [(Unknown(), "unknown"), (Deferred(Reason.THROTTLED), "failed")])
def test_the_last_attempt_is_the_one_that_the_backoff_names(outcome: Outcome, end: str) -> None:
    before, last = (decided(outcome, attempts=attempts) for attempts in (2, 3))
    assert isinstance(before, Postponed)
    assert (before.attempts, before.pause) == (3, 10 * SECOND)
    assert isinstance(last, Final)
    assert last.status == end


def test_a_halted_account_postpones_at_once_and_counts_no_attempt() -> None:
    assert decided(Halted("401"), attempts=2) == Postponed(timedelta(0), 2, Reason.ACCOUNT_STOPPED)


def test_a_random_id_is_remembered_until_and_not_at_the_end_of_its_time() -> None:
    assert still_remembered(HOUR - SECOND, HOUR)
    assert not still_remembered(HOUR, HOUR)
    assert not still_remembered(timedelta(0), NEVER)
