"""A worker: takes tasks of one tube as long as it has room, sleeps without polling, wakes in time.

    claim ─▶ handle each in a coroutine of its own
      ▲          │ room again
      └── sleep ◀┘   until: the bell · room · a due moment (the keeper of the timer) · a held account opens · the floor

The floor is the longest sleep, whatever is heard: with it a lost event costs seconds, and an idle worker a command
every few.

Before: whoever puts tasks. After: the handler, which settles.
"""

import asyncio
import logging
import random
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from core.errors import StoreError
from core.queue.heartbeat import Heartbeat, OnLease
from core.queue.queue import Claim, Queue, Settlement, Task
from core.queue.settler import SettleBatcher
from core.redis.keys import KEYS
from core.redis.keyspace_events import KeyspaceEvents
from core.redis.store import Store

log = logging.getLogger(__name__)

# The keeper of the timer may have died: the others look this many ms after its moment, not all at once.
_AFTER_THE_KEEPER = (250, 500)

# The loop's timers count in whole milliseconds, upwards: the last one is waited out awake, and others run meanwhile.
_TICK = 0.001

# Tasks of one claim: so long nobody else is served. Whoever has more room claims again at once.
_PAGE = 100


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """`lease`: how long a task is held without a word. `floor`: the longest sleep. `tasks`, `entries`: how much is
    taken at once. `longest`: a handler at work for so long is taken for hung.
    """

    lease: timedelta = timedelta(seconds=30)
    floor: timedelta = timedelta(seconds=3)
    tasks: int = 64
    entries: int = 64
    longest: timedelta = timedelta(hours=1)


# A token names a task in hand, within its shard.
LeaseId = tuple[int, str]
Handler = Callable[[Task, Claim], Awaitable[Settlement | None]]


