"""Reads whole deliveries in pages, between two equal reads of the history: the pages then belong together.

A delivery that changes during every read is counted as unread; the next audit checks it.
"""

import asyncio
import re
from collections import defaultdict
from collections.abc import Sequence

from core.audit.event_log import EventChange
from core.audit.history_invariants import DeliverySnapshot, HistorySnapshot, ParcelSnapshot, version_of
from core.history.encoding import PAGE, ChannelPlan, load_plan, load_recipients
from core.history.parcels import load_parcel, outcome_field
from core.redis.constants import HISTORY_FACTS
from core.redis.keys import KEYS
from core.redis.store import Store

_READS = 5
_FIELDS = 500
_GLOB = re.compile(r"[*?\[\]\\]")

Read = tuple[HistorySnapshot, DeliverySnapshot, Sequence[ChannelPlan]]


class SnapshotReader:
    """Deliveries of one shard."""

    def __init__(self, store: Store, shard: int) -> None:
        self._store = store
        self._shard = shard

    async def histories(self, tenant: str, suffixes: Sequence[str]) -> tuple[int, list[HistorySnapshot]]:
        """The server's time in ms, and a row for each history."""
        now, *rows = await self._store.run("audit_histories", self._shard, tenant, *suffixes)
        return int(now), [HistorySnapshot(*row) for row in rows]

    async def read(self, seen: HistorySnapshot) -> Read | None:
        """A delivery's history, content and plans; None if it is gone or changed during every read."""
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
        content = DeliverySnapshot(outcomes=await self._outcomes(suffix))
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
        """Fields of a history. A parcel or a page of recipients may be long, so a few are read at once."""
        key, found = KEYS["history"].at(self._shard, suffix), list[str | None]()
        for start in range(0, len(names), 20):
            found += await self._store.command("HMGET", key, *names[start : start + 20])
        return found

    async def _outcomes(self, suffix: str, match: str = "*") -> dict[str, str]:
        key, cursor, found = KEYS["outcomes"].at(self._shard, suffix), "0", dict[str, str]()
        while True:
            cursor, flat = await self._store.command("HSCAN", key, cursor, "MATCH", match, "COUNT", _FIELDS)
            found |= zip(flat[::2], flat[1::2], strict=True)
            if str(cursor) == "0":
                return found

    async def _parcels(self, suffix: str, plan: ChannelPlan) -> list[ParcelSnapshot] | None:
        sender, _, ns = suffix.rpartition(":")
        numbers = range(len(plan.parcels))
        texts = await self._fields(suffix, [f"parcel:{plan.channel}:{n}" for n in numbers])
        names = [KEYS["task"].at(self._shard, f"{ns}.{sender}.{plan.channel}.{n}") for n in numbers]
        tasks = await asyncio.gather(*(self._store.read_hash(name, "history", "left") for name in names))
        found = []
        for text, (history, left) in zip(texts, tasks, strict=True):
            if text is None:
                return None
            fields = [entry.field(plan.channel) for entry in load_parcel(text)[1]]
            found.append(ParcelSnapshot(int(left) if history == suffix and left is not None else None, fields))
        return found

    async def lost(self, changes: Sequence[EventChange]) -> list[EventChange]:
        """The changes of events that are missing in their delivery, although it is kept."""
        by_history: dict[str, list[EventChange]] = defaultdict(list)
        for change in changes:
            by_history[change[0]].append(change)
        return [change for suffix, page in by_history.items() for change in await self._lost_of(suffix, page)]

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
        """An event does not name one of several contacts, so the outcomes of all are read."""
        suffix, recipient, channel, version = change
        if not await self._store.command("EXISTS", KEYS["history"].at(self._shard, suffix)):
            return False
        stored = await self._outcomes(suffix, _GLOB.sub(r"\\\g<0>", f"{recipient}:{channel}") + "*")
        field = outcome_field(recipient, channel)
        mine = [text for name, text in stored.items() if name == field or name.startswith(f"{field}:")]
        if any(version_of(text) >= version for text in mine):
            return False
        return bool(await self._store.command("EXISTS", KEYS["history"].at(self._shard, suffix)))
