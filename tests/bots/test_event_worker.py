"""An event becomes one task, and one person's events are processed one after the other."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from bots.dialog_event import DialogEvent
from bots.event_worker import Handle, event_worker
from core.queue import Attempt, QueueClient
from core.updates.events import Event, Events, dialogs_tube
from tests.support.stack import Stack
from tests.support.waiting import until

pytestmark = pytest.mark.parametrize("shards", [1, 16])

SOURCE = "4242"


@asynccontextmanager
async def working(client: QueueClient, handle: Handle) -> AsyncIterator[None]:
    worker = event_worker(client, "telegram", handle)
    running = asyncio.create_task(worker.run())
    try:
        yield
    finally:
        worker.stop()
        await running


def written(number: int, address: str = "100001", channel: str = "telegram") -> Event:
    person = {"user_id": address, "first_name": "Анна", "language_code": "ru"}
    return {"id": str(number), "channel": channel, **person, "event_text": f"text {number}"}


def seen(number: int) -> DialogEvent:
    return DialogEvent(str(number), "telegram", "100001", "Анна", "ru", f"text {number}")


@pytest.fixture
async def client(stack: Stack) -> QueueClient:
    return QueueClient(stack.store)


@pytest.fixture
async def events(client: QueueClient) -> Events:
    events = Events(client, "default", tube=dialogs_tube("telegram"))
    await events.open()
    return events


async def test_an_event_that_the_provider_repeats_is_processed_once(client: QueueClient, events: Events) -> None:
    processed: list[DialogEvent] = []

    async def handle(event: DialogEvent, attempt: Attempt) -> None:
        processed.append(event)

    assert await events.put(SOURCE, written(1))
    async with working(client, handle):
        await until(lambda: processed == [seen(1)])
        assert not await events.put(SOURCE, written(1))
        assert await events.put(SOURCE, written(2))
        await until(lambda: processed == [seen(1), seen(2)])


async def test_events_of_one_person_wait_for_each_other_and_those_of_others_do_not(
    client: QueueClient, events: Events
) -> None:
    begun: list[str] = []
    may_end = asyncio.Event()

    async def handle(event: DialogEvent, attempt: Attempt) -> None:
        begun.append(event.text)
        if event.address == "100001":
            await may_end.wait()

    for number in (1, 2):
        await events.put(SOURCE, written(number))
    await events.put(SOURCE, written(3, "100002"))
    async with working(client, handle):
        await until(lambda: sorted(begun) == ["text 1", "text 3"])
        may_end.set()
        await until(lambda: begun[-1] == "text 2")


async def test_an_event_that_fails_is_tried_again_before_the_next_one(client: QueueClient, events: Events) -> None:
    begun: list[str] = []

    async def handle(event: DialogEvent, attempt: Attempt) -> None:
        begun.append(event.text)
        if len(begun) == 1:
            raise ConnectionError("the provider cannot be reached")

    for number in (1, 2):
        await events.put(SOURCE, written(number))
    async with working(client, handle):
        await until(lambda: begun == ["text 1", "text 1", "text 2"])


async def test_equal_ids_of_two_bots_and_of_two_channels_are_different_events(
    client: QueueClient, events: Events, stack: Stack
) -> None:
    """Each Telegram bot numbers its events by itself, and a tenant's name may be the source in two channels."""
    vk = Events(client, "default", tube=dialogs_tube("vk"))
    await vk.open()
    assert await events.put(SOURCE, written(1))
    assert await events.put("4343", written(1, "100002"))
    assert await vk.put(SOURCE, written(1, "200001", "vk"))
    assert len(await stack.finish_all("dialogs.telegram")) == 2
    assert len(await stack.finish_all("dialogs.vk")) == 1


async def test_an_event_expires_before_its_attempts_are_used_up(client: QueueClient, events: Events) -> None:
    """Each pause that a provider asks for is an attempt, and the shortest one is a second."""
    tube = await client.tubes.get(dialogs_tube("telegram").name)
    assert tube.expires is not None
    assert tube.attempts > tube.expires / timedelta(seconds=1)
