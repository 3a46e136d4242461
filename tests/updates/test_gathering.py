"""Parts of one event are gathered in Redis: whatever process adds them and however often, the event is put once."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from core.errors import Invalid
from core.queue import QueueClient
from core.updates.events import MAX_BYTES, TUBE, Event, Events, decode
from core.updates.gathering import Gathering
from tests.support.stack import Stack
from tests.support.waiting import until

Json = dict[str, Any]


def part(number: int, text: str = "") -> Json:
    return {"id": str(number), "channel": "telegram-bot", "kind": "text", "user_id": 5, "event_text": text}


def merge(name: str, parts: Sequence[Event]) -> Event:
    ids = sorted(one["id"] for one in parts)
    texts = "".join(one["event_text"] for one in parts)
    return {**parts[0], "id": f"{name}.{ids[0]}", "attachments": [{"type": one} for one in ids], "event_text": texts}


@pytest.fixture
async def gathering(stack: Stack) -> Gathering:
    return await opened(stack)


async def opened(stack: Stack) -> Gathering:
    client = QueueClient(stack.store)
    events = Events(client, "default")
    await events.open()
    gathering = Gathering(stack.store, client, "default", events, merge)
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

    await until(are_there, within=20)
    return [[one["type"] for one in decode(body)["attachments"]] for body in bodies]


async def nothing_waits(stack: Stack) -> bool:
    return not [key async for key in stack.redis.scan_iter("updates:*")]


@pytest.mark.row("C-14")
async def test_parts_that_two_processes_add_are_one_event(stack: Stack, gathering: Gathering) -> None:
    other = await opened(stack)
    async with working(gathering), working(other):
        await asyncio.gather(*((gathering, other)[n % 2].add("bot", "album", part(n)) for n in range(1, 7)))
        assert await put_events(stack, 1) == [["1", "2", "3", "4", "5", "6"]]
        await until(lambda: nothing_waits(stack), within=20)
    assert await stack.finish_all(TUBE) == []


async def test_parts_that_are_added_again_are_neither_lost_nor_doubled(stack: Stack, gathering: Gathering) -> None:
    for _ in range(2):
        for number in (1, 2):
            await gathering.add("bot", "album", part(number))
        stack.advance_clock(timedelta(milliseconds=50))  # the repeat has a later time
    async with working(gathering):
        assert await put_events(stack, 1) == [["1", "2"]]
        assert not await gathering.add("bot", "album", part(2))
        await until(lambda: nothing_waits(stack), within=20)
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
        await until(lambda: nothing_waits(stack), within=20)
        await gathering.add("bot", "album", part(2))
        assert await put_events(stack, 1) == [["2"]]


async def test_an_event_that_cannot_be_used_is_reported_and_the_next_one_is_put(
    stack: Stack, gathering: Gathering, caplog: pytest.LogCaptureFixture
) -> None:
    async with working(gathering):
        for number in (3, 4):  # each fits, both together do not
            await gathering.add("bot", "large", part(number, "x" * (MAX_BYTES * 2 // 3)))
        await gathering.add("bot", "album", part(2))
        assert await put_events(stack, 1) == [["2"]]
        await until(lambda: "EVENT_TOO_LARGE" in caplog.text, within=20)
        await until(lambda: nothing_waits(stack), within=20)
