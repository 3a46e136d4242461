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
from dataclasses import dataclass, replace

from core.model.history_key import HistoryKey
from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.keys import KEYS
from core.redis.store import Store
from core.redis.stream_reader import StreamReader


@dataclass(frozen=True, slots=True)
class HistoryEvent:
    """One step of one history. `changes`: one line per outcome: `i` or `s` and the recipient's id, the channel and the
    stored outcome, separated by tabs. `history`: the suffix. `answer`: the
    same recipient and the stored row of an answer.
    """

    event: str
    state: str
    version: int
    reported: int
    finished: bool
    changes: str
    tenant: str = ""
    history: str = ""
    answer: str = ""
    shard: int = 0


_ALL = ""
"""Stands for the histories of all deliveries of a shard."""

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
        async with self._subscribed(key.shard, key.suffix, on_event):
            yield

    @contextlib.asynccontextmanager
    async def _subscribed(self, shard: int, suffix: str, on_event: OnEvent) -> AsyncIterator[None]:
        subscribers = self._subscribers[shard]
        subscribers[suffix].add(on_event)
        try:
            await self._start(shard)
            yield
        finally:
            subscribers[suffix].discard(on_event)
            if not subscribers[suffix]:
                del subscribers[suffix]
            if not subscribers:
                self._stop(shard)

    @contextlib.asynccontextmanager
    async def subscribe_all(self, on_event: OnEvent) -> AsyncIterator[None]:
        """Call `on_event` with each event of all histories. It must not block."""
        async with contextlib.AsyncExitStack() as shards:
            for shard in range(self._store.shards):
                await shards.enter_async_context(self._subscribed(shard, _ALL, on_event))
            yield

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
            known = self._subscribers[shard]
            if subscribers := {*known.get(fields["history"], ()), *known.get(_ALL, ())}:
                event = replace(history_event(fields), shard=shard)
                for on_event in subscribers:
                    on_event(event)

        def report_gap() -> None:
            for subscribers in list(self._subscribers[shard].values()):
                for on_event in list(subscribers):
                    on_event(None)

        await StreamReader(self._store, KEYS["events"].at(shard), last, pass_on, report_gap).run()


def history_event(fields: Mapping[str, str]) -> HistoryEvent:
    """Return the event in an entry of the stream."""
    numbers = int(fields["version"]), int(fields["reported"])
    is_finished, whose = (
        fields["finished"] == "1",
        (fields.get("tenant", ""), fields["history"], fields.get("answer", "")),
    )
    return HistoryEvent(fields["event"], fields["state"], *numbers, is_finished, fields["changes"], *whose)
