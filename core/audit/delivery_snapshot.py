"""Reads whole deliveries, and which of their outcomes have an event in the stream (I13).

Small deliveries are read many at once in one atomic read, large ones in pages between two equal reads of the history,
so that the pages belong together. A delivery that changes during every read is counted as unread; the next audit checks
it.

An outcome and its event are written in one step. `EventLog.read_on` may be called again and again. After it, every
event written before the call is known, unless it was trimmed meanwhile; `covers` takes this into account.
"""

import asyncio
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from itertools import islice

from core.audit.invariants.histories import DeliverySnapshot, HistorySnapshot, ParcelSnapshot, version_of
from core.deliveries.histories.encoding import PAGE, ChannelPlan, load_plan, load_recipients
from core.deliveries.histories.parcels import load_parcel, outcome_field
from core.errors import FunctionFault
from core.queue.task import viewed_facts
from core.redis.constants import EVENTS_KEPT, HISTORY_FACTS
from core.redis.keys import KEYS
from core.redis.store import Store
from core.redis.stream_reader import entry_fields

# Entries of one page: each may carry thousands of outcomes.
_PAGE = 50
# Servers before Redis 7 do not count added entries. With fewer entries than this, nothing was trimmed.
_SURELY_WHOLE = EVENTS_KEPT * 9 // 10
# The times of an entry's id and of its outcomes are read one after the other.
_SLACK_MS = 1000

EventChange = tuple[str, str, str, int]
"""History suffix, recipient, channel, version."""
_READS = 5
_FIELDS = 500
# Recipients, entries and outcomes of one function call: it blocks the server for about a millisecond.
_ENTRIES = 500
_ROW = len(HistorySnapshot._fields)
_GLOB = re.compile(r"[*?\[\]\\]")
Read = tuple[HistorySnapshot, DeliverySnapshot, Sequence[ChannelPlan]]


class EventLog:
    """The versions of each history in one shard's event stream, as spans."""

    def __init__(self, store: Store, shard: int) -> None:
        self._store = store
        self._key = KEYS["events"].at(shard)
        self._spans: dict[str, list[list[int]]] = {}
        self._last = "-"
        self._first: int | None = None
        self._whole = True
        self._reading = asyncio.Lock()
        self.entries = 0

    async def read_on(self) -> AsyncIterator[Sequence[EventChange]]:
        """Yield pages of the changes since the last call."""
        await self._read_start()
        while True:
            start = self._last if self._last == "-" else f"({self._last}"
            rows = await self._store.command("XRANGE", self._key, start, "+", "COUNT", _PAGE)
            for entry_id, _ in rows:
                self._last = entry_id
            self.entries += len(rows)
            yield [change for _, flat in rows for change in self._take(entry_fields(flat))]
            if len(rows) < _PAGE:
                return

    async def catch_up(self) -> None:
        """Read all that was added since the last call."""
        async with self._reading:
            async for _ in self.read_on():
                pass

    async def _read_start(self) -> None:
        """Find out from where on the stream is complete."""
        head = await self._store.command("XRANGE", self._key, "-", "+", "COUNT", 1)
        self._first = int(head[0][0].partition("-")[0]) if head else None
        self._whole = self._whole and await self._was_never_trimmed()

    async def _was_never_trimmed(self) -> bool:
        try:
            facts = await self._store.command("XINFO", "STREAM", self._key)
        except FunctionFault:
            return True
        length = int(facts["length"])
        return int(facts["entries-added"]) == length if "entries-added" in facts else length < _SURELY_WHOLE

    def _take(self, entry: Mapping[str, str]) -> list[EventChange]:
        changes = [_change(entry["history"], line) for line in entry["changes"].split("\n") if line]
        versions = [int(entry["version"]), *(change[3] for change in changes)]
        self._add(entry["history"], min(versions), max(versions))
        return changes

    def _add(self, suffix: str, low: int, high: int) -> None:
        spans = self._spans.setdefault(suffix, [])
        if spans and low <= spans[-1][1] + 1:
            spans[-1][1] = max(high, spans[-1][1])
        else:
            spans.append([low, high])

    def covers(self, suffix: str, version: int, at: int) -> bool:
        """Return whether this version has an event, or may have had one before the stream's start. `at`: ms of its
        writing."""
        spans = self._spans.get(suffix, [])
        if any(low <= version <= high for low, high in spans):
            return True
        if self._whole or (spans and spans[0][0] < version):
            return False
        return self._first is None or at < self._first + _SLACK_MS


