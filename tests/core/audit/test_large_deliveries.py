"""A delivery that is too large for one atomic read is read in pages, and its damages are found as well."""

import pytest

from core.audit import Audit
from tests.support.stack import HOUR, FakeCourier, Stack, people

MANY = 700
"""Recipients. With their entries and outcomes these are more than one read takes."""


@pytest.mark.parametrize("is_sent", [False, True], ids=["scheduled", "sent"])
async def test_a_damaged_counter_or_outcome_of_a_large_delivery_is_found(stack: Stack, is_sent: bool) -> None:
    if is_sent:
        await stack.courier(FakeCourier())
    later = None if is_sent else stack.now() + HOUR
    key = (await stack.deliver(*people(MANY), deliver_at=later)).key
    if is_sent:
        await stack.finished(key)
    history, outcomes = f"history:{{0}}:{key.suffix}", f"history:{{0}}:{key.suffix}:outcomes"
    assert await found(stack) == (set(), 0)
    await stack.redis.hincrby(history, "n:echo:sent", 1)
    assert await found(stack) == ({("I13", history)}, 0)
    await stack.redis.hincrby(history, "n:echo:sent", -1)
    if is_sent:
        outcome = await stack.redis.hget(outcomes, "7:echo")
        await stack.redis.hdel(outcomes, "7:echo")
        violations, unread = await found(stack)
        assert (("I13", history) in violations, unread) == (True, 0)
        await stack.redis.hset(outcomes, "7:echo", outcome)


async def found(stack: Stack) -> tuple[set[tuple[str, str]], int]:
    """(rule, key) of the violations, and how many deliveries were not read."""
    audit = Audit(stack.store)
    violations = {(violation.rule, violation.key) async for violation in audit.find()}
    return violations, audit.summary.unread
