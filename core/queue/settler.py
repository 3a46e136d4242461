"""Batches settlements: those of one turn of the event loop go to `lua/queue/settle.lua` in one step."""

import asyncio
from collections.abc import Sequence

from core.errors import StoreError
from core.queue.queue import Queue
from core.queue.task import Settlement, Task

_PAGE = 100

_End = tuple[Task, Settlement, "asyncio.Future[str]"]


class SettleBatcher:
    """One per worker."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._gathered: list[_End] = []
        self._sending: set[asyncio.Task[None]] = set()

    def settle(self, task: Task, settlement: Settlement) -> "asyncio.Future[str]":
        """What `Queue.settle` answers."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[str] = loop.create_future()
        if not self._gathered:
            loop.call_soon(self._send)
        self._gathered.append((task, settlement, answer))
        return answer

    def _send(self) -> None:
        gathered, self._gathered = self._gathered, []
        for start in range(0, len(gathered), _PAGE):
            sending = asyncio.create_task(self._send_page(gathered[start : start + _PAGE]))
            self._sending.add(sending)
            sending.add_done_callback(self._sending.discard)

    async def _send_page(self, page: Sequence[_End]) -> None:
        try:
            answers = await self._queue.settle_many([(task, settlement) for task, settlement, _ in page])
        except StoreError as fault:
            for _, _, answer in page:
                if not answer.done():
                    answer.set_exception(fault)
            return
        for (_, _, waiting), told in zip(page, answers, strict=True):
            if not waiting.done():
                waiting.set_result(told)
