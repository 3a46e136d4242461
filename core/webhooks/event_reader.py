"""Reads the event stream of one shard and puts a task into the tube `webhooks` for each message.

The position in the stream is kept in Redis and moved after the tasks were put: a process that is killed in between puts
some of them again, with the same message ids, and loses none. One process reads a shard at a time; a process that has
lost this right cannot move the position any more.

A webhook is *behind* if entries were trimmed before they were read, if too much waits for it already, or while it is
disabled. Its messages are then not made from the stream, but from the histories, a bounded number at a time
(`core.webhooks.catch_up`).
"""

import logging
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b
from typing import Any
from zlib import crc32

from core.deliveries.histories.reader import HistoryReader
from core.deliveries.tracker import HistoryEvent, history_event, read_answer, read_change
from core.errors import NotFound
from core.model.history_key import HistoryKey
from core.queue import NewTask, Queue
from core.redis.constants import EVENTS_KEPT
from core.redis.store import Store
from core.redis.stream_reader import entry_fields
from core.webhooks.catch_up import CatchUp, Mark
from core.webhooks.registry import Webhooks
from core.webhooks.webhook import (
    TUBE,
    EventType,
    Webhook,
    WebhookMessage,
    answer_message,
    closed_message,
    finished_message,
    is_outcome,
    outcome_message,
)

log = logging.getLogger(__name__)

LEASE_MS = 5000
_PAGE = 100
# The functions trim the stream to about EVENTS_KEPT entries, and to one minute if an entry is large.
_SURELY_KEPT = EVENTS_KEPT * 9 // 10
_SURELY_KEPT_MS = 55_000
_STILL_READING_MS = 20_000
# More attempts than there are in a day: the sender decides when a message is given up.
_ATTEMPTS = 100_000
# Messages of one webhook that are sent at the same time.
_LANES = 16
_LAST = 2**64 - 1
_OF_DELIVERY = (EventType.FINISHED, EventType.CLOSED)

EntryId = tuple[int, int]


@dataclass(frozen=True, slots=True)
class ReadingLimits:
    """Messages of one webhook. `pending`: how many may wait. `kept_dead`: of how many dead letters, if there
    is no more room.
    """

    pending: int = 10_000
    kept_dead: int = 5_000


@dataclass(slots=True)
class _Page:
    """The result of one read. `behind`: webhook id → the last message that was put for it."""

    now: int
    oldest: str
    length: int
    entry: str
    read: int
    behind: dict[str, Mark]
    entries: Sequence[tuple[str, Mapping[str, str], str]]
    changes: dict[str, str] = field(default_factory=dict)


