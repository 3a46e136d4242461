"""Cancelling all deliveries with one property: in few calls, and a repeat completes what a fault has cut off."""

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from core.deliveries.channels import Channels
from core.deliveries.deliveries import Deliveries
from core.errors import StoreUnavailable
from core.model.history_key import HistoryKey
from core.model.states import Status
from core.redis.connection import Word
from core.redis.store import Argument, Store
from tests.support.delivery_progress import statuses
from tests.support.stack import HOUR, TENANT, FakeCourier, Stack, order, people, person


class FailsOnce(Store):
    """The second page of cancellations fails."""

    pages = 0

    async def run_each(self, name: str, calls: Iterable[tuple[int, Sequence[Argument]]]) -> list[Any]:
        self.pages += name == "cancel_scheduled"
        replies = await super().run_each(name, list(calls)[: None if self.pages != 2 else 0])
        return replies if self.pages != 2 else [StoreUnavailable("gone")]


class EndsMeanwhile(Store):
    """A delivery ends after the first read of the unfinished ones."""

    ended: HistoryKey | None = None
    deliveries: Deliveries

    async def command(self, *command: Word) -> Any:
        reply = await super().command(*command)
        if self.ended and f"live:{TENANT}" in str(command[1]):
            key, self.ended = self.ended, None
            await self.deliveries.cancel(key, TENANT)
        return reply


async def fill(stack: Stack, count: int) -> None:
    """Scheduled deliveries with the tag exam."""
    at = stack.now() + HOUR
    orders = [order(person(number), deliver_at=at, tags=("exam",)) for number in range(count)]
    await stack.deliveries.enqueue_many([(one, None) for one in orders])


async def test_many_deliveries_are_cancelled_in_few_calls(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.deliveries.cancel._PAGE", 500)
    await fill(stack, 600)
    released = (await stack.deliver(*people(2), tags=("exam",))).key
    calls_before = (await stack.redis.info("commandstats")).get("cmdstat_fcall", {"calls": 0})["calls"]
    assert await stack.deliveries.cancel_by(TENANT, "tag", "exam") == 601
    calls = (await stack.redis.info("commandstats"))["cmdstat_fcall"]["calls"] - calls_before
    assert calls < 30
    assert set(statuses(await stack.finished(released)).values()) == {"cancelled"}


async def test_a_delivery_that_is_cancelled_in_several_calls_is_cancelled_whole(stack: Stack) -> None:
    """Its workers were lost: what they may have sent is ended first, 500 entries in a call."""
    await stack.stop(await stack.courier(FakeCourier(parcel=300)))
    key = (await stack.deliver(*people(900), tags=("exam",))).key
    assert all([await stack.take("echo") for _ in range(3)])
    stack.advance_clock(HOUR)
    await stack.tick()
    assert await stack.deliveries.cancel_by(TENANT, "tag", "exam") == 1
    history = await stack.history(key)
    assert (history.state, history.finished_at is not None) == ("cancelled", True)
    assert history.counts[Status.UNKNOWN] == 900


async def test_a_repeat_after_a_fault_cancels_the_rest_and_counts_only_that(stack: Stack) -> None:
    await fill(stack, 600)
    store = await FailsOnce.open(stack.server.url)
    deliveries = Deliveries(store, Channels(store))
    with pytest.raises(StoreUnavailable):
        await deliveries.cancel_by(TENANT, "tag", "exam")
    unfinished = await stack.redis.zcard(f"deliveries:{{0}}:live:{TENANT}")
    assert 0 < unfinished < 600
    assert await deliveries.cancel_by(TENANT, "tag", "exam") == unfinished
    await store.close()


async def test_a_delivery_that_ends_meanwhile_hides_no_other(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.deliveries.cancel._PAGE", 2)
    keys = [(await stack.deliver(person(n), deliver_at=stack.now() + HOUR, tags=("exam",))).key for n in range(5)]
    store = await EndsMeanwhile.open(stack.server.url)
    store.deliveries, store.ended = stack.deliveries, keys[0]
    assert await Deliveries(store, Channels(store)).cancel_by(TENANT, "tag", "exam") == 4
    assert {(await stack.history(key)).state for key in keys} == {"cancelled"}
    await store.close()
