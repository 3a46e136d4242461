"""When the account of a courier may make its next call, in all its processes.

A refusal for the whole account stops all attempts at once: in this process when its response arrives, in the others by
the event of `lua/throttling/functions/throttle.lua`, or, without events, when they next ask. After the wait the calls
are spaced at the rate that the refusals have shown (D-22): `lua/throttling/functions/learn_rate.lua` lowers it, each
call raises it a little. Until the first refusal no rate is known and calls are not spaced (docs/decisions/0030).

Used by `couriers.sending.parcel_executor`, before and after each attempt.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence

from core.model.states import Reason
from core.queue import Queue
from couriers.sending.interface import ACCOUNT_WIDE, Deferred, Outcome, Partly, Rejected, Sent

# Without a known rate a process that sends asks this often, in seconds, whether another one was refused.
_ASK_INTERVAL = 0.25

# Providers round the wait up to seconds: a refusal whose wait ends this much later is the same throttle.
_SAME_THROTTLE = 1.0

# Over how many seconds accepted calls are counted.
_WINDOW = 1.0
_MOST_CALLS = 1000


class AccountThrottle:
    """One per process. `until`: when the throttle ends, by time.monotonic; in the past if there is none."""

    def __init__(self, queue: Queue, channel: str, account: str, is_stopping: Callable[[], bool]) -> None:
        self._queue = queue
        self._channel = channel
        self._account = account
        self._is_stopping = is_stopping
        self.until = 0.0
        self._is_paced = False
        self._asked = float("-inf")
        self._signals = 0
        self._signals_read = 0
        self._changed = asyncio.Event()
        self._turns = asyncio.Lock()
        self._accepted: deque[float] = deque(maxlen=_MOST_CALLS)
        self._got_through = False  # a message since the last outage

    @property
    def is_throttled(self) -> bool:
        return self.until > time.monotonic()

    def signal(self) -> None:
        """Note that a process of this channel was throttled: nothing is attempted before the next `wait_for_turn`."""
        self._signals += 1
        self._changed.set()

    def interrupt(self) -> None:
        """End the waits of `wait_for_turn`, because the process stops."""
        self._changed.set()

    async def wait_for_turn(self) -> bool:
        """Wait until the account may make its next call, is throttled, or the process stops. Returns False if there was
        nothing to wait for, so that what was known before the call still holds. Raises StoreError.
        """
        if not self._must_ask():
            return False
        async with self._turns:
            while self._must_ask() and not self.is_throttled and not self._is_stopping():
                self._changed.clear()
                wait_ms = await self._ask()
                if wait_ms <= 0 or await self._is_undisturbed(wait_ms / 1000):
                    break
        return True

    def _must_ask(self) -> bool:
        is_old = time.monotonic() - self._asked > _ASK_INTERVAL
        return self._is_paced or is_old or self._signals != self._signals_read

    async def _ask(self) -> int:
        """Reserve a call. Returns the ms until then, 0 or less if it may be made at once."""
        signals = self._signals
        throttled_ms, wait_ms = await self._queue.reserve_call(self._channel, self._account)
        self._signals_read, self._asked = signals, time.monotonic()
        self.until = max(self.until, self._asked + throttled_ms / 1000)
        self._is_paced = wait_ms >= 0
        return wait_ms

    async def _is_undisturbed(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return True
        return False

    async def learn(self, outcomes: Sequence[Outcome], *, is_first: bool) -> bool:
        """Learn from the outcomes of one call. `is_first`: one of its entries has not triggered a throttle before.
        Returns whether this call triggered a throttle; calls that were under way meanwhile only meet with it. A
        provider that cannot be reached is a trigger only if a message got through since the last time: otherwise it is
        down for everybody. Raises StoreError.
        """
        self._got_through |= any(isinstance(outcome, Sent | Rejected) for outcome in outcomes)
        waits = [(wait, refusal) for outcome in outcomes if (refusal := _refusal(outcome)) and (wait := refusal.after)]
        if not waits:
            self._accepted.append(time.monotonic())
            return False
        _, refusal = max(waits, key=lambda one: one[0])
        is_new = await self._throttle(refusal)
        calls = self._recent_calls()
        if is_new and is_first and calls and refusal.reason is Reason.THROTTLED:
            await self._queue.learn_rate(self._channel, self._account, calls)
            self._is_paced = True
        return is_new and (refusal.reason is not Reason.PROVIDER_DOWN or self._take_progress())

    def _take_progress(self) -> bool:
        """Return whether a message got through since the last call."""
        got_through, self._got_through = self._got_through, False
        return got_through

    async def _throttle(self, refusal: Deferred) -> bool:
        """Stop the attempts of all processes. Returns whether the account was not throttled before."""
        assert refusal.after
        was_throttled, before = self.is_throttled, self.until
        self.until = max(before, time.monotonic() + refusal.after.total_seconds())
        self._changed.set()
        if was_throttled and self.until <= before + _SAME_THROTTLE:
            return False
        scope = f"{refusal.scope}:{self._account}"
        was_throttled_elsewhere = await self._queue.throttle(self._channel, scope, refusal.after)
        return not was_throttled and not was_throttled_elsewhere

    def _recent_calls(self) -> int:
        since = time.monotonic() - _WINDOW
        return sum(at > since for at in self._accepted)


def _refusal(outcome: Outcome) -> Deferred | None:
    """Return the refusal of the whole account in an outcome, if the provider named a wait."""
    rest = outcome.rest if isinstance(outcome, Partly) else outcome
    return rest if isinstance(rest, Deferred) and rest.scope in ACCOUNT_WIDE else None
