"""A wait holds what it was said about, in every process, and nobody else."""

import asyncio
from datetime import timedelta

import pytest

from tests.support.servers import on_both_servers
from tests.support.stack import Stack

pytestmark = [on_both_servers, pytest.mark.row("D-22")]
MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize("scope", ["account", "method"])
async def test_a_held_account_takes_nothing_until_its_wait_is_over(stack: Stack, scope: str) -> None:
    await stack.queue.put("t", "a")
    await stack.queue.throttle("t", f"{scope}:held", MINUTE)
    claim = await stack.claim(account="held")
    assert (list(claim.tasks), claim.waits) == ([], 1)
    assert 50_000 < claim.opens_at - claim.now <= 60_000
    stack.passes(MINUTE)
    assert [task.body for task in await stack.take(account="held")] == ["a"]


@pytest.mark.parametrize("scope", ["account:other", "method:other", "chat:held", "recipient:held"])
async def test_another_accounts_or_chats_wait_holds_nobody_else(stack: Stack, scope: str) -> None:
    await stack.queue.put("t", "a")
    await stack.queue.throttle("t", scope, MINUTE)
    assert [task.body for task in await stack.take(account="held")] == ["a"]


async def test_a_wait_of_one_tube_is_none_of_another(stack: Stack) -> None:
    await stack.queue.put("t", "a")
    await stack.queue.throttle("u", "account:held", MINUTE)
    assert len(await stack.take(account="held")) == 1


async def test_the_longer_of_two_waits_is_kept(stack: Stack) -> None:
    await asyncio.gather(*(stack.queue.throttle("t", "account:held", n * MINUTE) for n in (3, 1, 2)))
    claim = await stack.claim(account="held")
    assert 170_000 < claim.opens_at - claim.now <= 180_000


async def test_waits_of_chats_are_told_to_every_process_until_they_are_over(stack: Stack) -> None:
    await stack.queue.throttle("t", "chat:5", MINUTE)
    until = await stack.queue.throttles("t", 0, ["chat:5", "chat:6"])
    assert list(until) == ["chat:5"]
    stack.passes(2 * MINUTE)
    assert (await stack.claim()).waits == 0
    assert await stack.queue.throttles("t", 0, ["chat:5"]) == {}


async def test_a_wait_leaves_nothing_behind(stack: Stack) -> None:
    await stack.queue.throttle("t", "account:held", MINUTE)
    assert 0 < await stack.redis.pttl("queue:{0}:waits:t") <= 62_000


async def test_a_held_account_still_lets_time_go_on(stack: Stack) -> None:
    await stack.queue.put("u", "a", due=stack.now() + MINUTE)
    await stack.queue.throttle("t", "account:held", 10 * MINUTE)
    stack.passes(2 * MINUTE)
    await stack.take(account="held")
    assert await stack.redis.zcard("queue:{0}:ready:u:default") == 1
