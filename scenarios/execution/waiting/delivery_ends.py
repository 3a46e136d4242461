"""Notices the end of deliveries: reads the stream of events once per process and shard.

Guarantee: each watched delivery that ends is reported, once or more often: by its event, also if that came shortly
before it was watched, and by readings after a lost connection and, rarely, at any time. Nothing is polled meanwhile. A
delivery that was ordered before this process began to read is read at the start.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from core.deliveries.events import HistoryEvent, history_event
from core.deliveries.tracker import read_change
from core.errors import StoreError
from core.model.history import HistoryChange, OutcomeRecord
from core.model.history_key import HistoryKey
from core.redis.keys import KEYS
from core.redis.store import Store
from core.redis.stream_reader import StreamReader

log = logging.getLogger(__name__)

_RARELY = 600.0
"""Seconds between two readings of all watched deliveries."""

_RETRY = 1.0
_AT_ONCE = 200

_RECENT = 2000
"""Deliveries whose last event is remembered."""

OnEnd = Callable[[], None]


@dataclass(frozen=True, slots=True)
class _Seen:
    """The state of a delivery as far as events have shown it. `change`: the last outcome that came alone."""

    change: HistoryChange | None = None
    has_ended: bool = False


class DeliveryEnds:
    """One per process. `run` reads until it is cancelled; `ready` is set when no later event is missed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._watched: dict[HistoryKey, dict[int, OnEnd]] = {}
        self._recent: OrderedDict[HistoryKey, _Seen] = OrderedDict()
        self._numbers = 0
        self._check_now = asyncio.Event()
        self.ready = asyncio.Event()

    async def run(self) -> None:
        """Read the ends of deliveries in all shards. Raises StoreError if the store cannot be reached at the start."""
        async with asyncio.TaskGroup() as group:
            for shard in range(self._store.shards):
                reader = await self._reader(shard)
                group.create_task(reader.run(), name=f"ends of deliveries in shard {shard}")
            self.ready.set()
            group.create_task(self._read_again(), name="reads deliveries again")

    def watch(self, key: HistoryKey, on_end: OnEnd) -> Callable[[], None]:
        """Call `on_end` when the delivery ends; return a function that stops it. It must not block."""
        self._numbers += 1
        number = self._numbers
        self._watched.setdefault(key, {})[number] = on_end
        if (seen := self._recent.get(key)) and seen.has_ended:
            on_end()
        return partial(self._unwatch, key, number)

    def outcome(self, key: HistoryKey) -> OutcomeRecord | None:
        """Return the outcome with which a delivery to one recipient has ended, if its events have just been read."""
        seen = self._recent.get(key)
        return seen.change.outcome if seen and seen.has_ended and seen.change else None

    async def check(self, keys: Iterable[HistoryKey]) -> None:
        """Report those of the deliveries that have ended, or are not there any more. Raises StoreError."""
        waiting = list(keys)
        for start in range(0, len(waiting), _AT_ONCE):
            await asyncio.gather(*(self._check_one(key) for key in waiting[start : start + _AT_ONCE]))

    async def check_watched(self) -> None:
        """Report those of all watched deliveries that have ended. Raises StoreError."""
        await self.check(self._watched)

    async def _check_one(self, key: HistoryKey) -> None:
        fields = await self._store.command("HMGET", KEYS["history"].at(key.shard, key.suffix), "state", "finished")
        if fields[0] is None or fields[1] is not None:
            self._report(key)

    def _unwatch(self, key: HistoryKey, number: int) -> None:
        callbacks = self._watched.get(key, {})
        callbacks.pop(number, None)
        if not callbacks:
            self._watched.pop(key, None)

    def _report(self, key: HistoryKey) -> None:
        for on_end in list(self._watched.get(key, {}).values()):
            on_end()

    async def _reader(self, shard: int) -> StreamReader:
        stream = KEYS["events"].at(shard)
        newest = await self._store.command("XREVRANGE", stream, "+", "-", "COUNT", 1)
        last = newest[0][0] if newest else "0-0"

        def on_entry(_: str, fields: Mapping[str, str]) -> None:
            self._on_event(HistoryKey.of(shard, fields["history"]), history_event(fields))

        return StreamReader(self._store, stream, last, on_entry, self._check_now.set)

    def _on_event(self, key: HistoryKey, event: HistoryEvent) -> None:
        seen = self._recent.pop(key, _Seen())
        is_one = event.changes and "\n" not in event.changes
        change = read_change(event.changes, event) if is_one else None
        latest = change if change and not change.reminder else seen.change
        self._recent[key] = _Seen(latest, event.finished)
        if len(self._recent) > _RECENT:
            self._recent.popitem(last=False)
        if event.finished:
            self._report(key)

    async def _read_again(self) -> None:
        pause = _RARELY
        while True:
            try:
                await asyncio.wait_for(self._check_now.wait(), pause)
            except TimeoutError:
                pass
            self._check_now.clear()
            try:
                await self.check_watched()
                pause = _RARELY
            except StoreError as fault:
                log.warning("deliveries not read, again in %s s: %s", _RETRY, fault)
                pause = _RETRY
