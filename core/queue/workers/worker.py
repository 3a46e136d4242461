"""A worker: claims tasks of one tube while it has room, sleeps without polling, wakes in time.

    claim ─▶ handle each task in its own coroutine
      ▲          │ room again
      └── sleep ◀┘   until: the bell · room · the next task of a lane it settled · a task is due (only the keeper of the
                     timer) · a throttle ends · max_sleep

`max_sleep` bounds every sleep, whatever events arrive: a lost event costs seconds, and an idle worker sends one command
in that time for all shards of a primary. The bell is a key that exists while a worker of the tube sleeps; deleting it
wakes the worker.

Used by `core.queue.client` and `couriers.sending.runtime`. Calls the handler and settles what it returns.
"""

import asyncio
import logging
import math
import random
import secrets
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from core.errors import StoreError
from core.queue.batcher import Batcher
from core.queue.checks import check_type
from core.queue.queue import Queue, Row
from core.queue.task import Claim, ClaimRequest, Settled, Settlement, Task
from core.queue.workers.claim_schedule import ClaimSchedule, Timer, idle_shards
from core.queue.workers.heartbeat import Heartbeat, OnExtension, TasksInProgress
from core.redis.keys import KEYS
from core.redis.keyspace_events import KeyspaceEvents
from core.redis.store import Store
from core.redis.topology import Topology

log = logging.getLogger(__name__)

# The keeper of the timer may have died: the other workers claim this many ms after it should have, at different times.
_AFTER_THE_KEEPER = (250, 500)

# The event loop's timers are late by up to a ms. The last ms is awaited in a loop that lets other coroutines run.
_TIMER_RESOLUTION = 0.001

# Tasks of one claim, which blocks the server while it runs. A worker with more room claims again at once.
_PAGE = 100

# The keeper of a timer claims in its shard after this many `max_sleep`, whatever the indexes say: the timer stays its
# own, what has been kept for its time is dropped, and a moment that no function has reported is found.
_SELDOM = 8

# Seconds until the next claim if the server cannot be reached.
_RETRY_CLAIM = 1.0


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """`lease`: how long a task stays taken without an extension. `max_sleep`: the longest time between two claims.
    `max_tasks`, `max_entries`: how many are in progress at once. `max_runtime`: a handler that runs longer is taken to
    hang, and its task goes to another worker. `extends_blocked`: whether leases are also extended while a handler
    blocks the event loop.
    """

    lease: timedelta = timedelta(seconds=30)
    max_sleep: timedelta = timedelta(seconds=3)
    max_tasks: int = 64
    max_entries: int = 64
    max_runtime: timedelta = timedelta(hours=1)
    extends_blocked: bool = True

    def __post_init__(self) -> None:
        for name in ("lease", "max_sleep", "max_runtime"):
            check_type("worker", name, getattr(self, name), timedelta)
        for name in ("max_tasks", "max_entries"):
            check_type("worker", name, getattr(self, name), int)
        if min(self.max_tasks, self.max_entries) < 1:
            raise ValueError("A worker runs one task or more at once.")


TaskHandler = Callable[[Task, Claim], Awaitable[Settlement | None]]


