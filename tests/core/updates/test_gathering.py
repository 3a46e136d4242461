"""Parts of one event are gathered in Redis: whatever process adds them and however often, the event is put once."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from core.errors import Invalid
from core.queue import QueueClient
from core.redis.cancel_and_wait import cancel_and_wait
from core.updates.events import MAX_BYTES, TUBE, Event, Events, decode
from core.updates.ingress import Gathering, Merge
from couriers.telegram_bot import events as telegram_events
from tests.support.stack import Stack
from tests.support.waiting import until

pytestmark = pytest.mark.parametrize("shards", [16])

Json = dict[str, Any]
NOW = datetime(2026, 11, 22, tzinfo=UTC)


def part(number: int, text: str = "") -> Json:
    return {"id": str(number), "channel": "telegram-bot", "kind": "text", "user_id": 5, "event_text": text}


def merge(name: str, parts: Sequence[Event]) -> Event:
    ids = sorted(one["id"] for one in parts)
    texts = "".join(one["event_text"] for one in parts)
    return {**parts[0], "id": f"{name}.{ids[0]}", "attachments": [{"type": one} for one in ids], "event_text": texts}


class BusyEvents(Events):
    """`meanwhile` runs once, after the first event was put."""

    meanwhile: Callable[[], Awaitable[None]] | None = None

    async def put(self, source: str, event: Event) -> bool:
        is_new = await super().put(source, event)
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile:
            await meanwhile()
        return is_new


@pytest.fixture
async def events(stack: Stack) -> BusyEvents:
    return BusyEvents(QueueClient(stack.store), "default")


@pytest.fixture
async def gathering(stack: Stack, events: BusyEvents) -> Gathering:
    return await opened(stack, events)


async def opened(stack: Stack, events: Events, merge: Merge = merge) -> Gathering:
    await events.open()
    gathering = Gathering(stack.store, QueueClient(stack.store), "default", events, merge)
    await gathering.open()
    return gathering


@asynccontextmanager
async def working(gathering: Gathering) -> AsyncIterator[None]:
    worker = gathering.worker()
    running = asyncio.create_task(worker.run())
    try:
        yield
    finally:
        worker.stop()
        await running


async def put_events(stack: Stack, count: int) -> list[list[str]]:
    """Wait for this many events; return the parts of each."""
    bodies: list[str] = []

    async def are_there() -> bool:
        bodies.extend(await stack.finish_all(TUBE))
        return len(bodies) >= count

    await until(are_there)
    return [[one["type"] for one in decode(body)["attachments"]] for body in bodies]


async def nothing_waits(stack: Stack) -> bool:
    return not [key async for key in stack.redis.scan_iter("updates:*")]


async def test_parts_that_two_processes_add_are_one_event(stack: Stack, gathering: Gathering) -> None:
    other = await opened(stack, Events(QueueClient(stack.store), "default"))
    async with working(gathering), working(other):
        await asyncio.gather(*((gathering, other)[n % 2].add("bot", "album", part(n)) for n in range(1, 7)))
        assert await put_events(stack, 1) == [["1", "2", "3", "4", "5", "6"]]
        await until(lambda: nothing_waits(stack))
    assert await stack.finish_all(TUBE) == []


async def test_parts_that_are_added_again_are_neither_lost_nor_doubled(stack: Stack, gathering: Gathering) -> None:
    for _ in range(2):
        for number in (1, 2):
            await gathering.add("bot", "album", part(number))
        stack.advance_clock(timedelta(milliseconds=50))  # the repeat has a later time
    async with working(gathering):
        assert await put_events(stack, 1) == [["1", "2"]]
        assert not await gathering.add("bot", "album", part(2))
        await until(lambda: nothing_waits(stack))
    assert await stack.finish_all(TUBE) == []


@pytest.mark.parametrize("text", ["x" * MAX_BYTES, "\ud800"])
async def test_a_part_that_cannot_be_stored_is_refused(stack: Stack, gathering: Gathering, text: str) -> None:
    with pytest.raises(Invalid):
        await gathering.add("bot", "album", part(1, text))
    assert await nothing_waits(stack)


async def test_a_part_that_comes_later_is_an_event_of_its_own(stack: Stack, gathering: Gathering) -> None:
    async with working(gathering):
        await gathering.add("bot", "album", part(1))
        assert await put_events(stack, 1) == [["1"]]
        await until(lambda: nothing_waits(stack))
        await gathering.add("bot", "album", part(2))
        assert await put_events(stack, 1) == [["2"]]


async def test_a_part_that_comes_while_the_others_are_merged_is_an_event_of_its_own(
    stack: Stack, gathering: Gathering, events: BusyEvents
) -> None:
    async def add_another() -> None:
        await gathering.add("bot", "album", part(2))

    events.meanwhile = add_another
    async with working(gathering):
        await gathering.add("bot", "album", part(1))
        assert await put_events(stack, 2) == [["1"], ["2"]]
        await until(lambda: nothing_waits(stack))


async def test_a_part_that_comes_after_a_death_behind_the_merge_is_an_event_of_its_own(
    stack: Stack, gathering: Gathering, events: BusyEvents
) -> None:
    """The event of the first part was put, and the process died before it could remove the part."""
    is_dead = asyncio.Event()

    async def add_another_and_die() -> None:
        await gathering.add("bot", "album", part(2))
        is_dead.set()
        await asyncio.Event().wait()

    events.meanwhile = add_another_and_die
    await gathering.add("bot", "album", part(1))
    dying = asyncio.create_task(gathering.worker().run())
    await asyncio.wait_for(is_dead.wait(), 20)
    await cancel_and_wait(dying)
    async with working(gathering):
        assert await put_events(stack, 2) == [["1"], ["2"]]
        await until(lambda: nothing_waits(stack))


async def test_parts_with_the_same_name_of_two_bots_are_two_events(stack: Stack, gathering: Gathering) -> None:
    async with working(gathering):
        await gathering.add("bot", "album", part(1, "one"))
        await gathering.add("another bot", "album", part(1, "two"))
        await until(lambda: nothing_waits(stack))
    found = [decode(body) for body in await stack.finish_all(TUBE)]
    assert {event["source"]: event["event_text"] for event in found} == {"bot": "one", "another bot": "two"}


async def test_parts_that_are_added_again_after_a_crash_between_two_writes_are_put(
    stack: Stack, gathering: Gathering
) -> None:
    await gathering.add("bot", "album", part(1))
    shard = stack.store.shard_of("bot album")
    (task,) = [key async for key in stack.redis.scan_iter(f"queue:{{{shard}}}:task:*")]
    await stack.queue.cancel(f"{shard}.{task.rpartition(':')[2]}")  # as if the process had died before it put the task
    await stack.redis.delete(f"queue:{{{shard}}}:seen:parts.bot")
    await gathering.add("bot", "album", part(1))
    async with working(gathering):
        assert await put_events(stack, 1) == [["1"]]


async def test_a_join_whose_notices_come_far_apart_is_one_event(stack: Stack, events: BusyEvents) -> None:
    gathering = await opened(stack, events, telegram_events.merge)
    person, group = {"id": 5, "is_bot": False, "first_name": "Anna"}, {"id": -1001, "type": "supergroup", "title": "A"}
    facts = {"date": 1_763_712_000, "chat": group, "from": person}
    states = {
        "old_chat_member": {"status": "left", "user": person},
        "new_chat_member": {"status": "member", "user": person},
    }
    notices = (
        {"update_id": 1, "chat_member": {**facts, **states}},
        {"update_id": 2, "message": {**facts, "message_id": 3, "new_chat_members": [person]}},
    )
    async with working(gathering):
        for notice in notices:
            arrival = telegram_events.read_arrival(notice, NOW)
            assert arrival is not None
            await gathering.add("bot", arrival.gathered_as, arrival.event)
            await until(lambda: nothing_waits(stack))
    (body,) = await stack.finish_all(TUBE)
    assert decode(body)["joined_user_ids"] == [5]


async def test_an_event_that_cannot_be_used_is_reported_and_the_next_one_is_put(
    stack: Stack, gathering: Gathering, caplog: pytest.LogCaptureFixture
) -> None:
    async with working(gathering):
        for number in (3, 4):  # each fits, both together do not
            await gathering.add("bot", "large", part(number, "x" * (MAX_BYTES * 2 // 3)))
        await gathering.add("bot", "album", part(2))
        assert await put_events(stack, 1) == [["2"]]
        await until(lambda: "EVENT_TOO_LARGE" in caplog.text)
        await until(lambda: nothing_waits(stack))
