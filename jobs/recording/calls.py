"""Calls of steps and effects: repeated after an error, within a time limit, with a heartbeat.

call ─▶ error that the policy names ─▶ the number of failures is stored ─▶ the iteration sleeps ─▶ the call again
"""

import asyncio
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime, timedelta
from inspect import isawaitable
from typing import Any

import msgspec

from core.errors import AdaError, Invalid
from core.model.clock import Backoff
from core.queue.checks import check_spans, check_type
from jobs.recording.effects import Call
from jobs.recording.guard import Guard
from jobs.recording.records import PROGRESS, stored_form
from jobs.signals import NotDone


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """After which errors a call is made again. `attempts`: how many there are in all; `first`, `longest`: the pauses,
    which grow; `on`: the errors; `NotDone` is always one of them. The other errors of Ada's own are none.
    """

    attempts: int = 5
    first: timedelta = timedelta(seconds=1)
    longest: timedelta = timedelta(minutes=5)
    on: tuple[type[Exception], ...] = (Exception,)

    def __post_init__(self) -> None:
        """Raise TypeError for a value of another type."""
        check_type("retry policy", "attempts", self.attempts, int)
        check_spans("retry policy", first=self.first, longest=self.longest)
        check_type("retry policy", "on", self.on, tuple)

    def covers(self, fault: Exception) -> bool:
        """Return whether the call is made again after this error."""
        return isinstance(fault, NotDone) or (isinstance(fault, self.on) and not isinstance(fault, AdaError))


@dataclass(slots=True)
class _RunningCalls:
    """The call that runs in this task. `limit`: until its next heartbeat."""

    name: str
    limit: asyncio.Timeout | None = None
    every: timedelta | None = None


_RUNNING: ContextVar[_RunningCalls | None] = ContextVar("running", default=None)


class Calls:
    """The calls of one attempt. `steps`: what the iteration has stored."""

    def __init__(self, guard: Guard, steps: Mapping[str, str], now: Callable[[], datetime]) -> None:
        self._guard = guard
        self._steps = steps
        self._now = now
        self._progress: dict[str, Any] = {}

    def limited(self, name: str, call: Call, timeout: timedelta | None, heartbeat: timedelta | None) -> Call:
        """Return the call with its limits: it raises TimeoutError after `timeout`, or if it sends no heartbeat for so
        long; TypeError if the call is not async.
        """
        check_spans("call", timeout=timeout, heartbeat=heartbeat)

        async def limited(*arguments: Any, **options: Any) -> Any:
            async with asyncio.timeout(_seconds(timeout)), asyncio.timeout(_seconds(heartbeat)) as limit:
                token = _RUNNING.set(_RunningCalls(name, limit if heartbeat else None, heartbeat))
                try:
                    running = call(*arguments, **options)
                    if not isawaitable(running):
                        raise TypeError(f"The call of {name} is not async: use `async def`, or asyncio.to_thread.")
                    return await running
                finally:
                    _RUNNING.reset(token)

        return limited

    async def heartbeat(self, progress: Any) -> None:
        """Store how far the call has come, and check that the job goes on. Raises as `Guard.check`; Invalid
        HEARTBEAT_OUTSIDE, RESULT_NOT_JSON, RESULT_TOO_LARGE.
        """
        running = self._running()
        if running.limit is not None and running.every is not None:
            running.limit.reschedule(asyncio.get_running_loop().time() + running.every.total_seconds())
        stored = stored_form(running.name, progress)
        self._progress[running.name] = msgspec.json.decode(stored)
        await self._guard.record_step(f"{PROGRESS}{running.name}", bytes(stored).decode())

    def progress(self) -> Any:
        """Return what the last heartbeat of this call has stored, also in an earlier attempt; None if there was none.
        Raises Invalid HEARTBEAT_OUTSIDE.
        """
        name = self._running().name
        stored = self._steps.get(f"{PROGRESS}{name}")
        return self._progress.get(name, msgspec.json.decode(stored) if stored else None)

    async def again(self, name: str, policy: RetryPolicy | None, fault: Exception) -> None:
        """Put the iteration off if the policy makes the call again, otherwise return. Raises Suspended."""
        if policy is None or not policy.covers(fault):
            return
        place = f"failures\t{name}"
        failures = int(self._steps.get(place, 0)) + 1
        if failures >= policy.attempts:
            await self._guard.record_line("", place, "0")
            return
        pause = Backoff(policy.first, policy.longest).pause(failures)
        line = f"{name}: attempt {failures} of {policy.attempts} failed ({type(fault).__name__})"
        await self._guard.record_line(line, place, str(failures))
        raise self._guard.suspend(self._now() + pause, [], line)

    def _running(self) -> _RunningCalls:
        running = _RUNNING.get()
        if running is None:
            raise Invalid("HEARTBEAT_OUTSIDE", "Only the call of a step or an effect has a heartbeat.")
        return running


def _seconds(time: timedelta | None) -> float | None:
    return time.total_seconds() if time is not None else None
