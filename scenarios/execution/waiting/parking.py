"""Runs that wait for a delivery longer than a worker should: they are parked, and woken when it ends.

A parked run is the suspended task of its event, a member of a sorted set and, in each process, a line of memory. Any
process wakes it: each knows all parked runs, those of others after a few seconds.

Guarantee: a run is taken out of the set after it was woken, so a crash between the two wakes it twice.
"""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import NamedTuple

from core.errors import StoreError
from core.model.history_key import HistoryKey
from core.queue import QueueClient
from core.redis.keys import KEYS
from core.redis.store import Store
from scenarios.context import Asking
from scenarios.execution.runs import Runs, StoredRun, shard_of
from scenarios.execution.versions import Versions
from scenarios.execution.waiting.delivery_ends import DeliveryEnds
from scenarios.execution.waiting.waits import Waits, WaitsFor

log = logging.getLogger(__name__)

_ADOPT_EVERY = 5.0
"""Seconds between two searches for runs that other processes have parked."""

_ALL_EVERY = 60
"""At every search of this number all parked runs are read: a new primary may have a clock that is behind."""

_PAGE = 1000
_AT_ONCE = 100
_RETRY = 1.0


class Parked(NamedTuple):
    """A run that waits for a delivery. `task`: that of its event, which is woken."""

    run: str
    task: str
    delivery: HistoryKey

    def __str__(self) -> str:
        """Return the member of the sorted set."""
        return f"{self.run} {self.task} {self.delivery}"

    @classmethod
    def read(cls, member: str) -> "Parked":
        run, task, delivery = member.split(" ", 2)
        return cls(run, task, HistoryKey.parse(delivery))


class Parking:
    """One per process. `adopt_every`: seconds."""

    def __init__(
        self,
        store: Store,
        queue: QueueClient,
        ends: DeliveryEnds,
        adopt_every: float = _ADOPT_EVERY,
    ) -> None:
        self._store = store
        self._runs = Runs(store, Versions(store))
        self._queue = queue
        self._ends = ends
        self._adopt_every = adopt_every
        self._watched: dict[Parked, Callable[[], None]] = {}
        self._ended: asyncio.Queue[Parked] = asyncio.Queue()
        self._newest = dict.fromkeys(range(store.shards), 0)

    async def park(self, stored: StoredRun, waits: Waits) -> None:
        """Wake the run when one of the deliveries ends, also after the death of this process."""
        await self._runs.park(stored, waits)
        deliveries = [delivery for one in waits.values() if (delivery := _delivery(one))]
        for delivery in deliveries:
            self._watch(Parked(stored.id, stored.task, delivery))
        await self._ends.check(deliveries)

    async def wake(self, task: str) -> None:
        """Have the run of an event driven on, at once or when its task is suspended."""
        await self._queue.queue.wake(task)

    async def run(self) -> None:
        """Wake runs until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._adopt_all(), name="adopts parked runs")
            group.create_task(self._wake_all(), name="wakes parked runs")

    def _watch(self, parked: Parked) -> None:
        if parked not in self._watched:
            self._watched[parked] = self._ends.watch(parked.delivery, partial(self._on_end, parked))

    def _on_end(self, parked: Parked) -> None:
        if stop := self._watched.pop(parked, None):
            stop()
            self._ended.put_nowait(parked)

    async def wake_ended(self) -> bool:
        """Wake the runs of which it is known that a delivery has ended; return whether there are any."""
        page = [self._ended.get_nowait() for _ in range(min(self._ended.qsize(), _AT_ONCE))]
        await asyncio.gather(*(self._wake_parked(parked) for parked in page))
        return bool(page)

    async def _wake_all(self) -> None:
        while True:
            first = await self._ended.get()
            await asyncio.gather(self._wake_parked(first), self.wake_ended())

    async def _wake_parked(self, parked: Parked) -> None:
        """Wake one run; try again until the store can be reached."""
        while True:
            try:
                await self.wake(parked.task)
                await self._store.command("ZREM", KEYS["parked"].at(shard_of(parked.run) or 0), str(parked))
                return
            except StoreError as fault:
                log.warning("run %s not woken, again in %s s: %s", parked.run, _RETRY, fault)
                await asyncio.sleep(_RETRY)

    async def _adopt_all(self) -> None:
        for look in count():
            if look % _ALL_EVERY == 0:
                self._newest = dict.fromkeys(self._newest, 0)
            try:
                for shard in range(self._store.shards):
                    while await self._adopt(shard) == _PAGE:
                        pass
            except StoreError as fault:
                log.warning("parked runs not read: %s", fault)
            await asyncio.sleep(self._adopt_every)

    async def _adopt(self, shard: int) -> int:
        """Watch a page of the runs that were parked since the last search. Returns how many were read."""
        since = self._newest[shard]
        rows = await self._store.command(
            *("ZRANGEBYSCORE", KEYS["parked"].at(shard), since, "+inf", "WITHSCORES", "LIMIT", 0, _PAGE)
        )
        found = [Parked.read(member) for member, _ in _pairs(rows)]
        new = [parked for parked in found if parked not in self._watched]
        for parked in new:
            self._watch(parked)
        await self._ends.check(parked.delivery for parked in new)
        self._newest[shard] = _next_start(since, [score for _, score in _pairs(rows)])
        return len(found)


def _delivery(waits_for: WaitsFor) -> HistoryKey | None:
    """Return the delivery whose end a step waits for, also that of a question."""
    if isinstance(waits_for, Asking):
        return waits_for.under_way
    return waits_for.delivery if waits_for else None


def _next_start(since: int, scores: list[int]) -> int:
    """Return where the next search begins: with the newest run, because others may have been parked in the same ms."""
    if len(scores) == _PAGE:
        return max(scores[-1], since + 1)
    return scores[-1] if scores else since


def _pairs(rows: list[list[str]]) -> list[tuple[str, int]]:
    return [(member, int(float(score))) for member, score in rows]
