"""Batches calls: what is added in one turn of the event loop goes to the server in one step.

Guarantees: the order of the calls is the order on the server. A step has at most `page` items, so that no function
keeps the server busy for long. A fault is raised to every caller of its step: an item must be one that can be sent,
so callers check their values before they add it. A caller that is cancelled affects no other.

`Queue.put` batches with it for `lua/queue/functions/put.lua`, `Worker` for `lua/queue/functions/settle.lua`.
"""

import asyncio
from collections.abc import Callable, Coroutine, Hashable, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item")
Answer = TypeVar("Answer")

_Batch = Sequence[tuple[Item, asyncio.Future[Answer]]]


class Batcher(Generic[Key, Item, Answer]):
    """`send(key, items)` makes one step of the items and returns one answer per item. Each key has its own steps."""

    def __init__(self, send: Callable[[Key, Sequence[Item]], Coroutine[Any, Any, Sequence[Answer]]], page: int) -> None:
        self.page = page
        self._send = send
        self._added: dict[Key, list[tuple[Item, asyncio.Future[Answer]]]] = {}
        self._steps: set[asyncio.Task[Sequence[Answer]]] = set()

    def add(self, key: Key, item: Item) -> "asyncio.Future[Answer]":
        """Send an item together with those that are added in this turn of the event loop."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Answer] = loop.create_future()
        if not self._added:
            loop.call_soon(self._flush)
        self._added.setdefault(key, []).append((item, answer))
        return answer

    async def send_all(self, key: Key, items: Sequence[Item]) -> list[Answer]:
        """Send items page by page, after everything that was added before."""
        if self._added:
            self._flush()
            await asyncio.sleep(0)  # the steps of the added items start first
        answers: list[Answer] = []
        for start in range(0, len(items), self.page):
            answers += await self._send(key, items[start : start + self.page])
        return answers

    def _flush(self) -> None:
        added, self._added = self._added, {}
        for key, batch in added.items():
            for start in range(0, len(batch), self.page):
                self._start(key, batch[start : start + self.page])

    def _start(self, key: Key, batch: _Batch[Item, Answer]) -> None:
        items = [item for item, _ in batch]
        step = asyncio.create_task(self._send(key, items))
        self._steps.add(step)
        step.add_done_callback(partial(self._finish, batch))

    def _finish(self, batch: _Batch[Item, Answer], step: "asyncio.Task[Sequence[Answer]]") -> None:
        self._steps.discard(step)
        if step.cancelled():
            for _, answer in batch:
                answer.cancel()
            return
        fault = step.exception()
        answers = () if fault else step.result()
        for n, (_, answer) in enumerate(batch):
            if answer.done():  # its caller was cancelled
                continue
            if fault:
                answer.set_exception(fault)
            else:
                answer.set_result(answers[n])
