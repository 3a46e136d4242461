"""Durable waiting: an iteration that sleeps, or waits for a signal or a child, ends its attempt and goes on in a later
one.

    sleep, wait ─▶ the moment is stored ─▶ Suspended ─▶ a task that is due then ─▶ the iteration again, to this line
                                              signal ──▶ due at once

No process holds anything for it meanwhile. What was waited for is stored, so a repetition waits for nothing again.

    start_child ─▶ its name in the record of the parent ─▶ the child ─▶ the step
    the end of the child ─▶ a notice, in the same step ─▶ a signal to the parent, for which `result` waits

Branches run at the same time, up to a limit. One that sleeps or waits does not hold up the others; when all have ended
or wait, the iteration is suspended until the first of them goes on.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Struct

from core.errors import AdaError, Conflict, Invalid
from core.jobs import Actor, JobId, Jobs
from core.jobs.record import Parent
from core.jobs.signals import Signal
from core.model.clock import from_ms, to_ms
from core.queue.checks import check_spans
from jobs.recording.guard import BRANCH, Guard, place, returned_form
from jobs.signals import Suspended

LONGEST_SUSPENSION = timedelta(days=30)
"""An iteration that waits without a limit is looked at after this time."""


class _Answer(StrEnum):
    WAITING = "waiting"
    RECEIVED = "received"
    TIMED_OUT = "timed_out"


class _JobWait(Struct, frozen=True, omit_defaults=True):
    """The stored record of a wait. `until`: its limit (ms), 0 for none. `data`: of the signal."""

    answer: _Answer
    until: int = 0
    data: msgspec.Raw = msgspec.Raw(b"null")


class JobWaiting:
    """The sleeps and waits of one attempt. `steps`: what the iteration has stored."""

    def __init__(self, guard: Guard, steps: Mapping[str, str], now: Callable[[], datetime]) -> None:
        self._guard = guard
        self._steps = steps
        self._now = now
        self._counts: Counter[str] = Counter()

    async def sleep_until(self, at: datetime) -> None:
        """Sleep until the moment that the first attempt has named. Raises Suspended; TypeError."""
        name = self._name("sleep")
        stored = self._steps.get(name)
        until = from_ms(stored) if stored else at
        if stored is None:
            self._guard.check()
            await self._guard.record_step(name, str(to_ms(at)))
        if self._now() < until:
            raise self._guard.suspend(until, [])

    async def wait(self, signal: str, timeout: timedelta | None, returns: Any) -> Any:
        """Return the data of the next signal with this name that converts to `returns`; others are dropped, with a line
        of the log. Raises TimeoutError, Suspended; TypeError.
        """
        check_spans("wait", timeout=timeout)
        name = self._name(f"wait {signal}")
        stored = self._steps.get(name)
        wait = msgspec.json.decode(stored, type=_JobWait) if stored else self._first(timeout)
        if wait.answer is _Answer.WAITING:
            wait = await self._looked(name, signal, wait, returns, is_stored=stored is not None)
        if wait.answer is _Answer.TIMED_OUT:
            raise TimeoutError(f"no signal {signal!r} came in time")
        return returned_form(f"the signal {signal}", wait.data, returns)

    def _first(self, timeout: timedelta | None) -> _JobWait:
        return _JobWait(_Answer.WAITING, to_ms(self._now() + timeout) if timeout is not None else 0)

    async def _looked(self, name: str, signal: str, wait: _JobWait, returns: Any, *, is_stored: bool) -> _JobWait:
        """Return what has become of a wait by now. Raises Suspended if nothing has."""
        self._guard.check()
        entries, now = await self._guard.signals(), self._now()
        entry = next((one for one in entries if _signal(one).name == signal), None)
        if entry is not None:
            received = _JobWait(_Answer.RECEIVED, wait.until, msgspec.Raw(msgspec.json.encode(_signal(entry).data)))
            is_dropped = await self._dropped(entry, received, returns)
            if not is_dropped and await self._guard.take_signal(entry, name, _json(received)):
                return received
            return await self._looked(name, signal, wait, returns, is_stored=is_stored)
        if wait.until and now >= from_ms(wait.until):
            timed_out = _JobWait(_Answer.TIMED_OUT, wait.until)
            await self._guard.record_step(name, _json(timed_out))
            return timed_out
        if not is_stored:
            await self._guard.record_step(name, _json(wait))
        until = min(from_ms(wait.until), now + LONGEST_SUSPENSION) if wait.until else now + LONGEST_SUSPENSION
        raise self._guard.suspend(until, [signal])

    async def _dropped(self, entry: str, received: _JobWait, returns: Any) -> bool:
        """Drop a signal whose data the job cannot take. Returns whether it was one."""
        signal = _signal(entry)
        try:
            returned_form(f"the signal {signal.name}", received.data, returns)
        except Invalid as refusal:
            await self._guard.record_line(f"the signal {signal.name} is dropped: {refusal.detail}")
            await self._guard.take_signal(entry, f"log\tdropped {signal.id}", "1")
            return True
        return False

    def _name(self, what: str) -> str:
        """Return the name of the next wait of a kind: they are counted in each item and branch, and outside of them."""
        name = f"{what}\t{place()}"
        self._counts[name] += 1
        return f"{name}\t{self._counts[name]}"


def _signal(entry: str) -> Signal:
    return msgspec.json.decode(entry, type=Signal)


def _json(wait: _JobWait) -> str:
    return msgspec.json.encode(wait).decode()


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
