"""The slots of limits that the iterations of a process have (`Limit.concurrency`).

take ─▶ the iteration runs ─▶ release ─▶ the next in the queue of the limit is woken
  └▶ full: the task waits in that queue, and no process holds the job
A process that dies extends its slots no longer: after a lease another process gives them on.
"""

import asyncio
import logging
import time
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

from core.errors import AdaError, StoreError
from core.jobs import StoredJob
from core.model.compact_json import compact_json
from core.queue import Queue, Suspend, Task
from core.redis.store import Store
from jobs.limits.limit import Limit

log = logging.getLogger(__name__)

_SHARD = 0
"""All slots are in one shard, so that one step decides on all limits of a job."""

_EXTENSIONS = 3
"""How often slots are extended before they would end."""

WAITS = Suspend(timedelta(minutes=5), leaves_lane=True)
"""A job that waits is woken; it looks again after this time, should nothing have woken it."""


class Slots:
    """One per process."""

    def __init__(self, store: Store, lease: timedelta) -> None:
        self._store = store
        self._queue = Queue(store)
        self._lease = lease
        self._ends: dict[tuple[str, str], float] = {}  # (job, attempt) → until when its slots certainly last
        self._is_extending = False

    async def take(self, limits: Sequence[Limit], job: StoredJob, holder: str, task: Task) -> str:
        """Take a slot of each limit for an attempt. Returns "", or the reason for which the job waits."""
        bounds = {limit.id_of(job): limit for limit in limits if limit.concurrency is not None}
        if not bounds:
            return ""
        asked, name = time.monotonic(), task.lane
        wanted = compact_json([[bound, limit.concurrency] for bound, limit in bounds.items()])
        words = (name, holder, task.task_id, self._lease_ms, wanted)
        full, *woken = await self._store.run("take_slots", _SHARD, *words)
        await self._wake(one for one in woken if one != task.task_id)
        if not full:
            self._ends[name, holder] = asked + self._lease.total_seconds()
            return ""
        limit = bounds[full]
        return f"waits for a slot: {limit.concurrency} at once, limit {limit.shown_for(job)}"

    def holds(self, holder: str, task: Task) -> bool:
        """Return whether the slots of an attempt certainly last; True if it needs none."""
        end = self._ends.get((task.lane, holder))
        return end is None or not self._is_extending or time.monotonic() < end

    async def release(self, by: str, task: Task) -> None:
        """Give back the slots of an attempt, or the place of a task among those that wait. If the server is down, they
        end by themselves.
        """
        self._ends.pop((task.lane, by), None)
        try:
            await self._wake(await self._store.run("release_slots", _SHARD, task.lane, by, self._lease_ms))
        except StoreError as fault:
            log.info("job %s: its slots end by themselves: %s", task.lane, fault)

    async def extend(self) -> None:
        """Extend the slots of all attempts, until cancelled; wake jobs that get those of a process that has died."""
        self._is_extending = True
        while True:
            await asyncio.sleep(self._lease.total_seconds() / _EXTENSIONS)
            try:
                await self._extend(list(self._ends))
            except StoreError as fault:
                log.warning("slots are not extended: %s", fault)

    async def _extend(self, attempts: Sequence[tuple[str, str]]) -> None:
        end = time.monotonic() + self._lease.total_seconds()
        words = [word for attempt in attempts for word in attempt]
        extended, *woken = await self._store.run("extend_slots", _SHARD, self._lease_ms, *words)
        for attempt, is_extended in zip(attempts, extended, strict=True):
            if attempt in self._ends:
                self._ends[attempt] = end if is_extended else 0.0
        await self._wake(woken)

    async def _wake(self, tasks: Iterable[Any]) -> None:
        """Have tasks attempted that got their slots. One that has ended meanwhile lets its slots end."""
        for task in tasks:
            try:
                await self._queue.wake(str(task))
            except AdaError as fault:
                log.info("task %s is not woken: %s", task, fault)

    @property
    def _lease_ms(self) -> int:
        return int(self._lease.total_seconds() * 1000)
