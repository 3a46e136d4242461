"""Runs that wait for a delivery longer than a worker should: they are parked, and woken when it ends.

A parked run is the suspended task of its event, a member of a sorted set and, in each process, a line of memory. Any
process wakes it: each knows all parked runs, those of others after a few seconds. The ends of deliveries come from the
streams of events, which a process reads in one command, in a cluster in one for each shard.

Guarantees: each watched delivery that ends is reported, once or more often: by its event, also if that came shortly
before it was watched, and by readings after a lost connection and, rarely, at any time. Nothing is polled meanwhile. A
delivery that was ordered before this process began to read is read at the start. A run is taken out of the set after it
was woken, so a crash between the two wakes it twice.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import NamedTuple

from core.deliveries.tracker import HistoryEvent, history_event, read_change
from core.errors import StoreError
from core.model.history import HistoryChange, OutcomeRecord
from core.model.history_key import HistoryKey
from core.queue import QueueClient
from core.redis.keys import KEYS
from core.redis.store import Store
from core.redis.stream_reader import StreamReader
from scenarios.context import Asking
from scenarios.execution.runs import Runs, StoredRun, Waits, WaitsFor, shard_of
from scenarios.execution.versions import Versions

log = logging.getLogger(__name__)

_RARELY = 600.0
"""Seconds between two readings of all watched deliveries."""

_RETRY = 1.0
_READ_AT_ONCE = 200

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
            reader = await self._reader()
            group.create_task(reader.run(), name="ends of deliveries")
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
        for start in range(0, len(waiting), _READ_AT_ONCE):
            await asyncio.gather(*(self._check_one(key) for key in waiting[start : start + _READ_AT_ONCE]))

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

    async def _reader(self) -> StreamReader:
        shards = {KEYS["events"].at(shard): shard for shard in range(self._store.shards)}
        newest = await self._store.command_each("XREVRANGE", list(shards), "+", "-", "COUNT", 1)
        last = {stream: found[0][0] if found else "0-0" for stream, found in zip(shards, newest, strict=True)}

        def on_entry(stream: str, _: str, fields: Mapping[str, str]) -> None:
            self._on_event(HistoryKey.of(shards[stream], fields["history"]), history_event(fields))

        return StreamReader(self._store, last, on_entry, self._check_now.set)

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


_ADOPT_EVERY = 5.0
"""Seconds between two searches for runs that other processes have parked."""

_ALL_EVERY = 60
"""At every search of this number all parked runs are read: a new primary may have a clock that is behind."""

_PAGE = 1000
_WOKEN_AT_ONCE = 100


class Parked(NamedTuple):
    """A run that waits for a delivery. `task`: that of its event, which is woken."""

    run: str
    task: str
    delivery: HistoryKey

    def __str__(self) -> str:
        """Return the member of the sorted set."""
        return f"{self.run} {self.task} {self.delivery}"

    @classmethod
    def read(cls, member: str) -> "Parked":
        run, task, delivery = member.split(" ", 2)
        return cls(run, task, HistoryKey.parse(delivery))


class Parking:
    """One per process. `adopt_every`: seconds."""

    def __init__(
        self,
        store: Store,
        queue: QueueClient,
        ends: DeliveryEnds,
        adopt_every: float = _ADOPT_EVERY,
    ) -> None:
        self._store = store
        self._runs = Runs(store, Versions(store))
        self._queue = queue
        self._ends = ends
        self._adopt_every = adopt_every
        self._watched: dict[Parked, Callable[[], None]] = {}
        self._ended: asyncio.Queue[Parked] = asyncio.Queue()
        self._newest = dict.fromkeys(range(store.shards), 0)

    async def park(self, stored: StoredRun, waits: Waits) -> None:
        """Wake the run when one of the deliveries ends, also after the death of this process."""
        await self._runs.park(stored, waits)
        deliveries = [delivery for one in waits.values() if (delivery := _delivery(one))]
        for delivery in deliveries:
            self._watch(Parked(stored.id, stored.task, delivery))
        await self._ends.check(deliveries)

    async def wake(self, task: str) -> None:
        """Have the run of an event driven on, at once or when its task is suspended."""
        await self._queue.queue.wake(task)

    async def run(self) -> None:
        """Wake runs until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._adopt_all(), name="adopts parked runs")
            group.create_task(self._wake_all(), name="wakes parked runs")

    def _watch(self, parked: Parked) -> None:
        if parked not in self._watched:
            self._watched[parked] = self._ends.watch(parked.delivery, partial(self._on_end, parked))

    def _on_end(self, parked: Parked) -> None:
        if stop := self._watched.pop(parked, None):
            stop()
            self._ended.put_nowait(parked)

    async def wake_ended(self) -> bool:
        """Wake the runs of which it is known that a delivery has ended; return whether there are any."""
        page = [self._ended.get_nowait() for _ in range(min(self._ended.qsize(), _WOKEN_AT_ONCE))]
        await asyncio.gather(*(self._wake_parked(parked) for parked in page))
        return bool(page)

    async def _wake_all(self) -> None:
        while True:
            first = await self._ended.get()
            await asyncio.gather(self._wake_parked(first), self.wake_ended())

    async def _wake_parked(self, parked: Parked) -> None:
        """Wake one run; try again until the store can be reached."""
        while True:
            try:
                await self.wake(parked.task)
                await self._store.command("ZREM", KEYS["parked"].at(shard_of(parked.run) or 0), str(parked))
                return
            except StoreError as fault:
                log.warning("run %s not woken, again in %s s: %s", parked.run, _RETRY, fault)
                await asyncio.sleep(_RETRY)

    async def _adopt_all(self) -> None:
        for look in count():
            if look % _ALL_EVERY == 0:
                self._newest = dict.fromkeys(self._newest, 0)
            try:
                await asyncio.gather(*map(self._adopt_shards, self._store.in_one_command(list(self._newest))))
            except StoreError as fault:
                log.warning("parked runs not read: %s", fault)
            await asyncio.sleep(self._adopt_every)

    async def _adopt_shards(self, shards: Sequence[int]) -> None:
        if await self._store.command("EXISTS", *(KEYS["parked"].at(shard) for shard in shards)):
            await asyncio.gather(*map(self._adopt_shard, shards))

    async def _adopt_shard(self, shard: int) -> None:
        while await self._adopt(shard) == _PAGE:
            pass

    async def _adopt(self, shard: int) -> int:
        """Watch a page of the runs that were parked since the last search. Returns how many were read."""
        since = self._newest[shard]
        rows = await self._store.command(
            *("ZRANGEBYSCORE", KEYS["parked"].at(shard), since, "+inf", "WITHSCORES", "LIMIT", 0, _PAGE)
        )
        found = [Parked.read(member) for member, _ in _pairs(rows)]
        new = [parked for parked in found if parked not in self._watched]
        for parked in new:
            self._watch(parked)
        await self._ends.check(parked.delivery for parked in new)
        self._newest[shard] = _next_start(since, [score for _, score in _pairs(rows)])
        return len(found)


def _delivery(waits_for: WaitsFor) -> HistoryKey | None:
    """Return the delivery whose end a step waits for, also that of a question."""
    if isinstance(waits_for, Asking):
        return waits_for.under_way
    return waits_for.delivery if waits_for else None


def _next_start(since: int, scores: list[int]) -> int:
    """Return where the next search begins: with the newest run, because others may have been parked in the same ms."""
    if len(scores) == _PAGE:
        return max(scores[-1], since + 1)
    return scores[-1] if scores else since


def _pairs(rows: list[list[str]]) -> list[tuple[str, int]]:
    return [(member, int(float(score))) for member, score in rows]
