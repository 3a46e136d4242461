"""A throttle stops what it was set for, in every process, and nothing else."""

import asyncio
from datetime import timedelta

import pytest

from core.queue import NewTask
from tests.support.servers import on_both_servers
from tests.support.stack import Stack

pytestmark = on_both_servers
MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize("scope", ["account", "method"])
async def test_a_throttled_account_takes_no_task_until_the_throttle_ends(stack: Stack, scope: str) -> None:
    await stack.queue.put("t", NewTask("a"))
    await stack.queue.throttle("t", f"{scope}:ada", MINUTE)
    claim = await stack.claim(account="ada")
    assert (list(claim.tasks), claim.throttles) == ([], 1)
    assert 50_000 < claim.opens_at - claim.now <= 60_000
    stack.advance_clock(MINUTE)
    assert [task.body for task in await stack.take(account="ada")] == ["a"]


@pytest.mark.parametrize("scope", ["account:other", "method:other", "chat:ada", "recipient:ada"])
async def test_the_throttle_of_another_account_or_of_a_chat_does_not_stop_an_account(stack: Stack, scope: str) -> None:
    await stack.queue.put("t", NewTask("a"))
    await stack.queue.throttle("t", scope, MINUTE)
    assert [task.body for task in await stack.take(account="ada")] == ["a"]


async def test_a_throttle_applies_to_one_tube_only(stack: Stack) -> None:
    await stack.queue.put("t", NewTask("a"))
    await stack.queue.throttle("u", "account:ada", MINUTE)
    assert len(await stack.take(account="ada")) == 1


async def test_the_longest_of_several_throttles_applies(stack: Stack) -> None:
    await asyncio.gather(*(stack.queue.throttle("t", "account:ada", n * MINUTE) for n in (3, 1, 2)))
    claim = await stack.claim(account="ada")
    assert 170_000 < claim.opens_at - claim.now <= 180_000


async def test_throttles_of_chats_are_visible_to_every_process_until_they_end(stack: Stack) -> None:
    await stack.queue.throttle("t", "chat:5", MINUTE)
    until = await stack.queue.throttles("t", 0, ["chat:5", "chat:6"])
    assert list(until) == ["chat:5"]
    stack.advance_clock(2 * MINUTE)
    assert (await stack.claim()).throttles == 0
    assert await stack.queue.throttles("t", 0, ["chat:5"]) == {}


async def test_the_key_of_a_throttle_expires(stack: Stack) -> None:
    await stack.queue.throttle("t", "account:ada", MINUTE)
    assert 0 < await stack.redis.pttl("queue:{0}:throttles:t") <= 62_000


async def test_a_worker_of_a_throttled_account_still_promotes_due_tasks(stack: Stack) -> None:
    await stack.queue.put("u", NewTask("a", due=stack.now() + MINUTE))
    await stack.queue.throttle("t", "account:ada", 10 * MINUTE)
    stack.advance_clock(2 * MINUTE)
    await stack.take(account="ada")
    assert await stack.redis.zcard("queue:{0}:ready:u:default") == 1


async def test_a_short_throttle_of_a_chat_does_not_cut_that_of_the_account_short(stack: Stack) -> None:
    """All throttles of a tube are in one key: it lives as long as the longest of them."""
    await stack.queue.throttle("t", "account:ada", MINUTE)
    await stack.queue.throttle("t", "chat:5", MINUTE / 600)
    assert await stack.redis.pttl("queue:{0}:throttles:t") > 50_000