def _change(suffix: str, line: str) -> EventChange:
    recipient, channel, text = line.split("\t", 2)
    return suffix, recipient[1:], channel, int(text.split("|", 4)[3])


class SnapshotReader:
    """Deliveries of one shard."""

    def __init__(self, store: Store, shard: int) -> None:
        self._store = store
        self._shard = shard

    async def histories(self, tenant: str, suffixes: Sequence[str]) -> tuple[int, list[HistorySnapshot]]:
        """Return the server's time in ms, and a row for each history."""
        now, *rows = await self._store.run("audit_histories", self._shard, tenant, 0, *suffixes)
        return int(now), [HistorySnapshot(*row[:_ROW]) for row in rows]

    async def deliveries(self, suffixes: Sequence[str]) -> tuple[int, list[HistorySnapshot], list[Read | None]]:
        """Return the server's time in ms, a row for each history, and each delivery; None if it is gone or changed
        during every read.
        """
        now, *rows = await self._store.run("audit_histories", self._shard, "", _ENTRIES, *suffixes)
        seen = [HistorySnapshot(*row[:_ROW]) for row in rows]
        found = [_read_of(one, row[_ROW]) or await self.read(one) for one, row in zip(seen, rows, strict=True)]
        return int(now), seen, found

    async def read(self, seen: HistorySnapshot) -> Read | None:
        """Return a delivery's history, content and plans; None if it is gone or changed during every read."""
        for _ in range(_READS):
            facts = dict(zip(HISTORY_FACTS, seen.facts, strict=True))
            if facts["tenant"] is None:
                return None
            plans = load_plan(facts["plan"] or "")
            content = await self._content(seen.suffix, int(facts["recipients"] or 0), plans)
            _, (again,) = await self.histories("", [seen.suffix])
            if again == seen and content is not None:
                return seen, content, plans
            seen = again
        return None

    async def _content(self, suffix: str, recipients: int, plans: Sequence[ChannelPlan]) -> DeliverySnapshot | None:
        content = DeliverySnapshot(outcomes=await self._outcomes(suffix), answers=await self._answers(suffix))
        pages = range(-(-recipients // PAGE))
        texts = await self._fields(suffix, [f"people:{page}" for page in pages])
        for page, text in zip(pages, texts, strict=True):
            if text is None:
                return None
            content.people += load_recipients(text, page)
        for plan in plans:
            parcels = await self._parcels(suffix, plan)
            if parcels is None:
                return None
            content.parcels[plan.channel] = parcels
        return content

    async def _fields(self, suffix: str, names: Sequence[str]) -> list[str | None]:
        """Return fields of a history, read a few at once: a parcel or a page of recipients may be long."""
        key, found = KEYS["history"].at(self._shard, suffix), list[str | None]()
        for start in range(0, len(names), 20):
            found += await self._store.command("HMGET", key, *names[start : start + 20])
        return found

    async def _outcomes(self, suffix: str, match: str = "*") -> dict[str, str]:
        return await self._scanned(KEYS["outcomes"].at(self._shard, suffix), match)

    async def _answers(self, suffix: str) -> dict[str, str]:
        """Return the fields of a question and its answers; none if the delivery asks nothing."""
        key = KEYS["history"].at(self._shard, suffix)
        asks = await self._store.command("HEXISTS", key, "answer")
        return await self._scanned(key, "answer*") if asks else {}

    async def _scanned(self, key: str, match: str) -> dict[str, str]:
        cursor, found = "0", dict[str, str]()
        while True:
            cursor, flat = await self._store.command("HSCAN", key, cursor, "MATCH", match, "COUNT", _FIELDS)
            found |= zip(flat[::2], flat[1::2], strict=True)
            if str(cursor) == "0":
                return found

    async def _parcels(self, suffix: str, plan: ChannelPlan) -> list[ParcelSnapshot] | None:
        sender, _, ns = suffix.rpartition(":")
        numbers = range(len(plan.parcels))
        texts = await self._fields(suffix, [f"parcel:{plan.channel}:{n}" for n in numbers])
        ids = [f"{ns}.{sender}.{plan.channel}.{n}" for n in numbers]
        found = []
        for text, (history, left) in zip(texts, await self._tasks(ids), strict=True):
            if text is None:
                return None
            found.append(_parcel(suffix, plan.channel, text, history, left))
        return found

    async def _tasks(self, ids: Sequence[str]) -> list[tuple[str | None, str | None]]:
        """Return the delivery and the number of open entries that tasks have."""
        rows = await self._store.run("view_tasks", self._shard, *ids) if ids else []
        found = map(viewed_facts, rows)
        return [(facts.get("history"), facts.get("left")) for facts in found]

    async def lost(self, changes: Sequence[EventChange]) -> list[EventChange]:
        """Return the changes of events that are missing in their delivery, although it is kept."""
        by_history: dict[str, list[EventChange]] = defaultdict(list)
        for change in changes:
            by_history[change[0]].append(change)
        found = await asyncio.gather(*(self._lost_of(suffix, page) for suffix, page in by_history.items()))
        return [change for page in found for change in page]

    async def _lost_of(self, suffix: str, changes: Sequence[EventChange]) -> list[EventChange]:
        key, lost = KEYS["outcomes"].at(self._shard, suffix), list[EventChange]()
        for start in range(0, len(changes), _FIELDS):
            page = changes[start : start + _FIELDS]
            names = [outcome_field(recipient, channel) for _, recipient, channel, _ in page]
            texts = await self._store.command("HMGET", key, *names)
            lost += [
                change for change, text in zip(page, texts, strict=True) if text is None or version_of(text) < change[3]
            ]
        return [change for change in lost if await self._is_lost(change)]

    async def _is_lost(self, change: EventChange) -> bool:
        """Return whether a change is missing. An event does not name one of several contacts, so the outcomes of all
        are read.
        """
        suffix, recipient, channel, version = change
        if not await self._store.command("EXISTS", KEYS["history"].at(self._shard, suffix)):
            return False
        stored = await self._outcomes(suffix, _GLOB.sub(r"\\\g<0>", f"{recipient}:{channel}") + "*")
        field = outcome_field(recipient, channel)
        mine = [text for name, text in stored.items() if name == field or name.startswith(f"{field}:")]
        if any(version_of(text) >= version for text in mine):
            return False
        return bool(await self._store.command("EXISTS", KEYS["history"].at(self._shard, suffix)))


# one atomic read

_Content = tuple[Sequence[str], Sequence[str], Sequence[tuple[str | None, str | None, str | None]]]
"""The content of a small delivery as lua/audit/functions/audit_histories.lua returns it."""


def _read_of(seen: HistorySnapshot, content: _Content | None) -> Read | None:
    """Return the delivery; None if it is too large for one read, or a part is missing."""
    facts = dict(zip(HISTORY_FACTS, seen.facts, strict=True))
    if content is None or facts["tenant"] is None:
        return None
    outcomes, pages, parcels = content
    plans = load_plan(facts["plan"] or "")
    found = DeliverySnapshot(outcomes=dict(zip(outcomes[::2], outcomes[1::2], strict=True)))
    counters = zip(seen.counters[::2], seen.counters[1::2], strict=True)
    found.answers = {name: value for name, value in counters if name.startswith("answer")}
    found.people = [one for page, text in enumerate(pages) for one in load_recipients(text, page)]
    rest = iter(parcels)
    for plan in plans:
        rows = [(text, task) for text, *task in islice(rest, len(plan.parcels))]
        if any(text is None for text, _ in rows):
            return None
        found.parcels[plan.channel] = [_parcel(seen.suffix, plan.channel, text or "", *task) for text, task in rows]
    return (seen, found, plans) if len(found.people) == int(facts["recipients"] or 0) else None


def _parcel(suffix: str, channel: str, text: str, history: str | None, left: str | None) -> ParcelSnapshot:
    """Return a parcel. `history`, `left`: of its task; None without a task."""
    fields = [entry.field(channel) for entry in load_parcel(text)[1]]
    return ParcelSnapshot(int(left) if history == suffix and left is not None else None, fields)
