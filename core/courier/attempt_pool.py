"""The hands of a courier process: so many attempts are under way at once, and the parcels in hand take turns.

A hand that is free goes on in the same turn of the event loop, with whatever parcel is next. So attempts whose answers
came together leave together, across the ends of parcels too, and a provider's library packs them into one packet.

Before: `core.courier.parcel_executor` has batches. After: it attempts them.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Any, Protocol


class Batches(Protocol):
    """What there is to attempt of one parcel."""

    def next_batch(self) -> Sequence[Any]:
        """What the next attempt is made of; nothing: no further attempt is to begin."""
        ...

    async def attempt(self, batch: Sequence[Any]) -> None: ...


class _Share:
    """A parcel among those that take turns, and the hands that are at it."""

    __slots__ = ("attempts", "batches", "over")

    def __init__(self, batches: Batches) -> None:
        self.batches = batches
        self.attempts: set[asyncio.Task[None]] = set()
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class AttemptPool:
    """One per process. `count`: how many there are at most; those with nothing to do do not exist."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._turns: deque[_Share] = deque()
        self._hands: set[asyncio.Task[None]] = set()

    async def attempt_all(self, batches: Batches, count: int) -> None:
        """Attempt `count` batches, or as many as there are. Back when the last attempt is over; raises what one raised:
        then, and when this is cancelled, the parcel's other attempts are cancelled.
        """
        turn = _Share(batches)
        self._turns.append(turn)
        self._lend(max(1, count))
        try:
            await turn.over
        finally:
            self._drop(turn)
            ending = list(turn.attempts)
            for hand in ending:
                hand.cancel()
            await asyncio.gather(*ending, return_exceptions=True)

    def _lend(self, wanted: int) -> None:
        for _ in range(min(wanted, self._count - len(self._hands))):
            self._hands.add(asyncio.create_task(self._work()))

    async def _work(self) -> None:
        hand = asyncio.current_task()
        assert hand is not None
        try:
            while self._turns:
                await self._take(hand, self._turns[0])
        finally:
            # At once and not when the task is known to be over: whoever comes meanwhile counts the free hands.
            self._hands.discard(hand)
            if self._turns:  # it was cancelled with one parcel, and the others still need it
                self._lend(1)

    async def _take(self, hand: "asyncio.Task[None]", turn: _Share) -> None:
        self._turns.rotate(-1)
        turn.attempts.add(hand)
        try:
            if batch := turn.batches.next_batch():
                await turn.batches.attempt(batch)
            else:
                self._drop(turn)
        except Exception as fault:  # noqa: BLE001 - `attempt_all` raises it; the hand goes on with other parcels
            self._drop(turn)
            if not turn.over.done():
                turn.over.set_exception(fault)
        finally:
            turn.attempts.discard(hand)
            if not turn.attempts and turn not in self._turns and not turn.over.done():
                turn.over.set_result(None)

    def _drop(self, turn: _Share) -> None:
        """Begin nothing more of it."""
        if turn in self._turns:
            self._turns.remove(turn)
