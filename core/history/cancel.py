"""Cancel a delivery, whole or for chosen recipients, or many deliveries by what they have in common.

The answer says exactly who had been sent to before (D-42): an attempt under way is told, and its courier's word
awaited.

Before: `core.history.deliveries`. After: `lua/delivery/cancel.lua`; a courier with a taken parcel hears of it in the
answer to its next
`extend`.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence

from core.errors import Invalid, NotFound
from core.history.listing import ListPosition
from core.history.parcels import USUAL_KIND
from core.history.projection import Facts
from core.history.reader import HistoryReader
from core.model.compact_json import compact_json
from core.model.delivery import Cancelled
from core.model.history import RecipientRecord
from core.model.history_key import HistoryKey
from core.model.states import OPEN, REACHED, Status
from core.redis.keys import KEYS
from core.redis.store import Store

# How long a courier's last word is awaited. It speaks every quarter of a second while it works.
_PATIENCE = 3.0
_LOOK_AGAIN = 0.05
_PAGE = 500
_FIELDS = ("sender", "user", "lane", "kind_prefix", "tag")


class Canceller:
    """One per process."""

    def __init__(self, store: Store, reader: HistoryReader) -> None:
        self._store = store
        self._reader = reader

    async def cancel(self, key: HistoryKey, tenant: str, recipients: Sequence[str] = ()) -> Cancelled:
        """Raises NotFound HISTORY_NOT_FOUND, RECIPIENT_NOT_FOUND. Cancelling what is over cancels nobody and says who
        got it.
        """
        facts = await self._reader.facts(key, tenant)
        people = await self._reader.people(key, facts)
        chosen = [person for person in people if not recipients or str(person.id) in recipients]
        if recipients and len({str(person.id) for person in chosen}) < len(set(recipients)):
            raise NotFound("RECIPIENT_NOT_FOUND", "Not every recipient named is one of this delivery.", "recipient")
        before = await self._reader.records(key, facts, chosen)
        entries = await self._entries(key, facts, set(recipients)) if recipients else []
        reply = await self._store.run(
            "cancel", key.shard, key.suffix, tenant, 0 if recipients else 1, compact_json(entries)
        )
        if reply[0] == "missing":
            raise NotFound("HISTORY_NOT_FOUND", "There is no such delivery.")
        if reply[0] == "over":
            return Cancelled(0, _sent_to(before))
        if reply[1:]:
            await self._last_words(key, facts)
        after = await self._reader.records(key, await self._reader.facts(key, tenant), chosen)
        return _told(before, after)

    async def _entries(self, key: HistoryKey, facts: Facts, recipients: set[str]) -> list[list[object]]:
        """[channel, parcel, item] of each entry of these recipients."""
        found: list[list[object]] = []
        async for leg, n, _, entries in self._reader.parcels(key, facts):
            found += [
                [leg.channel, n, entry.item(Status.CANCELLED)] for entry in entries if str(entry.id) in recipients
            ]
        return found

    async def _last_words(self, key: HistoryKey, facts: Facts) -> None:
        """Until no courier owes its word any more, or patience ends. It comes through Redis, from another process."""
        deadline = asyncio.get_running_loop().time() + _PATIENCE
        while True:
            if not await self._taken(key, facts) or asyncio.get_running_loop().time() > deadline:
                return
            await asyncio.sleep(_LOOK_AGAIN)

    async def _taken(self, key: HistoryKey, facts: Facts) -> bool:
        """Whether a courier still owes its word on a cancelled or skipped entry."""
        ids = [task_id async for task_id in self._parcel_ids(key, facts)]
        names = [KEYS["task"].at(key.shard, task_id) for task_id in ids]
        replies = await asyncio.gather(
            *(self._store.command("HMGET", name, "state", "cancel", "skip") for name in names)
        )
        return any(state == "taken" and (cancel or skip) for state, cancel, skip in replies)

    async def _parcel_ids(self, key: HistoryKey, facts: Facts) -> AsyncIterator[str]:
        async for leg, n, _, _ in self._reader.parcels(key, facts):
            yield f"{key.ns}.{key.sender}.{leg.channel}.{n}"

    async def cancel_by(self, tenant: str, field: str, value: str) -> int:
        """How many unfinished deliveries were cancelled. Raises Invalid UNKNOWN_FIELD."""
        if field not in _FIELDS:
            raise Invalid("UNKNOWN_FIELD", f"Deliveries are cancelled by one of {', '.join(_FIELDS)}.", field)
        cancelled = 0
        for shard in range(self._store.shards):
            async for key, facts in self._live(shard, tenant):
                if await self._has(key, facts, field, value):
                    reply = await self._store.run("cancel", shard, key.suffix, tenant, 1, "[]")
                    cancelled += reply[0] == "cancelled"
        return cancelled

    async def _live(self, shard: int, tenant: str) -> AsyncIterator[tuple[HistoryKey, Facts]]:
        """Unfinished deliveries in pages. The names are read first, as cancelling takes them away."""
        places = await self._live_places(shard, tenant)
        for start in range(0, len(places), _PAGE):
            keys = [place.key for place in places[start : start + _PAGE]]
            names = ("tenant", "state", "sender", "recipients", "lane", "kind", "tags")
            for key, facts in zip(
                keys, await asyncio.gather(*(self._reader.fields(key, names) for key in keys)), strict=True
            ):
                if facts["tenant"] == tenant:
                    yield key, facts

    async def _live_places(self, shard: int, tenant: str) -> list[ListPosition]:
        name, start, places = KEYS["live"].at(shard, tenant), 0, list[ListPosition]()
        while True:
            page = await self._store.command("ZRANGE", name, start, start + _PAGE - 1, "WITHSCORES")
            rows = [ListPosition(int(score), suffix, shard) for suffix, score in page]
            places += rows
            start += _PAGE
            if len(rows) < _PAGE:
                return places

    async def _has(self, key: HistoryKey, facts: Facts, field: str, value: str) -> bool:
        match field:
            case "sender":
                return str(json.loads(facts["sender"] or "{}").get("id")) == value
            case "lane":
                return facts["lane"] == value
            case "kind_prefix":
                return (facts["kind"] or USUAL_KIND).startswith(value)
            case "tag":
                return value in json.loads(facts["tags"] or "[]")
            case _:
                return value in {str(person.id) for person in await self._reader.people(key, facts)}


def _sent_to(records: Sequence[RecipientRecord]) -> list[int | str]:
    return [record.id for record in records if any(outcome.status in REACHED for outcome in record.outcomes.values())]


def _told(before: Sequence[RecipientRecord], after: Sequence[RecipientRecord]) -> Cancelled:
    sent = _sent_to(after)
    unclear = [
        record.id
        for record in after
        if record.id not in sent
        and any(o.status in OPEN or o.status is Status.UNKNOWN for o in record.outcomes.values())
    ]
    cancelled = sum(
        1
        for old, new in zip(before, after, strict=True)
        if new.id not in sent and new.id not in unclear and _was_cancelled(old, new)
    )
    return Cancelled(cancelled, sent, unclear)


def _was_cancelled(old: RecipientRecord, new: RecipientRecord) -> bool:
    return any(
        outcome.status is Status.CANCELLED and old.outcomes[channel].status in OPEN
        for channel, outcome in new.outcomes.items()
    )
