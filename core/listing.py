"""Deliveries of a tenant, newest first, over all shards.

A cursor names the last delivery of the page before by its creation ms and suffix, so that pages neither overlap nor
skip while new deliveries come in.
"""

import asyncio
import base64
import binascii
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import NamedTuple

from core.archive import Archive
from core.errors import NotFound, malformed_cursor
from core.keys import KEYS
from core.orders import History, HistoryKey, unix_ms
from core.store import Store
from core.words import DeliveryState

# Histories looked through for one page of a filtered list; beyond it the caller gets a cursor and asks again.
_LOOKED_THROUGH = 5000
_PAGE = 200


class Place(NamedTuple):
    """Where a delivery stands in the list: it sorts by time, then by name."""

    created: int
    suffix: str
    shard: int

    @property
    def key(self) -> HistoryKey:
        return HistoryKey.of(self.shard, self.suffix)


class Listing:
    """One per process."""

    def __init__(self, store: Store, archive: Archive) -> None:
        self._store = store
        self._archive = archive

    async def page(
        self,
        tenant: str,
        sender: str | None,
        state: DeliveryState | None,
        since: datetime | None,
        cursor: str | None,
        limit: int,
    ) -> tuple[list[History], str | None]:
        found: list[History] = []
        looked = 0
        last: Place | None = read_cursor(cursor) if cursor else None
        async for place in self._places(tenant, last, unix_ms(since) if since else 0):
            if len(found) == limit or looked == _LOOKED_THROUGH:
                return found, write_cursor(last) if last else None
            history = await self._history(place, tenant)
            last = place
            looked += 1
            if history and _fits(history, sender, state):
                found.append(history)
        return found, None

    async def _history(self, place: Place, tenant: str) -> History | None:
        """None: it was dropped meanwhile."""
        try:
            return await self._archive.summary(place.key, tenant)
        except NotFound:
            return None

    async def _places(self, tenant: str, after: Place | None, since: int) -> AsyncIterator[Place]:
        while True:
            shards = await asyncio.gather(*(self._shard(n, tenant, after, since) for n in range(self._store.shards)))
            places = sorted((place for shard in shards for place in shard), reverse=True)[:_PAGE]
            for place in places:
                yield place
            if len(places) < _PAGE:
                return
            after = places[-1]

    async def _shard(self, shard: int, tenant: str, after: Place | None, since: int) -> list[Place]:
        """The next places of one shard: those of the cursor's own millisecond are read again and left out here."""
        latest = str(after.created) if after else "+inf"
        key = KEYS["listed"].at(shard, tenant)
        places: list[Place] = []
        start = 0
        while len(places) < _PAGE:
            flat = await self._store.command(
                "ZREVRANGEBYSCORE", key, latest, since, "WITHSCORES", "LIMIT", start, _PAGE
            )
            rows = [Place(int(float(score)), suffix, shard) for suffix, score in pairs(flat)]
            places += [place for place in rows if after is None or place < after]
            start += _PAGE
            if len(rows) < _PAGE:
                break
        return places


def pairs(reply: Sequence[object]) -> list[tuple[str, float]]:
    """WITHSCORES as RESP3 (pairs) or RESP2 (flat) answers it."""
    if reply and isinstance(reply[0], list | tuple):
        return [(str(pair[0]), float(pair[1])) for pair in reply if isinstance(pair, list | tuple)]
    return [(str(reply[n]), float(str(reply[n + 1]))) for n in range(0, len(reply), 2)]


def _fits(history: History, sender: str | None, state: DeliveryState | None) -> bool:
    return (sender is None or str(history.sender["id"]) == sender) and (state is None or history.state is state)


def write_cursor(place: Place) -> str:
    return base64.urlsafe_b64encode(f"{place.created} {place.shard} {place.suffix}".encode()).decode().rstrip("=")


def read_cursor(cursor: str) -> Place:
    """Raises Invalid CURSOR_MALFORMED."""
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
        created, shard, suffix = text.split(" ", 2)
        return Place(int(created), suffix, int(shard))
    except (ValueError, binascii.Error):
        raise malformed_cursor() from None
