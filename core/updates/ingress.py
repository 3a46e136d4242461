"""The way in of a provider's updates, as events for the scenarios of a bot.

The receiver of updates from a provider calls `Ingress.put`. It is the same object over polling, a webhook and a
gateway, and in every process. The parts of one event that come in several updates, the photos of an album or two
notices of one join (C-14), are gathered first, and so are the messages that somebody forwards at once to a thread
(R-24):

    add ─▶ the part in a hash of Redis, and a task that is due after the window ─▶ the task of the last part: merge, put

Guarantees: whatever processes receive the parts and whenever they die, the parts become one event, put once, a second
after the last one. A part that is added again changes nothing. A part that comes later, even while the others are
merged, becomes an event of its own.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from core.directory.preferences import Reachability
from core.errors import Invalid
from core.model.clock import Backoff, in_ms, to_ms
from core.queue import Attempt, NewTask, QueueClient, Tube, Worker
from core.redis.keys import KEYS
from core.redis.store import Store
from core.updates.events import Arrival, Event, Events, encode

log = logging.getLogger(__name__)

TUBE = "events.parts"
GATHERED = "gathered"
"""The kind of the tasks that are due after the window."""
WINDOW = timedelta(seconds=1)

_KEPT = timedelta(hours=2)
_EXPIRES = timedelta(hours=1)
_LEASE = timedelta(seconds=5)
_BACKOFF = Backoff(timedelta(milliseconds=500), timedelta(seconds=20))

Merge = Callable[[str, Sequence[Event]], Event]
"""Makes one event of the parts with this name. The same parts give the same event."""
MAX_AGE = timedelta(hours=1)
"""A person who waits for an hour no longer expects an answer."""
Raw = Mapping[str, Any]
"""An update as the provider has sent it."""
Read = Callable[[Raw, datetime], Arrival | None]
"""Reads an update, given the time; returns None if it is no event. Never raises."""


class _Part(msgspec.Struct, frozen=True):
    """A part that waits. `due`: the ms at which its task is due."""

    due: int
    event: dict[str, object]


class _Timer(msgspec.Struct, frozen=True):
    """The body of a task."""

    source: str
    name: str
    due: int


class Gathering:
    """One per process, channel and tenant; the worker of any puts the events of all tenants. `source`: as in
    `Events.put`. `tube`: another one, whose worker calls `handle` for tasks of the kind GATHERED; its events are
    replies.
    """

    def __init__(
        self, store: Store, client: QueueClient, tenant: str, events: Events, merge: Merge, *, tube: str = TUBE
    ) -> None:
        self._tube = tube
        self._store = store
        self._client = client
        self._tenant = tenant
        self._events = events
        self._merge = merge

    async def open(self) -> None:
        await self._client.tubes.create(Tube(TUBE, expires=_EXPIRES, backoff=_BACKOFF))

    async def add(self, source: str, name: str, part: Event) -> bool:
        """Add a part of the event `name`; returns False for a repeat. Raises Invalid EVENT_…; StoreError: then it must
        be repeated.
        """
        encode({**part, "gathered_as": name})
        key, field = self._key(source, name), str(part["id"])
        due = self._store.now() + WINDOW
        stored = msgspec.json.encode(_Part(to_ms(due), dict(part))).decode()
        is_new = await self._store.write_lasting(in_ms(_KEPT), "HSETNX", key, field, stored)
        timer = msgspec.json.encode(_Timer(source, name, to_ms(due))).decode()
        task = NewTask(timer, self._tenant, lane=_lane(source, name), due=due, kind=GATHERED)
        is_put = await self._client.queue.put_once(self._tube, task, source=f"parts.{source}", name=f"{name} {field}")
        if is_new and not is_put:  # it was merged before
            await self._store.command("HDEL", key, field)
        return is_put

    def worker(self) -> Worker:
        """Return a worker that puts the events, to `run()` and to `stop()`."""
        return self._client.worker(TUBE, self.handle, lease=_LEASE)

    async def handle(self, attempt: Attempt) -> None:
        """Put the event if this is the task of the last part. Which parts it has is saved before, so that an attempt
        that is made again after a crash puts the same event, and takes no part that has come meanwhile.
        """
        timer = msgspec.json.decode(attempt.body, type=_Timer)
        key = self._key(timer.source, timer.name)
        stored = await self._store.command("HGETALL", key)
        waiting = {name: msgspec.json.decode(one, type=_Part) for name, one in stored.items()}
        names = _saved(attempt) or _due_parts(waiting, timer)
        if not names or not await attempt.save(msgspec.json.encode(names).decode()):
            return
        await self._put(attempt.task.tenant, timer, [waiting[name].event for name in names if name in waiting])
        await self._store.command("HDEL", key, *names)

    async def _put(self, tenant: str, timer: _Timer, parts: Sequence[Event]) -> None:
        if not parts:
            return
        events = self._events if tenant == self._tenant else Events(self._client, tenant)
        try:
            if self._tube == TUBE:
                await events.put(timer.source, self._merge(timer.name, parts))
            else:
                await _put_replies(events, [self._merge(timer.name, parts)], parts)
        except Invalid as refusal:
            log.warning("%s of %s is ignored: %s %s", timer.name, timer.source, refusal.code, refusal)

    def _key(self, source: str, name: str) -> str:
        return KEYS["gathered"].at(self._store.shard_of(_lane(source, name)), source, name)


async def _put_replies(events: Events, merged: Sequence[Event], parts: Sequence[Event]) -> None:
    """Put a reply, or its parts if it is too large. Raises Invalid EVENT_…"""
    try:
        encode(merged[0])
    except Invalid:
        merged = parts
    for one in merged:
        await events.put_reply(one)


def merge_forwards(name: str, parts: Sequence[Event]) -> Event:
    """Return one event of messages that were forwarded at once, in their order."""
    ordered = sorted(parts, key=lambda part: (str(part.get("event_date") or ""), _number_of(part), str(part["id"])))
    texts = [str(part.get("event_text") or "").strip() for part in ordered]
    added = {
        "event_text": "\n\n".join(filter(None, texts)),
        "attachments": [one for part in ordered for one in part.get("attachments") or ()],
    }
    return {**ordered[0], **added, "id": f"forwards.{ordered[0]['id']}"[:128]}


def _number_of(part: Event) -> int:
    number = part.get("message_id")
    return number if isinstance(number, int) else 0


def _lane(source: str, name: str) -> str:
    return f"{source} {name}"


def _saved(attempt: Attempt) -> list[str]:
    """Return the names of the parts that an interrupted attempt has chosen."""
    return msgspec.json.decode(attempt.checkpoint, type=list[str]) if attempt.checkpoint else []


def _due_parts(waiting: Mapping[str, _Part], timer: _Timer) -> list[str]:
    """Return the names of the parts that wait; none if this is not the task of the last one."""
    return list(waiting) if all(part.due <= timer.due for part in waiting.values()) else []


class Ingress:
    """Puts the updates of one channel into the queue. `source`: the bot or gateway in which ids are unique. `read`: the
    event, None for an update that is none. `gathering`: joins the parts of one event, without it each part is an event.
    `reachability`: notes who can be written to. What happened more than `max_age` before the start of the process is
    ignored (C-16).
    """

    def __init__(
        self,
        events: Events,
        source: str,
        read: Read,
        *,
        gathering: Gathering | None = None,
        reachability: Reachability | None = None,
        max_age: timedelta | None = None,
    ) -> None:
        self._events = events
        self._source = source
        self._read = read
        self._gathering = gathering
        self._reachability = reachability
        self._oldest = None if max_age is None else datetime.now(UTC) - max_age

    async def open(self) -> None:
        for part in (self._events, self._gathering):
            if part is not None:
                await part.open()

    async def put(self, raw: Raw) -> bool:
        """Put an update. Returns False if it is no event. An event that is too old or cannot be stored is only
        logged. Raises StoreError: then the provider must repeat it.
        """
        if self._reachability is not None:
            await self._reachability.note(raw)
        arrival = self._read(raw, datetime.now(UTC))
        if arrival is None:
            return False
        event = arrival.event
        if self._is_too_old(event):
            log.info("update %.40r of %s is ignored: it is of %s", event["id"], event["channel"], event["event_date"])
            return True
        try:
            await self._put(arrival)
        except Invalid as refusal:  # the id is quoted: it may be what cannot be stored
            log.warning("update %.40r of %s is ignored: %s %s", event["id"], event["channel"], refusal.code, refusal)
        return True

    def _is_too_old(self, event: Event) -> bool:
        return self._oldest is not None and datetime.fromisoformat(event["event_date"]) < self._oldest

    async def _put(self, arrival: Arrival) -> None:
        """Put an event, or add it to those that are gathered. Raises Invalid."""
        if arrival.gathered_as and self._gathering is not None:
            await self._gathering.add(self._source, arrival.gathered_as, arrival.event)
            return
        await self._events.put(self._source, arrival.event)
