"""Tasks that are put and done while something happens to the servers: each is done once, and those of a lane in order.

Every second task stands in one of 32 lanes. Up to four pages are put at once, without waiting for each other.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from core.queue import Attempt, NewTask, QueueClient
from core.redis.store import Store
from tests.support.waiting import until

_TUBE = "load"
_PAGE = 50
_UNDERWAY = 4
_LANES = 32
_CONCURRENCY = 200
_BACKLOG = 2_000
"""Tasks that wait: a slow machine gets fewer, not a backlog."""
_SILENCE = 60.0


class TaskLoad:
    """`put`: how many were accepted. `done`: the numbers of tasks in the order in which they were done."""

    def __init__(self, store: Store, rate: float) -> None:
        self._client = QueueClient(store)
        self._rate = rate
        self.put = 0
        self.done: list[int] = []

    async def run(self, is_over: Callable[[], bool]) -> None:
        """Put tasks until `is_over`, and do all of them."""
        worker = self._client.worker(_TUBE, self._handle, _CONCURRENCY)
        working = asyncio.create_task(worker.run())
        await self._put_until(is_over)
        await self._until_left(0)
        worker.stop()
        await working
        await self._client.close()

    async def _put_until(self, is_over: Callable[[], bool]) -> None:
        underway: deque[asyncio.Future[Any]] = deque()
        began = asyncio.get_running_loop().time()
        while not is_over():
            page = range(self.put, self.put + _PAGE)
            in_lanes = [self._client.put(_TUBE, str(number), lane=_lane(number)) for number in page if _lane(number)]
            others = [NewTask(str(number)) for number in page if not _lane(number)]
            underway.append(asyncio.gather(*in_lanes, self._client.put_many(_TUBE, others)))
            self.put += _PAGE
            await asyncio.sleep(began + self.put / self._rate - asyncio.get_running_loop().time())
            while len(underway) >= _UNDERWAY:
                await underway.popleft()
            await self._until_left(_BACKLOG)
        await asyncio.gather(*underway)

    async def _until_left(self, most: int) -> None:
        """Wait until at most so many tasks are left, or none is done any more: `findings` names those."""
        with suppress(AssertionError):
            while len(self.done) < self.put - most:
                await self._until_more()

    async def _until_more(self) -> None:
        before = len(self.done)
        await until(lambda: len(self.done) > before, within=_SILENCE, every=0.05)

    async def _handle(self, attempt: Attempt) -> None:
        self.done.append(int(attempt.task.body))

    @property
    def findings(self) -> list[str]:
        """What was lost, done twice, or done before an earlier task of its lane."""
        counts = Counter(self.done)
        found = [f"task {number} was done {counts[number]} times" for number in range(self.put) if counts[number] != 1]
        last: dict[str, int] = {}
        for number in self.done:
            if (lane := _lane(number)) and last.get(lane, -1) > number:
                found.append(f"task {number} of {lane} was done after {last[lane]}")
            last[lane] = number
        return found


def _lane(number: int) -> str:
    return f"lane {number // 2 % _LANES}" if number % 2 else ""