class Worker:
    """`handler` gets a task and the claim it came with. It returns how the attempt ended, or None if it has settled the
    task itself; if it raises, the fault is logged and the lease runs out. `on_extension`: see `Heartbeat`. `account`:
    a throttle of this account stops the worker's claims. `on_throttle` is called when an account or method of the tube
    was throttled, and at every (re)connect.
    """

    def __init__(
        self,
        store: Store,
        tube: str,
        handler: TaskHandler,
        *,
        options: WorkerOptions = WorkerOptions(),
        account: str = "",
        on_extension: OnExtension | None = None,
        on_throttle: Callable[[], None] | None = None,
    ) -> None:
        self._store = store
        self._queue = Queue(store)
        self.tube = tube
        self._handler = handler
        self._options = options
        self._account = account
        self._on_throttle = on_throttle
        # Half of what fits, so that the server works on one half while the handlers work on the other; with several
        # primaries less, so that one that does not answer leaves room for the others.
        self._page = max(1, min(_PAGE, options.max_tasks // (1 + len(store.shard_map.primaries()))))
        self._settles: Batcher[int, tuple[Task, Row], Settled] = Batcher(self._settle_page, self._page)
        self._heartbeat = Heartbeat(
            store, options.lease, options.max_runtime, on_extension, extends_blocked=options.extends_blocked
        )
        self.owner = f"{tube}-{secrets.token_hex(4)}"
        self._tasks = TasksInProgress(options.max_tasks, options.max_entries, self._heartbeat, self._ring)
        self._wake = asyncio.Event()
        self._stopping = False
        self._kept_timers: set[int] = set()  # shards
        self._schedule = ClaimSchedule(store.shards)
        self._claiming: dict[Topology, asyncio.Task[None]] = {}
        self._requested = 0  # tasks of the claims underway
        self._clock_ahead = 0.0  # seconds, of the server's clock before that of the event loop
        self._faults: dict[int, str] = {}  # why the last claim of a shard failed; each cause is logged once
        self.claims = 0

    async def run(self) -> None:
        """Work until `stop()`, then finish the tasks in progress. If cancelled, leave them to their leases."""
        events = KeyspaceEvents(self._store, self._listeners())
        listening = asyncio.create_task(events.run(), name=f"events of {self.tube}")
        self._heartbeat.start()
        self._store.worked_tubes.add(self.tube)
        self._store.tubes_changed.set()
        try:
            while not self._stopping:
                self._wake.clear()
                if self._store.is_quiet:
                    await self._sleep(self._options.max_sleep.total_seconds())
                    continue
                await self._claim_due()
                await self._sleep(self._next_moment() - asyncio.get_running_loop().time())
            await self._drain()
            await self._release_timers()
        finally:
            self._store.worked_tubes.discard(self.tube)
            self._store.tubes_changed.set()
            self._heartbeat.stop()
            ending = [listening, *self._claiming.values(), *self._tasks.running]
            for running in ending:
                running.cancel()
            await asyncio.gather(*ending, return_exceptions=True)

    async def step(self) -> Claim:
        """Claim one task of the first shard, and return the claim when its handler has ended: in place of `run`, for
        tests that say when something happens.
        """
        asked = asyncio.get_running_loop().time()
        claim = await self._queue.claim(0, self._request(1, self._options.max_entries))
        self._start_all(0, claim, asked)
        await self._drain()
        return claim

    def stop(self, grace: timedelta | None = None) -> None:
        """Claim nothing more. Handlers see `stopping` and return what they have not started; those that still run after
        `grace` are cancelled.
        """
        self._stopping = True
        self._wake.set()
        if grace is not None:
            asyncio.get_running_loop().call_later(grace.total_seconds(), self._tasks.cancel)

    def lease_end(self, task: Task) -> float:
        """Return until when the lease of a task in progress certainly lasts, by time.monotonic."""
        return self._heartbeat.lease_end(task)

    def release_capacity(self, task: Task, entries: int) -> None:
        """Report that `entries` of a running parcel are done, so that the next task is claimed before this one ends."""
        self._tasks.release_capacity(task, entries)

    @property
    def stopping(self) -> bool:
        return self._stopping

    def _listeners(self) -> dict[str, Callable[[], None]]:
        """Return key → what to call when it vanishes."""
        found: dict[str, Callable[[], None]] = {}
        for shard in range(self._store.shards):
            found[KEYS["bell"].at(shard, self.tube)] = partial(self._ring, shard)
            found[KEYS["timer"].at(shard)] = partial(self._on_timer, shard)
        if self._on_throttle:
            found[KEYS["signal"].at(0, self.tube)] = self._on_throttle
        return found

    def _on_timer(self, shard: int) -> None:
        """Have the keeper of the timer claim: a task falls due earlier than any before. The other workers look sooner
        than they would, at different times, whether it has kept the timer again, because it may have died.
        """
        if shard in self._kept_timers:
            self._ring(shard)
        else:
            soon = random.uniform(_AFTER_THE_KEEPER[0] / 1000, self._options.max_sleep.total_seconds())
            self._schedule.check_by(shard, asyncio.get_running_loop().time() + soon)
            self._wake.set()

    def _ring(self, shard: int) -> None:
        self._schedule.ring(shard)
        self._wake.set()

    async def _claim_due(self) -> None:
        """Make the next call of each primary; at several primaries side by side, because one that does not answer
        delays no other (S-09).
        """
        calls = self._due_calls(asyncio.get_running_loop().time())
        if len(self._store.shard_map.primaries()) == 1:
            for call in calls.values():
                await call()
            return
        for primary, call in calls.items():
            if primary not in self._claiming:
                self._claiming[primary] = asyncio.create_task(call(), name=f"claim of {self.tube}")
                self._claiming[primary].add_done_callback(partial(self._end_claim, primary))

    def _due_calls(self, now: float) -> dict[Topology, Callable[[], Coroutine[Any, Any, None]]]:
        """Return the next call of each primary: the claim of the shard that is due and has waited longest, else a check
        of its idle ones.
        """
        calls: dict[Topology, Callable[[], Coroutine[Any, Any, None]]] = {}
        for shard in self._schedule.due_now(now, has_room=self._tasks.has_room):
            calls.setdefault(self._store.shard_map.of(shard), partial(self._claim_from, shard))
        idle = self._schedule.to_check(now)
        for primary, homes in self._store.shard_map.primaries().items() if idle else ():
            if shards := [shard for shard in idle if shard in homes]:
                calls.setdefault(primary, partial(self._check_idle, shards))
        return calls

    def _end_claim(self, primary: Topology, _: "asyncio.Task[None]") -> None:
        del self._claiming[primary]
        self._wake.set()

    def _next_moment(self) -> float:
        """Return when the next shard is due. Shards of a primary that is being called follow when it has answered."""
        called = [home for primary in self._claiming for home in self._store.shard_map.primaries().get(primary, ())]
        return self._schedule.next_moment(has_room=self._tasks.has_room, aside=called)

    async def _claim_from(self, shard: int) -> None:
        clock = asyncio.get_running_loop().time
        self._schedule.begin(shard, clock())
        seconds, most = await self._try_claim(shard), self._options.max_sleep.total_seconds()
        check = clock() + most if seconds > most else math.inf
        self._schedule.end(shard, clock() + seconds if seconds > 0 else 0.0, check)

    async def _check_idle(self, shards: Sequence[int]) -> None:
        """Have those shards claimed in which a claim may have something to do."""
        try:
            timers = await idle_shards(self._store, self.tube, shards)
        except StoreError:  # the claims report it
            timers = {}
        check = asyncio.get_running_loop().time() + self._options.max_sleep.total_seconds()
        for shard in shards:
            self._schedule.end(shard, self._due_by(timers[shard]) if shard in timers else 0.0, check)

    def _due_by(self, timer: Timer) -> float:
        """Return when to claim in an idle shard. The keeper of its timer knows that since its last claim."""
        return math.inf if timer.keeper == self.owner else _after_the_keeper(timer.moment) / 1000 - self._clock_ahead

    async def _try_claim(self, shard: int) -> float:
        """Claim as `_claim` does, and log a fault. Returns after how many seconds the shard is due again."""
        try:
            seconds = await self._claim(shard)
            self._faults.pop(shard, None)
            return seconds
        except StoreError as fault:
            if str(fault) not in self._faults.values():
                log.warning("%s: no claim, next try every %s s: %s", self.tube, _RETRY_CLAIM, fault)
            self._faults[shard] = str(fault)
            return _RETRY_CLAIM

    async def _claim(self, shard: int) -> float:
        started = asyncio.get_running_loop().time()
        room = self._tasks.free_entries - self._requested
        limit = max(0, min(self._tasks.free_tasks - self._requested, room, self._page))
        self._requested += limit
        try:
            claim = await self._queue.claim(shard, self._request(limit, max(room, 0)))
        finally:
            self._requested -= limit
        self._start_all(shard, claim, started)
        is_full = len(claim.tasks) >= limit or sum(max(1, task.left) for task in claim.tasks) >= room
        self._schedule.note_backlog(shard, has_backlog=is_full)
        if claim.tasks and is_full and self._tasks.has_room:
            return 0.0
        return self._seconds_to_sleep(claim) - (asyncio.get_running_loop().time() - started)

    async def _settle_page(self, shard: int, ends: Sequence[tuple[Task, Row]]) -> Sequence[Settled]:
        """Settle attempts. A worker without room claims as many tasks in the same step, unless other shards have their
        turn first.
        """
        rows = [row for _, row in ends]
        is_full = not (self._stopping or self._store.is_quiet or self._tasks.has_room)
        if not is_full or not self._schedule.takes_turn(shard):
            return await self._queue.settle_page(shard, rows)
        started = asyncio.get_running_loop().time()
        entries = sum(self._tasks.open_entries(task) for task, _ in ends)
        states, claim = await self._queue.turn(shard, rows, self._request(len(ends), entries))
        self._start_all(shard, claim, started)
        self._schedule.note_backlog(shard, has_backlog=len(claim.tasks) >= len(ends))
        return states

    def _request(self, limit: int, budget: int) -> ClaimRequest:
        options = self._options
        return ClaimRequest(self.tube, self.owner, limit, options.lease, options.max_sleep, self._account, budget)

    def _start_all(self, shard: int, claim: Claim, asked: float) -> None:
        self.claims += 1
        (self._kept_timers.add if claim.keeper else self._kept_timers.discard)(shard)
        self._clock_ahead = claim.clock / 1000 - asyncio.get_running_loop().time()
        for task in claim.tasks:
            self._tasks.start(task, self._handle(task, claim), asked)

    def _seconds_to_sleep(self, claim: Claim) -> float:
        """Return when the next claim is due by what this one has shown; until then the shard is checked."""
        next_at = float(claim.next_at) if claim.keeper else _after_the_keeper(claim.next_at)
        moments = [moment for moment in (next_at, float(claim.opens_at)) if moment >= 0]
        most = self._options.max_sleep.total_seconds()
        if claim.opens_at < 0:
            most = _SELDOM * most if claim.keeper else math.inf
        return min([most, *((moment - claim.clock) / 1000 for moment in moments)])

    async def _handle(self, task: Task, claim: Claim) -> Settled | None:
        """Return the task's new state, None if the handler has settled it itself."""
        settlement = await self._handler(task, claim)
        if settlement is None:
            return None
        row = settlement.row(task)  # before it joins others: a value that cannot be encoded is its own task's fault
        return await self._settles.add(task.shard, (task, row))

    async def _sleep(self, seconds: float) -> None:
        if seconds <= 0 or self._stopping:  # the claim that follows lets other coroutines run
            return
        clock = asyncio.get_running_loop().time
        until = clock() + seconds
        try:
            async with asyncio.timeout(seconds - _TIMER_RESOLUTION):
                await self._wake.wait()
        except TimeoutError:
            while clock() < until and not self._wake.is_set():  # noqa: ASYNC110 - an event would use the same timer
                await asyncio.sleep(0)

    async def _release_timers(self) -> None:
        for shard in self._kept_timers:
            try:
                await self._queue.release_timer(self.owner, shard)
            except StoreError as fault:
                log.warning("%s: timer not released, it will run out: %s", self.tube, fault)

    async def _drain(self) -> None:
        while ending := [*self._claiming.values(), *self._tasks.running]:
            await asyncio.wait(ending)


def _after_the_keeper(next_at: int) -> float:
    """Return when a worker that does not keep the timer claims, by the server's ms; infinite if nothing falls due."""
    return next_at + random.randint(*_AFTER_THE_KEEPER) if next_at >= 0 else math.inf
