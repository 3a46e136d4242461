"""The attempt pool of a courier process: runs a limited number of attempts concurrently, in turn for all its parcels.

A worker of the pool that finishes an attempt starts the next one in the same iteration of the event loop, for whichever
parcel is next. Attempts whose responses arrived together therefore start together, also where one parcel ends and the
next begins, and the provider's library sends them in one packet.

Called by `couriers.sending.parcel_executor`.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Any, Protocol


class BatchSource(Protocol):
    """A parcel, as the pool sees it."""

    def next_batch(self) -> Sequence[Any]:
        """Return the entries of the next attempt; empty if no further attempt is to start."""
        ...

    async def attempt(self, batch: Sequence[Any]) -> None: ...


class _Turn:
    """A parcel in the pool, and the workers that attempt its batches now."""

    __slots__ = ("finished", "source", "workers")

    def __init__(self, source: BatchSource) -> None:
        self.source = source
        self.workers: set[asyncio.Task[None]] = set()
        self.finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class AttemptPool:
    """One per process. `size`: most concurrent attempts. Idle workers are not kept."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._turns: deque[_Turn] = deque()
        self._workers: set[asyncio.Task[None]] = set()

    async def attempt_all(self, source: BatchSource, batches: int) -> None:
        """Attempt the batches of a parcel, about `batches` of them; return when the last attempt has ended.

        Raises what an attempt raised. Then, and when this call is cancelled, the other attempts of the parcel are
        cancelled.
        """
        turn = _Turn(source)
        self._turns.append(turn)
        self._start_workers(max(1, batches))
        try:
            await turn.finished
        finally:
            self._remove(turn)
            workers = list(turn.workers)
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)

    def _start_workers(self, wanted: int) -> None:
        for _ in range(min(wanted, self._size - len(self._workers))):
            self._workers.add(asyncio.create_task(self._work()))

    async def _work(self) -> None:
        worker = asyncio.current_task()
        assert worker is not None
        try:
            while self._turns:
                await self._attempt_next(worker, self._turns[0])
        finally:
            # Not in a done callback: a parcel that is added before it runs must see this worker as gone.
            self._workers.discard(worker)
            if self._turns:  # cancelled together with its parcel, while other parcels have batches left
                self._start_workers(1)

    async def _attempt_next(self, worker: "asyncio.Task[None]", turn: _Turn) -> None:
        self._turns.rotate(-1)
        turn.workers.add(worker)
        try:
            if batch := turn.source.next_batch():
                await turn.source.attempt(batch)
            else:
                self._remove(turn)
        except Exception as fault:  # noqa: BLE001 - `attempt_all` raises it; this worker goes on with other parcels
            self._remove(turn)
            if not turn.finished.done():
                turn.finished.set_exception(fault)
        finally:
            turn.workers.discard(worker)
            if not turn.workers and turn not in self._turns and not turn.finished.done():
                turn.finished.set_result(None)

    def _remove(self, turn: _Turn) -> None:
        """Start no further attempt of this parcel."""
        if turn in self._turns:
            self._turns.remove(turn)
