"""Changes for open consoles: one reader of the event streams and one poll per process, for all of them.

    events:{s} ─▶ EventStream ─┐
    counts of the queue, 1/s ──┤
    threads:{s}:events, 1/s  ──┴▶ a ring of the last changes ─▶ what each console may see, at most 4 times a second

Guarantee: no change is missed from the moment `follow` is entered, or from `after` on; where that cannot be guaranteed
the console gets `reread`. A change says only what has changed; the console reads it again, with its own rights.
Nothing is read while no console is open.
"""

import asyncio
import secrets
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial

import msgspec
from msgspec import Struct

from core.deliveries.tracker import EventStream, HistoryEvent
from core.errors import StoreError
from core.model.history_key import HistoryKey
from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.keys import KEYS
from core.redis.store import Store
from core.redis.stream_reader import entry_fields

TOPICS = ("deliveries", "queue", "jobs", "processes", "runs", "reply")
REREAD = "reread"
_KEPT = 2000
_PAUSE = 0.25
"""Seconds between two deliveries of changes to one console."""
_POLL = 1.0
_READ = 1000
"""Messages of threads that a poll reads of a shard: as many as their stream surely keeps."""
_TUBES = {"jobs": "jobs.", "runs": "events"}
"""Topic → the prefix of the tubes whose changes belong to it. A run goes on when the task of its event does."""
_PROCESS = "a process "
"""The prefix of counts that stand for processes: when the state began, when the provider of the account has answered,
and the faulty parts."""


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message that was added to a thread. `inbox`: as text. `side`: person or staff, who has written it;
    answering: nothing was added, a reader has begun to answer, or ends it.
    """

    thread: str
    inbox: str
    number: int
    side: str


@dataclass(frozen=True, slots=True)
class LiveChange:
    """`number` grows by one with each change in this process. `key`: the delivery, for the topic deliveries. `message`:
    for the topic reply.
    """

    number: int
    topic: str
    tenant: str = ""
    key: HistoryKey | None = None
    state: str = ""
    version: int = 0
    message: NewMessage | None = None

    @property
    def subject(self) -> HistoryKey | str | None:
        return self.message.thread if self.message else self.key


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
        of one delivery or thread only the latest. `after`: the id to resume behind; None: from the moment the block is
        entered.
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
        latest = {(one.topic, one.subject): one for one in new if one.topic in topics and sees(one)}
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
                    newest = await self._newest_messages()
                    ready.set()
                    await self._poll(newest)
            await asyncio.sleep(_POLL)
            self._on_event(None)

    async def _poll(self, newest: Sequence[str] | None) -> None:
        counts = await self._counts()
        while True:
            await asyncio.sleep(_POLL)
            counts = self._compare(counts, await self._counts())
            newest = await self._read_messages(newest)

    async def _newest_messages(self) -> list[str]:
        """Return the id of the last entry of each shard's stream of thread events. Raises StoreError."""
        keys = self._store.keys_of_shards("thread_events")
        entries = await self._store.command_each("XREVRANGE", keys, "+", "-", "COUNT", 1)
        return [found[0][0] if found else "0-0" for found in entries]

    async def _read_messages(self, after: Sequence[str] | None) -> list[str] | None:
        """Publish the messages of threads behind these entries; return the last ones. None: the store is, or was, away;
        the consoles read again when it is back.
        """
        try:
            if after is None:
                newest = await self._newest_messages()
                self._on_event(None)
                return newest
            return await asyncio.gather(*(self._read_shard(shard, last) for shard, last in enumerate(after)))
        except StoreError:
            return None

    async def _read_shard(self, shard: int, last: str) -> str:
        key = KEYS["thread_events"].at(shard)
        entries = await self._store.command("XRANGE", key, f"({last}", "+", "COUNT", _READ)
        if len(entries) == _READ:  # more may have been trimmed
            self._on_event(None)
        for _, flat in entries:
            self._on_message(entry_fields(flat))
        return entries[-1][0] if entries else last

    def _on_message(self, fields: Mapping[str, str]) -> None:
        self._number += 1
        message = NewMessage(fields["thread"], fields["inbox"], int(fields["number"]), fields["side"])
        self._publish(LiveChange(self._number, "reply", fields["tenant"], message=message))

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
            for name in ("states", "counters"):
                read = await self._store.command_each("HGETALL", self._store.keys_of_shards(name))
                for shard, counts in enumerate(read):
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
    answered: int = 0
    faulty_parts: msgspec.Raw = msgspec.Raw()


def _state(entry: str) -> str:
    """Return what changes in the entry of a process when more than its beat does."""
    found = msgspec.json.decode(entry, type=_ProcessEntry)
    return f"{found.since} {found.answered} {bytes(found.faulty_parts).decode()}"


def _topics_of(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """Return the topics of what differs between two polls."""
    changed = [field for field in {**old, **new} if old.get(field) != new.get(field)]
    processes = [field for field in changed if field.startswith(_PROCESS)]
    of_tubes = {topic: any(field.startswith(tube) for field in changed) for topic, tube in _TUBES.items()}
    happened = {"queue": len(changed) > len(processes), **of_tubes, "processes": bool(processes)}
    return [topic for topic, is_new in happened.items() if is_new]
