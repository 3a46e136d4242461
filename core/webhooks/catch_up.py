"""Finds the messages of a webhook that is behind, in the histories instead of the event stream.

Of each outcome the latest is found, not every step between. The messages come ordered by time, and only a bounded
number at a time, however many there are.
"""

import heapq
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import NamedTuple

from core.deliveries.histories.reader import HistoryReader
from core.deliveries.tracker import Tracker
from core.errors import NotFound, StoreUnavailable
from core.model.clock import to_ms
from core.model.history import History, HistoryChange
from core.model.history_key import HistoryKey
from core.redis.constants import DAY_MS
from core.redis.keys import KEYS
from core.redis.store import Store
from core.webhooks.webhook import (
    EventType,
    Webhook,
    WebhookMessage,
    answer_message,
    closed_message,
    finished_message,
    is_outcome,
    outcome_message,
)

# Delivery reports of a finished delivery are looked for this long after its creation.
_REPORTS_MS = 3 * DAY_MS
_PAGE = 500
_RENEW_SECONDS = 1.0


class Mark(NamedTuple):
    """The place of a message among all of a shard, by time."""

    at: int
    version: int = 0
    suffix: str = ""

    def __str__(self) -> str:
        return f"{self.at} {self.version} {self.suffix}"

    @classmethod
    def read(cls, text: str) -> "Mark":
        at, version, suffix = text.split(" ", 2)
        return cls(int(at), int(version), suffix)


Found = list[tuple[Mark, WebhookMessage]]


class CatchUp:
    """`still_reads` extends the right to read the events of the shard, and returns False if it was lost."""

    def __init__(self, store: Store, shard: int, still_reads: Callable[[], Awaitable[bool]]) -> None:
        self._store = store
        self._shard = shard
        self._still_reads = still_reads
        self._histories = HistoryReader(store)
        self._tracker = Tracker(store)

    async def next_messages(self, webhook: Webhook, mark: Mark, most: int) -> tuple[list[WebhookMessage], Mark | None]:
        """Return the `most` earliest messages behind the mark, and the mark of the last of them; None instead of the
        mark if there are no more.
        """
        found: Found = []
        extended = time.monotonic()
        async for key in self._keys(webhook.tenant, mark.at):
            found += await self._of_history(webhook, key, mark)
            if len(found) > 2 * most:
                found = heapq.nsmallest(most + 1, found, key=_mark_of)
            if time.monotonic() - extended > _RENEW_SECONDS:
                extended = time.monotonic()
                if not await self._still_reads():
                    raise StoreUnavailable("another process reads the events of webhooks now")
        found.sort(key=_mark_of)
        taken = found[:most]
        return [message for _, message in taken], taken[-1][0] if len(found) > most else None

    async def _keys(self, tenant: str, since: int) -> AsyncIterator[HistoryKey]:
        """Emit the deliveries that may have changed since then: the unfinished, the finished, and the recently
        created."""
        seen: set[str] = set()
        for index, lowest in (("live", 0), ("listed", since - _REPORTS_MS)):
            async for suffix in self._page(KEYS[index].at(self._shard, tenant), lowest):
                if suffix not in seen:
                    seen.add(suffix)
                    yield HistoryKey.of(self._shard, suffix)
        async for member in self._page(KEYS["retained"].at(self._shard), since + await self._retention_ms()):
            owner, _, suffix = member.partition("|")
            if owner == tenant and suffix not in seen:
                yield HistoryKey.of(self._shard, suffix)

    async def _retention_ms(self) -> int:
        """Return for how long every ended delivery is kept: one that asks may be kept for a longer or shorter time."""
        key = KEYS["settings"].at(self._shard)
        histories, answers = await self._store.command("HMGET", key, "retention_ms", "answers_ms")
        return min(int(histories or 30 * DAY_MS), int(answers or histories or 30 * DAY_MS))

    async def _page(self, index: str, lowest: int) -> AsyncIterator[str]:
        """Emit the members from this score on. Members that are removed meanwhile hide no others."""
        read = 0  # of those with the lowest score
        while True:
            page = await self._store.command("ZRANGEBYSCORE", index, lowest, "+inf", "WITHSCORES", "LIMIT", read, _PAGE)
            for name, _ in page:
                yield name
            if len(page) < _PAGE:
                return
            last = int(page[-1][1])
            read = sum(1 for _, score in page if score == last) + (read if last == lowest else 0)
            lowest = last

    async def _of_history(self, webhook: Webhook, key: HistoryKey, mark: Mark) -> Found:
        try:
            changes = await self._tracker.changes(key, webhook.tenant)
            summary = await self._histories.summary(key, webhook.tenant)
        except NotFound:  # its retention ended meanwhile
            return []
        placed = ((_place(webhook, summary, change), change) for change in changes)
        return [(place, _message(webhook, summary, change)) for place, change in placed if place and place > mark]


def _mark_of(found: tuple[Mark, WebhookMessage]) -> Mark:
    return found[0]


def _place(webhook: Webhook, history: History, change: HistoryChange) -> Mark | None:
    """Return the place of a change; None if the webhook does not want it."""
    kind, at = _kind_of(change), history.finished_at
    if change.outcome is not None:
        at = change.outcome.at if is_outcome(change) else None
    elif kind is not EventType.FINISHED:
        at = change.answer.answered_at if change.answer else change.closed_at
    if kind not in webhook.events or at is None or to_ms(at) < webhook.created:
        return None
    return Mark(to_ms(at), change.version, history.key.suffix)


def _kind_of(change: HistoryChange) -> EventType:
    if change.outcome is not None:
        return EventType.OUTCOME
    if change.answer is not None:
        return EventType.ANSWER
    return EventType.CLOSED if change.closed_at else EventType.FINISHED


def _message(webhook: Webhook, history: History, change: HistoryChange) -> WebhookMessage:
    match _kind_of(change):
        case EventType.OUTCOME:
            return outcome_message(webhook, history.key, change)
        case EventType.ANSWER:
            return answer_message(webhook, history.key, change)
        case EventType.CLOSED:
            return closed_message(webhook, history, change.version)
    return finished_message(webhook, history, change.version)
