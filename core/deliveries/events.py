"""Reads the stream `events:{s}` once per process and shard while it has subscribers, and passes each event to the
subscribers of its history.

Guarantee: no event of that history is missed from the moment `subscribe` is entered. Where this cannot be guaranteed
(the connection broke, and the stream may have been trimmed meanwhile) subscribers receive None and must read the
history again.
"""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass

from core.model.history_key import HistoryKey
from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.keys import KEYS
from core.redis.store import Store
from core.redis.stream_reader import StreamReader


@dataclass(frozen=True, slots=True)
class HistoryEvent:
    """One step of one history. `changes`: one line per outcome: `i` or `s` and the recipient's id, the channel and the
    stored outcome, separated by tabs.
    """

    event: str
    state: str
    version: int
    reported: int
    finished: bool
    changes: str


OnEvent = Callable[[HistoryEvent | None], None]


class EventStream:
    """One per process."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._subscribers: dict[int, dict[str, set[OnEvent]]] = defaultdict(lambda: defaultdict(set))
        self._readers: dict[int, asyncio.Task[None]] = {}
        self._starts: dict[int, asyncio.Lock] = defaultdict(asyncio.Lock)

    @contextlib.asynccontextmanager
    async def subscribe(self, key: HistoryKey, on_event: OnEvent) -> AsyncIterator[None]:
        """Call `on_event` with each event of this history. It must not block."""
        subscribers = self._subscribers[key.shard]
        subscribers[key.suffix].add(on_event)
        try:
            await self._start(key.shard)
            yield
        finally:
            subscribers[key.suffix].discard(on_event)
            if not subscribers[key.suffix]:
                del subscribers[key.suffix]
            if not subscribers:
                self._stop(key.shard)

    async def close(self) -> None:
        readers = list(self._readers.values())
        self._readers.clear()
        await cancel_and_wait(*readers)

    async def _start(self, shard: int) -> None:
        """Start reading after the entry that is the last one now."""
        async with self._starts[shard]:
            if shard not in self._readers:
                key = KEYS["events"].at(shard)
                newest = await self._store.command("XREVRANGE", key, "+", "-", "COUNT", 1)
                self._readers[shard] = asyncio.create_task(self._read(shard, newest[0][0] if newest else "0-0"))

    def _stop(self, shard: int) -> None:
        if reader := self._readers.pop(shard, None):
            reader.cancel()

    async def _read(self, shard: int, last: str) -> None:
        def pass_on(_: str, fields: Mapping[str, str]) -> None:
            if subscribers := self._subscribers[shard].get(fields["history"]):
                event = history_event(fields)
                for on_event in list(subscribers):
                    on_event(event)

        def report_gap() -> None:
            for subscribers in list(self._subscribers[shard].values()):
                for on_event in list(subscribers):
                    on_event(None)

        await StreamReader(self._store, KEYS["events"].at(shard), last, pass_on, report_gap).run()


def history_event(fields: Mapping[str, str]) -> HistoryEvent:
    """Return the event in an entry of the stream."""
    numbers = int(fields["version"]), int(fields["reported"])
    return HistoryEvent(fields["event"], fields["state"], *numbers, fields["finished"] == "1", fields["changes"])
