"""Retrying entries that failed or are unknown."""

import asyncio

import pytest

from core.errors import Invalid
from core.model.states import Status, Verdict
from couriers.sending.interface import NEVER, Unknown
from tests.support.delivery_progress import GONE, by_address, statuses
from tests.support.servers import on_both_servers
from tests.support.stack import HOUR, TENANT, FakeCourier, Stack, people, person


class TestRetry:
    @on_both_servers
    async def test_only_entries_with_the_chosen_status_are_retried_with_new_random_ids(self, stack: Stack) -> None:
        first = FakeCourier(respond=by_address(p1=GONE, p2=Unknown()), remembers=NEVER)
        running = await stack.courier(first)
        key = (await stack.deliver(*people(4))).key
        await stack.finished(key)
        await stack.stop(running)
        again = FakeCourier()
        await stack.courier(again)
        assert await stack.deliveries.retry(key, TENANT, [Status.FAILED]) == 1
        history = await stack.finished(key)
        assert (statuses(history), again.addresses) == ({1: "sent", 2: "unknown", 3: "sent", 4: "sent"}, ["p1"])
        assert await stack.deliveries.retry(key, TENANT, [Status.UNKNOWN]) == 1
        history = await stack.finished(key)
        assert (history.verdict, again.addresses) == (Verdict.ALL_REACHED, ["p1", "p2"])
        before = {message.address: message.random_id() for message in first.attempted}
        assert all(message.random_id() != before[message.address] for message in again.attempted)
        assert await stack.deliveries.retry(key, TENANT, [Status.FAILED, Status.UNKNOWN]) == 0

    async def test_entries_that_fail_again_can_be_retried_again(self, stack: Stack) -> None:
        courier = FakeCourier(respond=lambda message: GONE)
        await stack.courier(courier)
        key = (await stack.deliver(*people(2))).key
        await stack.finished(key)
        for attempts in (4, 6):
            assert await stack.deliveries.retry(key, TENANT, [Status.FAILED]) == 2
            await stack.finished(key)
            assert len(courier.attempted) == attempts
        assert len({message.random_id() for message in courier.attempted}) == 6

    async def test_concurrent_retries_queue_each_entry_once(self, stack: Stack) -> None:
        running = await stack.courier(FakeCourier(respond=lambda message: GONE))
        key = (await stack.deliver(*people(5))).key
        await stack.finished(key)
        await stack.stop(running)
        queued = await asyncio.gather(*(stack.deliveries.retry(key, TENANT, [Status.FAILED]) for _ in range(10)))
        assert sorted(queued) == [0] * 9 + [5]

    async def test_only_failed_and_unknown_entries_can_be_retried(self, stack: Stack) -> None:
        key = (await stack.deliver(person(1), deliver_at=stack.now() + HOUR)).key
        for wrong in ([], [Status.SENT], [Status.FAILED, Status.CANCELLED]):
            with pytest.raises(Invalid):
                await stack.deliveries.retry(key, TENANT, wrong)
        await stack.deliveries.cancel(key, TENANT)
        assert await stack.deliveries.retry(key, TENANT, [Status.FAILED]) == 0
