"""Durable waiting: an iteration that sleeps, or waits for a signal, ends its attempt and goes on in a later one.

    sleep, wait ─▶ the moment is stored ─▶ Suspended ─▶ a task that is due then ─▶ the iteration again, to this line
                                              signal ──▶ due at once

No process holds anything for it meanwhile. What was waited for is stored, so a repetition waits for nothing again.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Struct

from core.errors import Invalid
from core.jobs.signals import Signal
from core.model.clock import from_ms, to_ms
from core.queue.checks import check_spans
from jobs.recording.guard import Guard
from jobs.recording.records import place, returned_form

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
