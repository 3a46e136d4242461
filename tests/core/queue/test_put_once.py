"""A task that is put under a name of its source is put once, however often the source repeats it."""

import asyncio
from datetime import timedelta

from core.queue import NewTask
from tests.support.stack import Stack


def task(body: str) -> NewTask:
    return NewTask(body, lane="person 7")


async def test_of_many_puts_with_the_same_name_one_is_added(stack: Stack) -> None:
    added = await asyncio.gather(
        *(stack.queue.put_once("updates", task("hello"), source="bot", name="1") for _ in range(20))
    )
    assert sum(added) == 1
    assert await stack.finish_all("updates") == ["hello"]


async def test_a_repeat_after_the_task_has_ended_adds_nothing(stack: Stack) -> None:
    await stack.queue.put_once("updates", task("hello"), source="bot", name="1")
    assert await stack.finish_all("updates") == ["hello"]
    assert not await stack.queue.put_once("updates", task("hello"), source="bot", name="1")
    assert await stack.finish_all("updates") == []


async def test_another_name_and_another_source_are_other_tasks(stack: Stack) -> None:
    for source, name in (("bot", "1"), ("bot", "2"), ("gateway", "1")):
        assert await stack.queue.put_once("updates", task(f"{source} {name}"), source=source, name=name)
    assert await stack.finish_all("updates") == ["bot 1", "bot 2", "gateway 1"]


async def test_a_name_is_forgotten_after_a_day(stack: Stack) -> None:
    await stack.queue.put_once("updates", task("first"), source="bot", name="1")
    stack.advance_clock(timedelta(hours=25))
    assert await stack.queue.put_once("updates", task("second"), source="bot", name="1")
    assert 0 < await stack.redis.pttl("queue:{0}:seen:bot") <= 24 * 3600 * 1000


async def test_each_of_many_names_of_a_day_is_remembered(stack: Stack) -> None:
    names = [str(number) for number in range(120)]
    for name in names:
        assert await stack.queue.put_once("updates", task(name), source="bot", name=name)
        stack.advance_clock(timedelta(minutes=10))
    assert await stack.finish_all("updates") == names
    assert [name for name in names if await stack.queue.put_once("updates", task(name), source="bot", name=name)] == []


async def test_a_name_that_was_put_later_is_remembered_longer(stack: Stack) -> None:
    await stack.queue.put_once("updates", task("first"), source="bot", name="1")
    stack.advance_clock(timedelta(hours=20))
    await stack.redis.pexpire("queue:{0}:seen:bot", 4 * 3600 * 1000)  # the clock of the scripts is not that of the keys
    await stack.queue.put_once("updates", task("second"), source="bot", name="2")
    assert await stack.redis.pttl("queue:{0}:seen:bot") > 23 * 3600 * 1000
    stack.advance_clock(timedelta(hours=5))
    assert await stack.queue.put_once("updates", task("first again"), source="bot", name="1")
    assert not await stack.queue.put_once("updates", task("second again"), source="bot", name="2")
