"""Reads `events:{s}` while somebody listens, once per process and shard, and hands each entry to those who listen to
its history.

Guarantee: from the moment `listen` returns nothing of that history is missed; where that cannot be kept (the connection
broke and the stream may have been trimmed meanwhile) the listener hears None and must look for himself.
"""

import asyncio
import contextlib
import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass

from redis.exceptions import RedisError

from core.errors import StoreError
from core.model.history_key import HistoryKey
from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.keys import KEYS
from core.redis.store import Store
from core.redis.stream_reader import entries

log = logging.getLogger(__name__)

_BLOCK_MS = 5000
_COUNT = 500
_PAUSE = 0.2


@dataclass(frozen=True, slots=True)
class HistoryEvent:
    """One step of one history. `changes`: a line per outcome, `i|s` and the recipient's id, channel, stored outcome,
    tab-separated.
    """

    event: str
    state: str
    version: int
    reported: int
    finished: bool
    changes: str


Hear = Callable[[HistoryEvent | None], None]


class EventStream:
    """One per process."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._listeners: dict[int, dict[str, set[Hear]]] = defaultdict(lambda: defaultdict(set))
        self._readers: dict[int, asyncio.Task[None]] = {}
        self._starts: dict[int, asyncio.Lock] = defaultdict(asyncio.Lock)

    @contextlib.asynccontextmanager
    async def listen(self, key: HistoryKey, hear: Hear) -> AsyncIterator[None]:
        """`hear` is called with each entry of this history, and must not block."""
        listeners = self._listeners[key.shard]
        listeners[key.suffix].add(hear)
        try:
            await self._start(key.shard)
            yield
        finally:
            listeners[key.suffix].discard(hear)
            if not listeners[key.suffix]:
                del listeners[key.suffix]
            if not listeners:
                self._end(key.shard)

    async def close(self) -> None:
        readers = list(self._readers.values())
        self._readers.clear()
        await cancel_and_wait(*readers)

    async def _start(self, shard: int) -> None:
        """Read from the entry that is the last one now."""
        async with self._starts[shard]:
            if shard not in self._readers:
                last = await self._store.command("XREVRANGE", KEYS["events"].at(shard), "+", "-", "COUNT", 1)
                self._readers[shard] = asyncio.create_task(
                    self._read(shard, last[0][0] if last else "0-0"), name="events"
                )

    def _end(self, shard: int) -> None:
        if reader := self._readers.pop(shard, None):
            reader.cancel()

    async def _read(self, shard: int, last: str) -> None:
        name, ours = KEYS["events"].at(shard), asyncio.current_task()
        while self._readers.get(shard) is ours:  # a cancellation alone may be swallowed (core.redis.cancel_and_wait)
            try:
                found = await self._store.redis.xread({name: last}, count=_COUNT, block=_BLOCK_MS)
            except (RedisError, OSError, TimeoutError, StoreError) as fault:
                if self._readers.get(shard) is not ours:  # redis-py makes a lost connection of it when we end
                    return
                log.warning("events not read, again in %s s: %s", _PAUSE, fault)
                await asyncio.sleep(_PAUSE)
                self._tell_all(shard)
                continue
            for entry_id, fields in entries(found):
                last = entry_id
                self._tell(shard, fields)

    def _tell(self, shard: int, fields: Mapping[str, str]) -> None:
        hearing = self._listeners[shard].get(fields["history"])
        if hearing:
            entry = _entry(fields)
            for hear in list(hearing):
                hear(entry)

    def _tell_all(self, shard: int) -> None:
        for hearing in list(self._listeners[shard].values()):
            for hear in list(hearing):
                hear(None)


def _entry(fields: Mapping[str, str]) -> HistoryEvent:
    numbers = int(fields["version"]), int(fields["reported"])
    return HistoryEvent(fields["event"], fields["state"], *numbers, fields["finished"] == "1", fields["changes"])
