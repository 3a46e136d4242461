"""The attempt pool without a store: which batches are attempted, and when."""

import asyncio
from collections.abc import Sequence

import pytest

from couriers.sending.attempt_pool import AttemptPool
from tests.support.waiting import until


class FakeParcel:
    """Batches of one entry each. Attempts wait for `end_attempts`; `under_way` lists them in order."""

    def __init__(self, name: str, count: int, under_way: list[str]) -> None:
        self.remaining = [f"{name}{number}" for number in range(count)]
        self.ends: dict[str, asyncio.Future[None]] = {}
        self.cancelled: list[str] = []
        self._under_way = under_way

    def next_batch(self) -> Sequence[str]:
        return [self.remaining.pop(0)] if self.remaining else []

    async def attempt(self, batch: Sequence[str]) -> None:
        name = batch[0]
        self.ends[name] = asyncio.get_running_loop().create_future()
        self._under_way.append(name)
        try:
            await self.ends[name]
        except asyncio.CancelledError:
            self.cancelled.append(name)
            raise
        finally:
            self._under_way.remove(name)


def end_attempts(*parcels: FakeParcel) -> None:
    """End all attempts under way, as when a provider responds in one packet."""
    for parcel in parcels:
        for waiting in parcel.ends.values():
            if not waiting.done():
                waiting.set_result(None)


def attempted(attempt_pool: AttemptPool, *parcels: FakeParcel) -> "list[asyncio.Task[None]]":
    return [asyncio.create_task(attempt_pool.attempt_all(parcel, len(parcel.remaining))) for parcel in parcels]


async def test_a_parcel_has_ended_when_its_last_attempt_has() -> None:
    under_way: list[str] = []
    parcel, attempt_pool = FakeParcel("a", 5, under_way), AttemptPool(2)
    (running,) = attempted(attempt_pool, parcel)
    for count in (3, 1, 0):
        await until(lambda: len(parcel.remaining) == count and under_way)  # noqa: B023 - awaited at once
        assert not running.done()
        end_attempts(parcel)
    await running


async def test_a_parcel_without_batches_ends_at_once() -> None:
    await asyncio.wait_for(AttemptPool(2).attempt_all(FakeParcel("a", 0, []), 0), 20)


async def test_responses_that_arrive_together_are_followed_by_attempts_that_start_together() -> None:
    """Also where one parcel ends and the next begins. Otherwise each attempt would be a packet of its own."""
    under_way: list[str] = []
    parcels, attempt_pool = [FakeParcel(name, 10, under_way) for name in "ab"], AttemptPool(4)
    running = attempted(attempt_pool, *parcels)
    await until(lambda: len(under_way) == 4)
    for _ in range(4):
        before = set(under_way)
        end_attempts(*parcels)
        await asyncio.sleep(0)  # one iteration of the loop, in which the attempts end
        assert len(under_way) == 4
        assert not before & set(under_way)
    end_attempts(*parcels)
    await asyncio.gather(*running)


async def test_parcels_take_turns() -> None:
    under_way: list[str] = []
    large, small = FakeParcel("large", 9, under_way), FakeParcel("small", 2, under_way)
    running = attempted(AttemptPool(2), large, small)
    await until(lambda: len(under_way) == 2)
    assert sorted(under_way) == ["large0", "small0"]
    end_attempts(large, small)
    await until(lambda: sorted(under_way) == ["large1", "small1"])
    while not all(task.done() for task in running):
        end_attempts(large, small)
        await asyncio.sleep(0)


async def test_a_fault_ends_its_parcel_and_no_other() -> None:
    under_way: list[str] = []
    faulty, good, attempt_pool = FakeParcel("faulty", 5, under_way), FakeParcel("good", 3, under_way), AttemptPool(4)
    running = attempted(attempt_pool, faulty, good)
    await until(lambda: len(under_way) == 4)
    faulty.ends["faulty0"].set_exception(ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        await running[0]
    assert faulty.cancelled == ["faulty1"]
    await until(lambda: sorted(under_way) == ["good0", "good1", "good2"])
    end_attempts(good)
    await running[1]


async def test_the_workers_of_a_cancelled_parcel_go_on_with_other_parcels() -> None:
    under_way: list[str] = []
    stuck, waiting, attempt_pool = (
        FakeParcel("stuck", 2, under_way),
        FakeParcel("waiting", 2, under_way),
        AttemptPool(2),
    )
    (cancelled,) = attempted(attempt_pool, stuck)
    await until(lambda: under_way == ["stuck0", "stuck1"])
    (running,) = attempted(attempt_pool, waiting)
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    assert sorted(stuck.cancelled) == ["stuck0", "stuck1"]
    await until(lambda: under_way == ["waiting0", "waiting1"])
    end_attempts(waiting)
    await running