class Worker:
    """`handler` gets a task and the claim it came with, and answers how it ended, or settles it itself and answers
    None; what it raises is logged and the lease runs out. `hear` is told what the renewal of leases learns.
    """

    def __init__(
        self,
        store: Store,
        tube: str,
        handler: Handler,
        *,
        pace: WorkerOptions = WorkerOptions(),
        account: str = "",
        hear: OnLease | None = None,
    ) -> None:
        self._store = store
        self._queue = Queue(store)
        self._tube = tube
        self._handler = handler
        self._pace = pace
        self._account = account
        self._settler = SettleBatcher(self._queue)
        self._renewal = Heartbeat(store, pace.lease, pace.longest, hear)
        self.owner = f"{tube}-{secrets.token_hex(4)}"
        self._running: set[asyncio.Task[Any]] = set()
        self._entries: dict[LeaseId, int] = {}  # entries of each task in hand that are still to be done
        self._in_hand = 0
        self._wake = asyncio.Event()
        self._stopping = False
        self._keeper: set[int] = set()
        self.claims = 0

    async def run(self) -> None:
        """Work until `stop()`; then the tasks in hand are finished first. Cancelled, it leaves them to their leases."""
        sight = asyncio.create_task(KeyspaceEvents(self._store, self._listeners()).run(), name=f"sight of {self._tube}")
        self._renewal.start()
        try:
            while not self._stopping:
                self._wake.clear()
                await self._sleep(await self._look())
            await self._drain()
            await self._release_timer()
        finally:
            self._renewal.stop()
            ending = [sight, *self._running]
            for task in ending:
                task.cancel()
            await asyncio.gather(*ending, return_exceptions=True)

    def stop(self, grace: timedelta | None = None) -> None:
        """Take nothing more. Handlers see `stopping` and return what they have not begun; those still at work after
        `grace` are cancelled.
        """
        self._stopping = True
        self._wake.set()
        if grace is not None:
            asyncio.get_running_loop().call_later(grace.total_seconds(), self._cancel_running)

    def _cancel_running(self) -> None:
        for running in self._running:
            running.cancel()

    @property
    def stopping(self) -> bool:
        return self._stopping

    def _listeners(self) -> dict[str, Callable[[], None]]:
        found: dict[str, Callable[[], None]] = {}
        for shard in range(self._store.shards):
            found[KEYS["bell"].at(shard, self._tube)] = self._wake.set
            found[KEYS["timer"].at(shard)] = lambda shard=shard: self._new_moment(shard)  # type: ignore[misc]
        return found

    def _new_moment(self, shard: int) -> None:
        """Something is due earlier than we knew: for the keeper of the timer alone."""
        if shard in self._keeper:
            self._wake.set()

    async def _look(self) -> float:
        """Claim in every shard; answers how many seconds may be slept."""
        try:
            return min([await self._claim(shard) for shard in range(self._store.shards)])
        except StoreError as fault:
            log.warning("%s cannot claim: %s", self._tube, fault)
            return 1.0

    async def _claim(self, shard: int) -> float:
        started = asyncio.get_running_loop().time()
        room = self._pace.entries - self._in_hand
        limit = max(0, min(self._pace.tasks - len(self._running), room, _PAGE))
        claim = await self._queue.claim(
            self._tube,
            self.owner,
            shard=shard,
            limit=limit,
            budget=max(room, 0),
            lease=self._pace.lease,
            floor=self._pace.floor,
            account=self._account,
        )
        self.claims += 1
        (self._keeper.add if claim.keeper else self._keeper.discard)(shard)
        for task in claim.tasks:
            self._start(task, claim)
        if claim.tasks and self._has_room():
            return 0.0
        return self._seconds_to_sleep(claim) - (asyncio.get_running_loop().time() - started)

    def _seconds_to_sleep(self, claim: Claim) -> float:
        moments = [claim.opens_at] if claim.opens_at >= 0 else []
        if claim.next_at >= 0:
            moments.append(claim.next_at + (0 if claim.keeper else random.randint(*_AFTER_THE_KEEPER)))
        waits = [(moment - claim.clock) / 1000 for moment in moments]
        return min([*waits, self._pace.floor.total_seconds()])

    def _has_room(self) -> bool:
        return len(self._running) < self._pace.tasks and self._in_hand < self._pace.entries

    def _start(self, task: Task, claim: Claim) -> None:
        running = asyncio.create_task(self._handle(task, claim), name=f"task {task.id}")
        self._running.add(running)
        holding = task.shard, task.token
        self._entries[holding] = max(1, task.left)
        self._in_hand += self._entries[holding]
        self._renewal.hold(task)
        running.add_done_callback(partial(self._done, task, holding))

    def release_capacity(self, task: Task, entries: int) -> None:
        """So many entries of a task in hand are done: the next task comes while this one ends, not after."""
        had_room = self._has_room()
        self._entries[task.shard, task.token] -= entries
        self._in_hand -= entries
        if not had_room and self._has_room():
            self._wake.set()

    def _done(self, task: Task, holding: LeaseId, running: "asyncio.Task[Any]") -> None:
        had_room = self._has_room()
        self._running.discard(running)
        self._in_hand -= self._entries.pop(holding)
        if not had_room:
            self._wake.set()
        self._renewal.drop(task)
        _tell_fault(task, running)

    async def _handle(self, task: Task, claim: Claim) -> None:
        if settlement := await self._handler(task, claim):
            await self._settler.settle(task, settlement)

    async def _sleep(self, seconds: float) -> None:
        if seconds <= 0 or self._stopping:  # the claim that follows lets others run
            return
        clock = asyncio.get_running_loop().time
        until = clock() + seconds
        try:
            async with asyncio.timeout(seconds - _TICK):
                await self._wake.wait()
        except TimeoutError:
            while clock() < until and not self._wake.is_set():  # noqa: ASYNC110 - an event would come by that timer
                await asyncio.sleep(0)

    async def _release_timer(self) -> None:
        for shard in self._keeper:
            try:
                await self._queue.release_timer(self.owner, shard)
            except StoreError as fault:
                log.warning("%s keeps the timer until it runs out: %s", self._tube, fault)

    async def _drain(self) -> None:
        while self._running:
            await asyncio.wait(list(self._running))


def _tell_fault(task: Task, running: "asyncio.Task[Any]") -> None:
    """A handler that raises ends its own attempt and nothing else."""
    fault = None if running.cancelled() else running.exception()
    if isinstance(fault, StoreError):
        log.warning("task %s left to its lease: %s", task.id, fault)
    elif fault is not None:
        log.error("task %s left to its lease", task.id, exc_info=fault)
