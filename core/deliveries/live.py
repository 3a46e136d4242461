"""Changes for open consoles: one reader of the event streams and one poll per process, for all of them.

    events:{s} ─▶ EventStream ─┐
    counts of the queue, 1/s ──┴▶ a ring of the last changes ─▶ what each console may see, at most 4 times a second

Guarantee: no change is missed from the moment `follow` is entered, or from `after` on; where that cannot be guaranteed
the console gets `reread`. A change says only what has changed; the console reads it again, with its own rights.
Nothing is read while no console is open.
"""

import asyncio
import secrets
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial

import msgspec
from msgspec import Struct

from core.deliveries.events import EventStream, HistoryEvent
from core.errors import StoreError
from core.model.history_key import HistoryKey
from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.keys import KEYS
from core.redis.store import Store

TOPICS = ("deliveries", "queue", "jobs", "processes", "runs")
REREAD = "reread"
_KEPT = 2000
_PAUSE = 0.25
"""Seconds between two deliveries of changes to one console."""
_POLL = 1.0
_TUBES = {"jobs": "jobs.", "runs": "events"}
"""Topic → the prefix of the tubes whose changes belong to it. A run goes on when the task of its event does."""
_PROCESS = "a process "
"""The prefix of counts that stand for processes: the ms at which its state began, and the faulty parts."""


@dataclass(frozen=True, slots=True)
class LiveChange:
    """`number` grows by one with each change in this process. `key`: the delivery, for the topic deliveries."""

    number: int
    topic: str
    tenant: str = ""
    key: HistoryKey | None = None
    state: str = ""
    version: int = 0


class LiveEvents:
    """One per process."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._events = EventStream(store)
        self._changes: deque[LiveChange] = deque(maxlen=_KEPT)
        self._number = 0
        self._epoch = ""
        self._open: set[asyncio.Event] = set()
        self._ready = asyncio.Event()
        self._reading: asyncio.Task[None] | None = None

    async def close(self) -> None:
        if self._reading:
            await cancel_and_wait(self._reading)
        await self._events.close()

    @asynccontextmanager
    async def follow(
        self, topics: Collection[str], sees: Callable[[LiveChange], bool], after: str | None
    ) -> AsyncIterator[AsyncGenerator[tuple[str, LiveChange], None]]:
        """Yield a generator of the changes of these topics that `sees` lets pass, each with its id; of several changes
        of one delivery only the latest. `after`: the id to resume behind; None: from the moment the block is entered.
        """
        async with self._opened() as changed:
            yield self._follow(self._number if after is None else self._position(after), topics, sees, changed)

    async def _follow(
        self, position: int, topics: Collection[str], sees: Callable[[LiveChange], bool], changed: asyncio.Event
    ) -> AsyncGenerator[tuple[str, LiveChange], None]:
        while True:
            changed.clear()
            found, position = self._since(position, topics, sees), self._number
            for change in found:
                yield f"{self._epoch}-{change.number}", change
            await changed.wait()
            await asyncio.sleep(_PAUSE)

    def _position(self, after: str) -> int:
        """Return the number of an id; -1 if it is of another process or time."""
        epoch, _, number = after.partition("-")
        is_known = epoch == self._epoch and number.isascii() and number.isdigit() and len(number) < 19
        return int(number) if is_known and int(number) <= self._number else -1

    def _since(self, position: int, topics: Collection[str], sees: Callable[[LiveChange], bool]) -> list[LiveChange]:
        oldest = self._changes[0].number if self._changes else self._number + 1
        if position + 1 < oldest:
            return [LiveChange(self._number, REREAD)]
        new = [change for change in self._changes if change.number > position]
        if any(change.topic == REREAD for change in new):
            return [LiveChange(self._number, REREAD)]
        latest = {(one.topic, one.key): one for one in new if one.topic in topics and sees(one)}
        return sorted(latest.values(), key=lambda one: one.number)

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[asyncio.Event]:
        """Let this process read within the block, for this console and all others."""
        changed = asyncio.Event()
        self._open.add(changed)
        try:
            if self._reading is None:
                self._ready = asyncio.Event()
                self._epoch, self._reading = secrets.token_hex(4), asyncio.create_task(self._read(self._ready))
                self._changes.clear()
            await self._ready.wait()
            yield changed
        finally:
            self._open.discard(changed)
            if not self._open and self._reading is not None:
                self._reading.cancel()
                self._reading = None

    async def _read(self, ready: asyncio.Event) -> None:
        """Read until cancelled. While the store is away no change is sent; then all consoles read again."""
        while True:
            with suppress(StoreError):
                # A subscriber of its own: that of the reader before may still have to be taken away.
                async with self._events.subscribe_all(partial(self._on_event)):
                    ready.set()
                    await self._poll()
            await asyncio.sleep(_POLL)
            self._on_event(None)

    async def _poll(self) -> None:
        counts = await self._counts()
        while True:
            await asyncio.sleep(_POLL)
            counts = self._compare(counts, await self._counts())

    def _on_event(self, event: HistoryEvent | None) -> None:
        self._number += 1
        if event is None:
            self._publish(LiveChange(self._number, REREAD))
            return
        key = HistoryKey.of(event.shard, event.history)
        self._publish(LiveChange(self._number, "deliveries", event.tenant, key, event.state, event.version))

    async def _counts(self) -> dict[str, str] | None:
        """Return the counts of all tubes; None while the store is away."""
        try:
            found: dict[str, str] = {}
            for shard in range(self._store.shards):
                for name in ("states", "counters"):
                    counts = await self._store.command("HGETALL", KEYS[name].at(shard))
                    found |= {f"{field} {name} {shard}": value for field, value in counts.items()}
            processes = await self._store.command("HGETALL", KEYS["processes"].at(0))
            found |= {f"{_PROCESS}{process}": _state(entry) for process, entry in processes.items()}
        except StoreError:
            return None
        return found

    def _compare(self, old: dict[str, str] | None, new: dict[str, str] | None) -> dict[str, str] | None:
        if new is None or old == new:
            return new
        for topic in [REREAD] if old is None else _topics_of(old, new):
            self._number += 1
            self._publish(LiveChange(self._number, topic))
        return new

    def _publish(self, change: LiveChange) -> None:
        self._changes.append(change)
        for changed in self._open:
            changed.set()


class _ProcessEntry(Struct):
    since: int
    faulty_parts: msgspec.Raw = msgspec.Raw()


def _state(entry: str) -> str:
    """Return what changes in the entry of a process when more than its beat does."""
    found = msgspec.json.decode(entry, type=_ProcessEntry)
    return f"{found.since} {bytes(found.faulty_parts).decode()}"


def _topics_of(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """Return the topics of what differs between two polls."""
    changed = [field for field in {**old, **new} if old.get(field) != new.get(field)]
    processes = [field for field in changed if field.startswith(_PROCESS)]
    of_tubes = {topic: any(field.startswith(tube) for field in changed) for topic, tube in _TUBES.items()}
    happened = {"queue": len(changed) > len(processes), **of_tubes, "processes": bool(processes)}
    return [topic for topic, is_new in happened.items() if is_new]
