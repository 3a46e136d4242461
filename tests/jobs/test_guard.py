"""What a guard remembers: why an attempt has ended, and whether it has stored a result."""

import pytest

from jobs.signals import Lost
from tests.jobs.conftest import Playground
from tests.jobs.test_effects import guard_of


async def test_a_job_that_was_lost_stays_lost_at_the_next_check(playground: Playground) -> None:
    guard = await guard_of(playground, is_stopping=lambda: True, holds_lease=lambda: True)
    for state in ("lost", "running"):
        with pytest.raises(Lost):
            guard.check(state)


async def test_after_a_lost_lease_nothing_else_begins(playground: Playground) -> None:
    guard = await guard_of(playground, is_stopping=lambda: False, holds_lease=lambda: False)
    with pytest.raises(Lost):
        guard.check_lease()
    with pytest.raises(Lost):
        guard.check()


async def test_only_a_result_counts_as_stored(playground: Playground) -> None:
    guard = await guard_of(playground, is_stopping=lambda: False, holds_lease=lambda: True)
    await guard.check_job()
    await guard.write_intent("effect:letter", '{"status":"begun"}')
    assert not guard.has_stored
    await guard.record_step("letter", '"sent"')
    assert guard.has_stored
