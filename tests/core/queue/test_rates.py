"""The rate of an account is learned from the refusals of its provider and shared by all processes."""

from datetime import timedelta
from itertools import pairwise

import pytest

from tests.support.servers import on_both_servers
from tests.support.stack import Stack

pytestmark = [pytest.mark.parametrize("shards", [16]), on_both_servers]

ACCOUNT = ("t", "ada")
SECOND = timedelta(seconds=1)
SLOWER = 0.85


def key(stack: Stack) -> str:
    return f"queue:{{{stack.store.shard_of_account(*ACCOUNT)}}}:rate:t:ada"


async def rate(stack: Stack) -> float:
    return float(await stack.redis.hget(key(stack), "rate") or 0)


async def make_calls(stack: Stack, count: int) -> list[int]:
    """Reserve calls, each when the one before is made; return the ms between them."""
    waits: list[int] = []
    for _ in range(count):
        _, wait = await stack.queue.reserve_call(*ACCOUNT)
        stack.advance_clock(timedelta(milliseconds=wait))
        waits.append(wait)
    return waits


async def test_calls_are_not_spaced_before_the_first_refusal(stack: Stack) -> None:
    assert await stack.queue.reserve_call(*ACCOUNT) == (0, -1)
    assert not await stack.redis.exists(key(stack))


async def test_after_a_refusal_the_calls_of_all_processes_are_spaced_evenly_and_slower(stack: Stack) -> None:
    await stack.queue.learn_rate(*ACCOUNT, 20)
    assert await rate(stack) == pytest.approx(20 * SLOWER)
    moments: list[float] = []
    for _ in range(5):
        await stack.queue.reserve_call(*ACCOUNT)
        moments.append(float(await stack.redis.hget(key(stack), "next") or 0))
    pauses = [later - earlier for earlier, later in pairwise(moments)]
    assert pauses == pytest.approx([1000 / (20 * SLOWER)] * 4, rel=0.15)
    assert pauses == sorted(pauses, reverse=True)


async def test_a_rate_that_is_used_grows(stack: Stack) -> None:
    await stack.queue.learn_rate(*ACCOUNT, 20)
    await make_calls(stack, 40)
    assert 20 < await rate(stack) < 20 * SLOWER + 40 * 0.4


async def test_a_rate_that_is_not_used_stays(stack: Stack) -> None:
    await stack.queue.learn_rate(*ACCOUNT, 20)
    for _ in range(5):
        stack.advance_clock(SECOND)
        assert (await stack.queue.reserve_call(*ACCOUNT))[1] == 0
    assert await rate(stack) == pytest.approx(20 * SLOWER)


async def test_a_second_refusal_shows_the_limit_which_is_then_approached_carefully(stack: Stack) -> None:
    await stack.queue.learn_rate(*ACCOUNT, 20)
    await make_calls(stack, 40)
    await stack.queue.learn_rate(*ACCOUNT, 20)
    learned = await rate(stack)
    assert 20 * SLOWER <= learned < 24
    await make_calls(stack, 20)
    assert learned < await rate(stack) < learned * 1.06


async def test_a_refusal_in_a_quiet_moment_has_another_cause(stack: Stack) -> None:
    await stack.queue.learn_rate(*ACCOUNT, 20)
    await make_calls(stack, 40)
    await stack.queue.learn_rate(*ACCOUNT, 20)
    learned = await rate(stack)
    stack.advance_clock(10 * SECOND)
    await stack.queue.learn_rate(*ACCOUNT, 1)
    assert await rate(stack) == learned


async def test_no_call_is_reserved_while_the_account_is_throttled(stack: Stack) -> None:
    await stack.queue.learn_rate(*ACCOUNT, 20)
    await stack.queue.throttle("t", "method:ada", 2 * SECOND)
    assert await stack.queue.throttle("t", "method:ada", SECOND)
    throttled, wait = await stack.queue.reserve_call(*ACCOUNT)
    assert (1900 < throttled <= 2000, wait) == (True, 0)
    stack.advance_clock(2 * SECOND)
    assert (await stack.queue.reserve_call(*ACCOUNT))[0] == 0


async def test_a_rate_without_calls_is_forgotten(stack: Stack) -> None:
    await stack.queue.learn_rate(*ACCOUNT, 20)
    assert 3_590_000 < await stack.redis.pttl(key(stack)) <= 3_600_000


async def test_a_rate_that_has_grown_beyond_any_limit_is_forgotten(stack: Stack) -> None:
    await stack.queue.learn_rate(*ACCOUNT, 1176)
    await stack.queue.reserve_call(*ACCOUNT)
    stack.advance_clock(-SECOND)  # so each further call has to wait, however slow the machine is
    reserved = [await stack.queue.reserve_call(*ACCOUNT) for _ in range(5)]
    assert reserved[-1] == (0, -1)
    assert not await stack.redis.exists(key(stack))