class EventReader:
    """Reads one shard, as long as this process has the right to."""

    def __init__(self, store: Store, shard: int, queue: Queue, webhooks: Webhooks, limits: ReadingLimits) -> None:
        self._store = store
        self._shard = shard
        self._queue = queue
        self._webhooks = webhooks
        self._limits = limits
        self._owner = secrets.token_hex(8)
        self._histories = HistoryReader(store)
        self._catch_up = CatchUp(store, shard, self._still_reads)

    async def step(self) -> bool:
        """Put the messages of the next entries. Returns whether there may be more to do at once."""
        page = await self._read(LEASE_MS)
        if page is None:
            return False
        webhooks = await self._webhooks.all()  # read after the entries: none is missing that existed before them
        if not webhooks:
            return False
        if await self._skip_the_past(page, webhooks):
            return True
        if self._may_have_missed(page):
            self._fall_behind(page, webhooks)
        await self._put_entries(page, webhooks)
        if await self._advance(page) and len(page.entries) < _PAGE:
            return await self._catch_up_one(page, webhooks)
        return len(page.entries) == _PAGE

    async def release(self) -> None:
        """Let another process read at once."""
        await self._read(0)

    async def _read(self, lease_ms: int) -> _Page | None:
        """Read a page; return None if another process reads."""
        reply = await self._store.run("read_events", self._shard, self._owner, lease_ms, _PAGE)
        if not reply:
            return None
        now, oldest, length, stored, *rows = reply
        position = entry_fields(stored)
        behind = {name[7:]: Mark.read(text) for name, text in position.items() if name.startswith("behind:")}
        entries = [(entry_id, entry_fields(flat), tenant) for entry_id, flat, tenant in rows]
        return _Page(now, oldest, length, position.get("entry", ""), int(position.get("read", 0)), behind, entries)

    async def _still_reads(self) -> bool:
        """Extend the right to read."""
        return await self._read(LEASE_MS) is not None

    async def _skip_the_past(self, page: _Page, webhooks: Sequence[Webhook]) -> bool:
        """Move the position to the creation of the oldest webhook if no webhook wants what is before it."""
        earliest = webhooks[0].created
        start = f"{earliest - 1}-{_LAST}"
        if entry_id(page.entry) >= entry_id(start):
            return False
        return await self._write({"entry": start, "read": str(earliest)})

    # what was missed

    def _may_have_missed(self, page: _Page) -> bool:
        """Return whether entries behind the position may have been trimmed. A process that reads all the time misses
        none."""
        if page.oldest and entry_id(page.oldest) <= entry_id(page.entry):
            return False
        return page.now - page.read >= _SURELY_KEPT_MS or page.length >= _SURELY_KEPT

    def _fall_behind(self, page: _Page, webhooks: Sequence[Webhook]) -> None:
        log.warning("webhooks: events after %s may have been trimmed; they are read from the histories", page.entry)
        for webhook in webhooks:
            self._mark_behind(page, webhook, entry_id(page.entry)[0])

    def _mark_behind(self, page: _Page, webhook: Webhook, ms: int) -> None:
        if webhook.id not in page.behind:
            mark = page.behind[webhook.id] = Mark(max(ms - 2, webhook.created - 1))  # 2: clocks are read twice
            page.changes[f"behind:{webhook.id}"] = str(mark)

    async def _catch_up_one(self, page: _Page, webhooks: Sequence[Webhook]) -> bool:
        """Put the next messages of one webhook that is behind and has room. Returns whether there was one."""
        by_id = {webhook.id: webhook for webhook in webhooks}
        for webhook_id, mark in page.behind.items():
            webhook = by_id.get(webhook_id)
            if webhook is None:
                await self._write({f"behind:{webhook_id}": ""})
            elif await self._has_room(webhook) and not webhook.disabled:
                most = max(1, self._limits.pending // 2)
                messages, last = await self._catch_up.next_messages(webhook, mark, most)
                await self._put({webhook: messages})
                return await self._write({f"behind:{webhook_id}": str(last) if last else ""})
        return False

    async def _has_room(self, webhook: Webhook) -> bool:
        """Return whether at most half of what may wait does."""
        half = self._limits.pending // 2
        if await self._webhooks.pending(webhook.id) <= half:
            return True
        if dropped := await self._webhooks.drop_dead(webhook.id, min(self._limits.kept_dead, half)):
            log.warning("webhook %s: %s dead letters were dropped", webhook.id, dropped)
        return False

    # messages

    async def _put_entries(self, page: _Page, webhooks: Sequence[Webhook]) -> None:
        found: dict[Webhook, list[WebhookMessage]] = {}
        first: dict[str, int] = {}
        for text, fields, tenant in page.entries:
            ms, _ = entry_id(text)
            for webhook in webhooks:
                wanted = webhook.tenant == tenant and self._wants(page, webhook, ms)
                if wanted and (messages := await self._messages(webhook, fields)):
                    first.setdefault(webhook.id, ms)
                    found.setdefault(webhook, []).extend(messages)
        for webhook, messages in list(found.items()):
            waiting = await self._webhooks.pending(webhook.id)
            if waiting + len(messages) > self._limits.pending:
                self._mark_behind(page, webhook, first[webhook.id])
                del found[webhook]
        await self._put(found)

    def _wants(self, page: _Page, webhook: Webhook, ms: int) -> bool:
        """Return whether the webhook gets an event now. A disabled webhook falls behind, so that it misses nothing if
        it is enabled again.
        """
        if ms < webhook.created or webhook.id in page.behind:
            return False
        if webhook.disabled:
            self._mark_behind(page, webhook, ms)
        return not webhook.disabled

    async def _messages(self, webhook: Webhook, fields: Mapping[str, str]) -> list[WebhookMessage]:
        key, event = HistoryKey.of(self._shard, fields["history"]), history_event(fields)
        if event.event in _OF_DELIVERY and event.event in webhook.events:
            return await self._of_delivery(webhook, key, event)
        if event.answer and EventType.ANSWER in webhook.events:
            return [answer_message(webhook, key, read_answer(event))]
        if not event.changes or EventType.OUTCOME not in webhook.events:
            return []
        changes = (read_change(line, event) for line in event.changes.split("\n"))
        return [outcome_message(webhook, key, change) for change in changes if is_outcome(change)]

    async def _of_delivery(self, webhook: Webhook, key: HistoryKey, event: HistoryEvent) -> list[WebhookMessage]:
        """Return the message of the end of a delivery, or of the closing of its question."""
        try:
            summary = await self._histories.summary(key, webhook.tenant)
        except NotFound:  # its retention ended meanwhile
            return []
        if event.event == EventType.CLOSED and (summary.answers is None or not summary.answers.closed_at):
            return []  # it was opened again
        make = closed_message if event.event == EventType.CLOSED else finished_message
        return [make(webhook, summary, event.version)]

    async def _put(self, found: Mapping[Webhook, Sequence[WebhookMessage]]) -> None:
        tasks = [task_of(webhook, message) for webhook, messages in found.items() for message in messages]
        if tasks:
            await self._queue.put_many(TUBE, tasks)

    # the position

    async def _advance(self, page: _Page) -> bool:
        """Store that the page was put. Without entries the position is written now and then."""
        if page.entries:
            page.changes |= {"entry": page.entries[-1][0], "read": str(page.now)}
        elif page.changes or page.now - page.read > _STILL_READING_MS:
            page.changes["read"] = str(page.now)
        return await self._write(page.changes) if page.changes else True

    async def _write(self, changes: Mapping[str, str]) -> bool:
        """Write the positions; return False if this process may not read any more."""
        flat: Iterable[Any] = (word for change in changes.items() for word in change)
        return bool(await self._store.run("advance_events", self._shard, self._owner, *flat))


def entry_id(text: str) -> EntryId:
    """Return the id of a stream's entry as numbers; "" is before all."""
    ms, _, number = text.partition("-")
    return int(ms or 0), int(number or 0)


def task_of(webhook: Webhook, message: WebhookMessage) -> NewTask:
    """Return the task of a message. Messages of one lane are sent one after the other. The lanes let a webhook get some
    at the same time, and keep a slow receiver from occupying more of a process.
    """
    lane = f"{webhook.id}/{crc32(message.subject.encode()) % _LANES}"
    return NewTask(message.body, webhook.tenant, lane, attempts=_ATTEMPTS, user=webhook.id)


async def put_message(
    webhooks: Webhooks, queue: Queue, tenant: str, event: EventType, name: str, at: datetime, data: object
) -> None:
    """Put the message of an event that is not in the event stream, for example of a job, at least once for each webhook
    that wants it. A webhook that is disabled, or for which too much waits, does not get it. `name`: of the event; a
    repeat with the same name has the same `webhook-id`. Messages of a name's first word come in order.
    """
    for webhook in await webhooks.of_tenant(tenant):
        if event not in webhook.events or webhook.disabled:
            continue
        if await webhooks.pending(webhook.id) >= ReadingLimits().pending:
            log.warning("webhook %s: too much waits for it, %s of %s is not sent", webhook.id, event, name)
            continue
        digest = blake2b(f"{webhook.id} {name}".encode(), digest_size=16).hexdigest()
        message = WebhookMessage.make(f"msg_{digest}", event, at, data, name.partition(" ")[0])
        await queue.put(TUBE, task_of(webhook, message))
