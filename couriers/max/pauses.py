"""Pauses where MAX names none: after a 429 without Retry-After, and for data that appears a moment later.

Two messages a second in one dialog, and thirty in all: a 429 does not say which limit it means. If the dialog got its
last two messages within the second, it is that of the dialog, which then waits alone; otherwise that of the bot.
"""

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Generic, TypeVar

from couriers.sending import Deferred, Scope

FIRST, LONGEST = 1.0, 60.0
"""Seconds; doubled with each refusal after the wait."""

_WINDOW, _IN_WINDOW = 1.0, 2
_KEPT = 10_000
_ACCOUNT = ""

V = TypeVar("V")


class _Newest(OrderedDict[Hashable, V], Generic[V]):
    """Keeps a bounded number of entries: those set last."""

    def __setitem__(self, key: Hashable, value: V) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > _KEPT:
            self.popitem(last=False)


@dataclass(frozen=True, slots=True)
class _Wait:
    seconds: float
    until: float


class Throttles:
    """Of one courier."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._sends: _Newest[deque[float]] = _Newest()
        self._waits: _Newest[_Wait] = _Newest()

    def begins(self, address: str) -> None:
        """Note that a message to this address is about to be sent."""
        sends = self._sends.get(address) or deque(maxlen=_IN_WINDOW + 1)
        sends.append(self._clock())
        self._sends[address] = sends

    def accepted(self, address: str) -> None:
        """Note that MAX has taken a message: the next wait is a short one again."""
        for key in (address, _ACCOUNT):
            if key in self._waits and self._waits[key].until < self._clock():
                del self._waits[key]

    def refused(self, address: str, refusal: Deferred) -> Deferred:
        """Return the refusal with its scope and, if MAX names none, its wait."""
        scope = Scope.CHAT if self._is_dialog_too_fast(address) else Scope.ACCOUNT
        if refusal.after is not None:
            return replace(refusal, scope=scope)
        wait = self._wait(address if scope is Scope.CHAT else _ACCOUNT)
        return replace(refusal, scope=scope, after=timedelta(seconds=wait))

    def _is_dialog_too_fast(self, address: str) -> bool:
        """Return whether two messages went to the address within the second before the one that was refused."""
        now = self._clock()
        return sum(now - at < _WINDOW for at in self._sends.get(address, ())) > _IN_WINDOW

    def _wait(self, key: str) -> float:
        """Return the seconds to wait. Refusals during a wait belong to it and do not make it longer."""
        now, last = self._clock(), self._waits.get(key)
        if last is not None and now < last.until:
            return max(last.until - now, 0.1)
        seconds = min(last.seconds * 2, LONGEST) if last is not None else FIRST
        self._waits[key] = _Wait(seconds, now + seconds)
        return seconds


class Repetitions:
    """Waits for what is refused at first: `pauses` in seconds, one after the other, for each message."""

    def __init__(self, pauses: Sequence[float]) -> None:
        self._pauses = pauses
        self._used: _Newest[int] = _Newest()

    def next(self, message: Hashable) -> timedelta | None:
        """Return the next pause of a message; None after the last."""
        used = self._used.get(message, 0)
        if used == len(self._pauses):
            self._used.pop(message, None)
            return None
        self._used[message] = used + 1
        return timedelta(seconds=self._pauses[used])
