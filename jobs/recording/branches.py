"""Concurrency in an iteration: jobs that it starts, which end with it; branches, which run at the same time, up to a
limit.

start_child ─▶ its name in the record of the parent ─▶ the child ─▶ the step
the end of the child ─▶ a notice, in the same step ─▶ a signal to the parent, for which `result` waits

A branch that sleeps or waits does not hold up the others. When all have ended or wait, the iteration is suspended until
the first of them goes on.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

import msgspec
from msgspec import Struct

from core.errors import AdaError, Conflict
from core.jobs import Actor, JobId, Jobs
from core.jobs.record import Parent
from jobs.recording.guard import Guard
from jobs.recording.records import BRANCH, returned_form
from jobs.recording.waiting import JobWaiting
from jobs.signals import Suspended


class ChildFailed(AdaError):
    """The child has failed, or was stopped."""


class ChildEnd(Struct, frozen=True):
    """The end of a child. `state`: `finished`, `failed` or `stopped`."""

    state: str
    reason: str
    result: msgspec.Raw


class Child:
    """A child of the iteration. `id`: as in the API."""

    def __init__(self, job_id: JobId, parent: Parent, waiting: JobWaiting, guard: Guard, jobs: Jobs) -> None:
        self.id = job_id.name
        self._job_id = job_id
        self._parent = parent
        self._waiting = waiting
        self._guard = guard
        self._jobs = jobs

    async def result(self, *, timeout: timedelta | None = None, returns: Any = Any) -> Any:
        """Return what `run` of the child has returned, converted to `returns`. Waits without a process. Raises
        ChildFailed, TimeoutError.
        """
        end = await self._waiting.wait(self._parent.signal_of(self._job_id), timeout, ChildEnd)
        self._guard.awaited.add(self.id)
        if end.state != "finished":
            raise ChildFailed(f"the child {self.id} is {end.state}: {end.reason}")
        return returned_form(self.id, end.result, returns)

    async def cancel(self) -> None:
        """Stop the child, if it has not ended."""
        with suppress(Conflict):
            await self._jobs.stop(self._job_id, Actor.ADMIN, "cancelled by its parent", keeps_failed=True)


class Children:
    """Starts the children of one iteration. `steps`: what the iteration has stored."""

    def __init__(self, guard: Guard, steps: Mapping[str, str], waiting: JobWaiting, jobs: Jobs) -> None:
        self._guard = guard
        self._steps = steps
        self._waiting = waiting
        self._jobs = jobs

    async def start(self, kind: str, key: str, parameters: Mapping[str, Any] | None) -> Child:
        """Start a child once in this iteration. Raises as `Jobs.start`."""
        job, record = self._guard.job.id, self._guard.job.record
        parent = Parent(job.name, f"{record.iteration}.{record.anchor}")
        job_id = JobId(job.tenant, kind, job.user, key)
        step = f"child\t{job_id.name}"
        if step not in self._steps:
            await self._guard.add_child(job_id.name)
            await self._start(job_id, parameters, parent)
            await self._guard.record_step(step, "null")
        return Child(job_id, parent, self._waiting, self._guard, self._jobs)

    async def _start(self, job_id: JobId, parameters: Mapping[str, Any] | None, parent: Parent) -> None:
        """Start a child, unless an attempt before this one has."""
        known = await self._jobs.storage.read(job_id)
        if known is None or known.record.parent != parent:
            zone = self._guard.job.record.timezone
            await self._jobs.start(job_id, parameters or {}, zone, Actor.ADMIN, parent=parent)


class Branches:
    """Runs the branches of one attempt."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._counts: Counter[str] = Counter()

    async def gather(self, branches: Sequence[Awaitable[Any]], at_once: int) -> list[Any]:
        """Return the results in the order of the branches. All have ended before the first error is raised."""
        outer = BRANCH.get()
        self._counts[outer] += 1
        room, place = asyncio.Semaphore(at_once), f"{outer}/{self._counts[outer]}"

        async def run(number: int, branch: Awaitable[Any]) -> Any:
            async with room:
                BRANCH.set(f"{place}.{number}")
                return await branch

        tasks = [asyncio.create_task(run(number, branch)) for number, branch in enumerate(branches)]
        try:
            ends = await asyncio.gather(*tasks, return_exceptions=True)
        except BaseException:
            await self._cancel(tasks)
            raise
        faults = [end for end in ends if isinstance(end, BaseException)]
        for fault in faults:
            if not isinstance(fault, Suspended):
                raise fault
        suspended = [fault for fault in faults if isinstance(fault, Suspended)]
        if suspended:
            raise self._guard.suspend(
                min(one.until for one in suspended),
                [signal for one in suspended for signal in one.waits_for],
                next((one.reason for one in suspended if one.reason), ""),
            )
        return list(ends)

    async def _cancel(self, tasks: Sequence["asyncio.Task[Any]"]) -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
