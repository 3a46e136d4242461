"""A wait holds what it was said about, in every process, and nobody else."""

import asyncio
from datetime import timedelta

import pytest

from tests.core.house import House
from tests.servers import on_both_servers

pytestmark = [on_both_servers, pytest.mark.row("D-22")]
MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize("scope", ["account", "method"])
async def test_a_held_account_takes_nothing_until_its_wait_is_over(house: House, scope: str) -> None:
    await house.queue.put("t", "a")
    await house.queue.hold("t", f"{scope}:held", MINUTE)
    claim = await house.claim(account="held")
    assert (list(claim.tasks), claim.waits) == ([], 1)
    assert 50_000 < claim.opens_at - claim.now <= 60_000
    house.passes(MINUTE)
    assert [task.body for task in await house.take(account="held")] == ["a"]


@pytest.mark.parametrize("scope", ["account:other", "method:other", "chat:held", "recipient:held"])
async def test_another_accounts_or_chats_wait_holds_nobody_else(house: House, scope: str) -> None:
    await house.queue.put("t", "a")
    await house.queue.hold("t", scope, MINUTE)
    assert [task.body for task in await house.take(account="held")] == ["a"]


async def test_a_wait_of_one_tube_is_none_of_another(house: House) -> None:
    await house.queue.put("t", "a")
    await house.queue.hold("u", "account:held", MINUTE)
    assert len(await house.take(account="held")) == 1


async def test_the_longer_of_two_waits_is_kept(house: House) -> None:
    await asyncio.gather(*(house.queue.hold("t", "account:held", n * MINUTE) for n in (3, 1, 2)))
    claim = await house.claim(account="held")
    assert 170_000 < claim.opens_at - claim.now <= 180_000


async def test_waits_of_chats_are_told_to_every_process_until_they_are_over(house: House) -> None:
    await house.queue.hold("t", "chat:5", MINUTE)
    until = await house.queue.waits("t", 0, ["chat:5", "chat:6"])
    assert list(until) == ["chat:5"]
    house.passes(2 * MINUTE)
    assert (await house.claim()).waits == 0
    assert await house.queue.waits("t", 0, ["chat:5"]) == {}


async def test_a_wait_leaves_nothing_behind(house: House) -> None:
    await house.queue.hold("t", "account:held", MINUTE)
    assert 0 < await house.redis.pttl("queue:{0}:waits:t") <= 62_000


async def test_a_held_account_still_lets_time_go_on(house: House) -> None:
    await house.queue.put("u", "a", due=house.now() + MINUTE)
    await house.queue.hold("t", "account:held", 10 * MINUTE)
    house.passes(2 * MINUTE)
    await house.take(account="held")
    assert await house.redis.zcard("queue:{0}:ready:u:default") == 1
