"""Bounds that hold over all processes: how many iterations run at once, and how many calls begin in a time.

    Limit ─▶ Slots.take before an iteration ─▶ lua/jobs/functions/take_slots.lua ─▶ it runs, or its task waits
    Limit ─▶ Turns.take before a call ─▶ lua/jobs/functions/take_turn.lua ─▶ it begins, or the iteration sleeps

A process that dies extends its slots no longer: after a lease another process gives them to waiting tasks.
"""

import asyncio
import logging
import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from core.errors import AdaError, Invalid, NotFound, SetupError, StoreError
from core.jobs import Jobs, StoredJob
from core.jobs.storage import key_name
from core.model.json_form import compact_json
from core.queue import Queue, Suspend, Task
from core.queue.checks import check_type
from core.redis.store import Store
from jobs.recording.guard import Guard
from jobs.signals import Suspended, Throttled

log = logging.getLogger(__name__)

_SHARD = 0
"""All slots and turns are in one shard, so that one step decides on all limits of a job."""

_EXTENSIONS = 3
"""Number of extensions of slots before they would end."""

WAITS = Suspend(timedelta(minutes=5), leaves_lane=True)
"""A job that waits is woken; it checks again after this time, should nothing have woken it."""

_SHORT = timedelta(seconds=1)
"""So long a call waits in its process; if its turn is later, the iteration sleeps."""

REFUSED_FOR = timedelta(minutes=1)
"""If the service does not say how long it refuses calls."""

_USER = "user"
_PARAMETER = "parameters."
_KEY = re.compile(r"(user|parameters\..+)?", re.DOTALL)
_HIGHEST_RATE = 10_000


@dataclass(frozen=True, slots=True)
class Limit:
    """A bound over all processes. `concurrency`: how many iterations run at once; `rate`: how many calls that name this
    limit begin in the time `per`. `key`: "" for one bound for all jobs; "user" for one for each person;
    "parameters.account" for one for each value of this parameter in a tenant. `name`: kinds with a limit of the same
    name share it; "" stands for the kind alone.
    """

    name: str = ""
    concurrency: int | None = None
    rate: int | None = None
    per: timedelta = timedelta(minutes=1)
    key: str = ""

    def check(self) -> None:
        """Check whether the limit can be kept. Raises SetupError; TypeError for a `per` that is no timedelta."""
        check_type("limit", "per", self.per, timedelta)
        if self.concurrency is None and (self.rate is None or not self.name):
            raise SetupError(f"the limit {self.name!r} needs `concurrency`, or a `name` and a `rate`")
        if self.concurrency is not None and self.concurrency < 1:
            raise SetupError(f"`concurrency` of the limit {self.name!r} is a number from 1; it is {self.concurrency!r}")
        if self.rate is not None and not 1 <= self.rate <= _HIGHEST_RATE:
            raise SetupError(f"`rate` of the limit {self.name!r} is from 1 to {_HIGHEST_RATE}; it is {self.rate!r}")
        if self.per < timedelta(milliseconds=1):
            raise SetupError(f"`per` of the limit {self.name!r} is at least a millisecond; it is {self.per}")
        if not _KEY.fullmatch(self.key):
            raise SetupError(f"`key` of the limit {self.name!r} is `user` or `parameters.NAME`; it is {self.key!r}")

    def id_of(self, job: StoredJob) -> str:
        """Return the name in the store of the bound that holds for a job."""
        name = f"limit:{self.name}" if self.name else f"kind:{job.id.kind}"
        return f"{name}/{self.key}/{job.id.tenant}/{self._value(job)}" if self.key else name

    def shown_for(self, job: StoredJob) -> str:
        """Return the bound as it is shown, for example `'shop' of parameters.account 42`."""
        name = repr(self.name or job.id.kind)
        return f"{name} of {self.key} {self._value(job)}" if self.key else name

    def _value(self, job: StoredJob) -> Any:
        """A job without the parameter shares its bound with all that have none."""
        if self.key == _USER:
            return job.id.user
        return job.record.parameters.get(self.key.removeprefix(_PARAMETER), "")


def check_limits(limits: Iterable[Limit]) -> None:
    """Check the limits of a class. Raises SetupError if one cannot be kept, or two have the same name and key, or a
    rate and the same name.
    """
    seen = set[tuple[str, str]]()
    for limit in limits:
        limit.check()
        place = (limit.name, "rate" if limit.rate else limit.key)
        if place in seen:
            raise SetupError(f"two limits of one job have the name {limit.name!r} and the same key, or a rate")
        seen.add(place)


class Slots:
    """Takes, extends and releases the slots of the iterations that run in this process."""

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
        await self._wake([one for one in woken if one[0] != task.task_id])
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

    async def _wake(self, woken: Sequence[tuple[str, str]]) -> None:
        """Have tasks attempted that got their slots, each with its job. Those of a job that was stopped or paused
        meanwhile go to the next one.
        """
        waiting = list(woken)
        while waiting:
            task, job = waiting.pop(0)
            try:
                if not await self._queue.wake(task) and await self._has_ended(task):
                    waiting += await self._store.run("release_slots", _SHARD, job, task, self._lease_ms)
            except AdaError as fault:
                log.info("task %s is not woken: %s", task, fault)

    async def _has_ended(self, task: str) -> bool:
        try:
            return (await self._queue.inspector.peek(task)).ended is not None
        except NotFound:
            return True

    @property
    def _lease_ms(self) -> int:
        return int(self._lease.total_seconds() * 1000)


class Turns:
    """Says when a call of an attempt may begin, and what follows if the service refuses it for its rate."""

    def __init__(self, store: Store, limits: Sequence[Limit], guard: Guard, jobs: Jobs) -> None:
        self._store = store
        self._limits = {limit.name: limit for limit in limits if limit.rate is not None}
        self._guard = guard
        self._now = jobs.now

    async def take(self, name: str) -> None:
        """Wait until a call of this limit may begin, and count it. Raises Suspended if that is later; Invalid
        LIMIT_UNKNOWN.
        """
        if not name:
            return
        limit, job = self._find(name), self._guard.job
        per_ms = int(limit.per.total_seconds() * 1000)
        words = (limit.id_of(job), key_name(job.id), limit.rate or 0, per_ms)
        while wait_ms := int(await self._store.run("take_turn", _SHARD, *words)):
            wait = timedelta(milliseconds=wait_ms)
            if wait > _SHORT:
                raise self._suspended(limit, self._now() + wait)
            await asyncio.sleep(wait.total_seconds())
            self._guard.check()

    async def refuse(self, name: str, refusal: Throttled) -> Suspended:
        """Let no job make a call of this limit for the time that the service asks for. Returns what ends this
        attempt.
        """
        limit, wait = self._find(name), refusal.after or REFUSED_FOR
        wait_ms = max(1, int(wait.total_seconds() * 1000))
        await self._store.run("refuse_calls", _SHARD, limit.id_of(self._guard.job), wait_ms)
        return self._suspended(limit, self._now() + wait)

    def _suspended(self, limit: Limit, until: datetime) -> Suspended:
        return self._guard.suspend(until, [], f"waits for its turn: limit {limit.shown_for(self._guard.job)}")

    def _find(self, name: str) -> Limit:
        if name not in self._limits:
            known = ", ".join(map(repr, self._limits)) or "none"
            raise Invalid("LIMIT_UNKNOWN", f"The job has no limit {name!r} with a rate; it has: {known}.")
        return self._limits[name]
