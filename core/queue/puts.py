"""Puts, gathered: whatever is put in one turn of the event loop goes to the server in one step (`lua/queue/put.lua`).

Guarantee: the order of the calls is the order of the tasks; each is put exactly once, however often the connection
breaks. Before: `core.queue.queue` makes rows. After: the script.
"""

import asyncio
import itertools
from collections.abc import Sequence
from functools import partial

from core.redis.store import Store

Row = Sequence[str | int]

# Tasks of one script call: so long nobody else is served.
_PAGE = 200


class PutBatcher:
    """One per queue. `client`: its name, under which the server knows its calls."""

    def __init__(self, store: Store, client: str) -> None:
        self._store = store
        self._client = client
        self._calls = itertools.count(1)
        self._unanswered: dict[int, None] = {}
        self._gathered: dict[tuple[int, str], list[tuple[Row, asyncio.Future[None]]]] = {}
        self._sending: set[asyncio.Task[None]] = set()

    def put(self, shard: int, tube: str, row: Row) -> "asyncio.Future[None]":
        """Put one, with what others put in this turn."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[None] = loop.create_future()
        if not self._gathered:
            loop.call_soon(self._send)
        self._gathered.setdefault((shard, tube), []).append((row, answer))
        return answer

    async def put_many(self, shard: int, tube: str, rows: Sequence[Row]) -> None:
        """Put all, a page in one step; behind what was put before."""
        if self._gathered:
            self._send()
            await asyncio.sleep(0)  # those begin first
        for start in range(0, len(rows), _PAGE):
            await self._put_page(shard, tube, rows[start : start + _PAGE])

    def _send(self) -> None:
        gathered, self._gathered = self._gathered, {}
        for (shard, tube), puts in gathered.items():
            for start in range(0, len(puts), _PAGE):
                self._send_page(shard, tube, puts[start : start + _PAGE])

    def _send_page(self, shard: int, tube: str, page: "Sequence[tuple[Row, asyncio.Future[None]]]") -> None:
        rows = [row for row, _ in page]
        sending = asyncio.create_task(self._put_page(shard, tube, rows))
        self._sending.add(sending)
        sending.add_done_callback(self._sending.discard)
        sending.add_done_callback(partial(self._tell, page))

    @staticmethod
    def _tell(page: "Sequence[tuple[Row, asyncio.Future[None]]]", sending: "asyncio.Task[None]") -> None:
        fault = None if sending.cancelled() else sending.exception()
        for _, answer in page:
            if answer.done():  # its caller has gone
                continue
            if sending.cancelled():
                answer.cancel()
            elif fault:
                answer.set_exception(fault)
            else:
                answer.set_result(None)

    async def _put_page(self, shard: int, tube: str, rows: Sequence[Row]) -> None:
        """A call is named by its number, and tells which numbers are answered: docs/decisions/0014."""
        call = next(self._calls)
        self._unanswered[call] = None
        answered = next(iter(self._unanswered))
        flat = [word for row in rows for word in row]
        try:
            await self._store.run("put", shard, self._client, call, answered, tube, *flat)
        finally:
            del self._unanswered[call]
