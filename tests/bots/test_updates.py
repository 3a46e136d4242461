"""An update of a provider becomes one task, and one person's updates are processed one after the other."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from bots.updates import Handle, Update, Updates, tube_of, update_worker
from core.queue import Attempt, QueueClient
from tests.support.stack import Stack
from tests.support.waiting import until


@asynccontextmanager
async def working(client: QueueClient, handle: Handle) -> AsyncIterator[None]:
    worker = update_worker(client, "telegram", handle)
    running = asyncio.create_task(worker.run())
    try:
        yield
    finally:
        worker.stop()
        await running


def written(number: int, address: str = "100001") -> Update:
    return Update(str(number), "telegram", address, "Анна", "ru", f"text {number}")


@pytest.fixture
async def client(stack: Stack) -> QueueClient:
    return QueueClient(stack.store)


@pytest.fixture
async def updates(client: QueueClient) -> Updates:
    updates = Updates(client, "default", "telegram", "4242")
    await updates.open()
    return updates


async def test_an_update_that_the_provider_repeats_is_processed_once(client: QueueClient, updates: Updates) -> None:
    processed: list[Update] = []

    async def handle(update: Update, attempt: Attempt) -> None:
        processed.append(update)

    assert await updates.put(written(1))
    async with working(client, handle):
        await until(lambda: processed == [written(1)])
        assert not await updates.put(written(1))
        assert await updates.put(written(2))
        await until(lambda: processed == [written(1), written(2)])


async def test_updates_of_one_person_wait_for_each_other_and_those_of_others_do_not(
    client: QueueClient, updates: Updates
) -> None:
    begun: list[str] = []
    may_end = asyncio.Event()

    async def handle(update: Update, attempt: Attempt) -> None:
        begun.append(update.text)
        if update.address == "100001":
            await may_end.wait()

    for number in (1, 2):
        await updates.put(written(number))
    await updates.put(written(3, "100002"))
    async with working(client, handle):
        await until(lambda: sorted(begun) == ["text 1", "text 3"])
        may_end.set()
        await until(lambda: begun[-1] == "text 2")


async def test_an_update_that_fails_is_tried_again_before_the_next_one(client: QueueClient, updates: Updates) -> None:
    begun: list[str] = []

    async def handle(update: Update, attempt: Attempt) -> None:
        begun.append(update.text)
        if len(begun) == 1:
            raise ConnectionError("the provider cannot be reached")

    for number in (1, 2):
        await updates.put(written(number))
    async with working(client, handle):
        await until(lambda: begun == ["text 1", "text 1", "text 2"], within=10)


async def test_equal_ids_of_two_bots_and_of_two_channels_are_different_updates(
    client: QueueClient, updates: Updates, stack: Stack
) -> None:
    """Each Telegram bot numbers its updates by itself, and a tenant's name may be the source in two channels."""
    another = Updates(client, "default", "telegram", "4343")
    vk = Updates(client, "default", "vk", "4242")
    await vk.open()
    assert await updates.put(written(1))
    assert await another.put(written(1, "100002"))
    assert await vk.put(Update("1", "vk", "200001"))
    assert len(await stack.finish_all("updates.telegram")) == 2
    assert len(await stack.finish_all("updates.vk")) == 1


@pytest.mark.row("D-32")
async def test_an_update_expires_before_its_attempts_are_used_up(client: QueueClient, updates: Updates) -> None:
    """Each pause that a provider asks for is an attempt, and the shortest one is a second."""
    tube = await client.tubes.get(tube_of("telegram"))
    assert tube.expires is not None
    assert tube.attempts > tube.expires / timedelta(seconds=1)
