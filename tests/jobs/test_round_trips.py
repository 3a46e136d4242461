"""How many round trips to the server an iteration costs: its claim, two to begin it, one for each step, one to end
it.
"""

from collections.abc import Awaitable, Sequence
from contextvars import ContextVar
from typing import Any

import pytest

from core.queue import Attempt, QueueClient, Result
from core.redis.connection import Word
from core.redis.store import Argument, Store
from jobs import Iteration, JobWorker, Limit, Registry
from tests.jobs.conftest import ANNA, Playground
from tests.support.audited import violations_in
from tests.support.waiting import until

READ = "HKEYS HMGET"
ENDS = ("settle", "turn", "release")
"""Functions that the worker calls after its handler."""

HANDLES: ContextVar[bool] = ContextVar("handles", default=False)


class CountingStore(Store):
    """Notes the round trips of attempts: calls that are under way together are one."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.trips: list[list[str]] = []
        self._under_way = 0

    async def _noted(self, call: Awaitable[Any], name: str) -> Any:
        if name not in ENDS and not HANDLES.get():
            return await call
        if not self._under_way:
            self.trips.append([])
        self.trips[-1].append(name)
        self._under_way += 1
        try:
            return await call
        finally:
            self._under_way -= 1

    async def run(self, name: str, shard: int, *arguments: Argument) -> Any:
        return await self._noted(super().run(name, shard, *arguments), name)

    async def command_at(self, home: int, *command: Word) -> Any:
        return await self._noted(super().command_at(home, *command), str(command[0]))

    async def read_hash(self, key: str, *fields: str) -> list[str | None]:
        found: list[str | None] = await self._noted(super().read_hash(key, *fields), "HMGET")
        return found


class CountedWorker(JobWorker):
    """Its other calls, for example of the watchdog, are not counted."""

    async def handle(self, attempt: Attempt) -> Result:
        HANDLES.set(True)
        return await super().handle(attempt)


async def trips_of(playground: Playground, registry: Registry, *, signals: Sequence[str] = ()) -> list[str]:
    """The round trips of the first iteration of Anna's job in a process, without its claims."""
    store = await CountingStore.open(playground.stack.server.url)
    playground.run_worker(CountedWorker(store, QueueClient(store), registry))
    await playground.jobs.start(ANNA)
    for signal in signals:
        await until(lambda: _is_waiting(playground))
        store.trips.clear()
        await playground.jobs.signal(ANNA, signal)
    await playground.iterations(1)
    await playground.stop()
    await store.close()
    assert await violations_in(playground.stack.store) == []
    return [" ".join(sorted(trip)) for trip in store.trips]


async def _is_waiting(playground: Playground) -> bool:
    return (await playground.jobs.find(ANNA)).record.suspended


async def value() -> int:
    return 1


async def take_steps(iteration: Iteration, number: int) -> None:
    for n in range(number):
        await iteration.step(f"step {n}", value)


@pytest.mark.parametrize("number", [0, 1, 5])
async def test_an_iteration_costs_four_round_trips_and_one_for_each_step(playground: Playground, number: int) -> None:
    """The first one is the claim, which may bring tasks of other jobs, too."""

    async def run(iteration: Iteration) -> None:
        await take_steps(iteration, number)

    playground.run = run
    trips = await trips_of(playground, playground.registry)
    assert trips == [READ, "begin_iteration", *["write_step"] * number, "end_iteration"]


async def test_an_iteration_that_goes_on_costs_no_more(playground: Playground) -> None:
    async def run(iteration: Iteration) -> None:
        await take_steps(iteration, 2)
        await iteration.wait("go")
        await iteration.step("last", value)

    playground.run = run
    trips = await trips_of(playground, playground.registry, signals=["go"])
    assert trips == [READ, "begin_iteration", "LRANGE", "take_signal", "write_step", "end_iteration"]


async def test_the_slots_of_a_limit_cost_one_more_before_and_after(playground: Playground) -> None:
    class Limited(playground.registry.kinds["hunt"]):  # type: ignore[misc,name-defined]
        limits = (Limit(concurrency=1),)

    async def run(iteration: Iteration) -> None:
        await take_steps(iteration, 1)

    playground.run = run
    trips = await trips_of(playground, Registry([Limited]))
    assert trips == [READ, "take_slots", "begin_iteration", "write_step", "end_iteration", "release_slots"]
