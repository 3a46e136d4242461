"""Deliveries of a tenant, newest first, over all shards.

A cursor names the last delivery of the page before by its creation ms and suffix, so that pages neither overlap nor
skip while new deliveries come in.
"""

import asyncio
import base64
import binascii
from collections.abc import AsyncIterator
from datetime import datetime
from typing import NamedTuple

from core.errors import NotFound, malformed_cursor
from core.history.reader import HistoryReader
from core.model.clock import to_ms
from core.model.history import History
from core.model.history_key import HistoryKey
from core.model.states import DeliveryState
from core.redis.keys import KEYS
from core.redis.store import Store

# Histories looked through for one page of a filtered list; beyond it the caller gets a cursor and asks again.
_LOOKED_THROUGH = 5000
_PAGE = 200


class ListPosition(NamedTuple):
    """Where a delivery stands in the list: it sorts by time, then by name."""

    created: int
    suffix: str
    shard: int

    @property
    def key(self) -> HistoryKey:
        return HistoryKey.of(self.shard, self.suffix)


class Listing:
    """One per process."""

    def __init__(self, store: Store, reader: HistoryReader) -> None:
        self._store = store
        self._reader = reader

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
        last: ListPosition | None = read_cursor(cursor) if cursor else None
        async for place in self._places(tenant, last, to_ms(since) if since else 0):
            if len(found) == limit or looked == _LOOKED_THROUGH:
                return found, write_cursor(last) if last else None
            history = await self._history(place, tenant)
            last = place
            looked += 1
            if history and _fits(history, sender, state):
                found.append(history)
        return found, None

    async def _history(self, place: ListPosition, tenant: str) -> History | None:
        """None: it was dropped meanwhile."""
        try:
            return await self._reader.summary(place.key, tenant)
        except NotFound:
            return None

    async def _places(self, tenant: str, after: ListPosition | None, since: int) -> AsyncIterator[ListPosition]:
        while True:
            shards = await asyncio.gather(*(self._shard(n, tenant, after, since) for n in range(self._store.shards)))
            places = sorted((place for shard in shards for place in shard), reverse=True)[:_PAGE]
            for place in places:
                yield place
            if len(places) < _PAGE:
                return
            after = places[-1]

    async def _shard(self, shard: int, tenant: str, after: ListPosition | None, since: int) -> list[ListPosition]:
        """The next places of one shard: those of the cursor's own millisecond are read again and left out here."""
        latest = str(after.created) if after else "+inf"
        key = KEYS["listed"].at(shard, tenant)
        places: list[ListPosition] = []
        start = 0
        while len(places) < _PAGE:
            page = await self._store.command(
                "ZREVRANGEBYSCORE", key, latest, since, "WITHSCORES", "LIMIT", start, _PAGE
            )
            rows = [ListPosition(int(score), suffix, shard) for suffix, score in page]
            places += [place for place in rows if after is None or place < after]
            start += _PAGE
            if len(rows) < _PAGE:
                break
        return places


def _fits(history: History, sender: str | None, state: DeliveryState | None) -> bool:
    return (sender is None or str(history.sender["id"]) == sender) and (state is None or history.state is state)


def write_cursor(place: ListPosition) -> str:
    return base64.urlsafe_b64encode(f"{place.created} {place.shard} {place.suffix}".encode()).decode().rstrip("=")


def read_cursor(cursor: str) -> ListPosition:
    """Raises Invalid CURSOR_MALFORMED."""
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
        created, shard, suffix = text.split(" ", 2)
        return ListPosition(int(created), suffix, int(shard))
    except (ValueError, binascii.Error):
        raise malformed_cursor() from None
