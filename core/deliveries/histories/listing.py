"""Lists the deliveries of a tenant, newest first, over all shards.

A cursor names the last delivery of the previous page by its creation ms and suffix, so pages neither overlap nor skip
deliveries while new ones are created.

There is no index of messages that a provider or a recipient names: a list reads the deliveries that may have sent one
(docs/decisions/0108).
"""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import NamedTuple

from core.deliveries.histories.parcels import load_parcel
from core.deliveries.histories.projection import read_outcome
from core.deliveries.histories.reader import HistoryReader
from core.errors import NotFound, malformed_cursor
from core.model.clock import to_ms
from core.model.history import History
from core.model.history_key import HistoryKey
from core.model.states import DeliveryState, Verdict
from core.model.text.characters import from_unreserved, to_unreserved
from core.redis.keys import KEYS
from core.redis.store import Store

# Histories read for one page of a filtered list. Beyond it the page ends early, with a cursor.
_MOST_READ = 5000
_PAGE = 200
_AT_ONCE = 50


class SentMessage(NamedTuple):
    """`address`: of the recipient in the channel. `reference`: the provider's id of the message."""

    channel: str
    address: str
    reference: str


async def has_sent(store: Store, reader: HistoryReader, key: HistoryKey, message: SentMessage) -> bool:
    """Return whether a delivery has sent this message, as far as its outcome is known."""
    names = [name for name in await reader.field_names(key) if name.startswith(f"parcel:{message.channel}:")]
    texts = await reader.read_fields(key, names) if names else {}
    entries = [entry for text in texts.values() if text for entry in load_parcel(text)[1]]
    fields = [entry.field(message.channel) for entry in entries if entry.address == message.address]
    stored = await store.command("HMGET", KEYS["outcomes"].at(key.shard, key.suffix), *fields) if fields else []
    references = [read_outcome(text, over=False).reference or "" for text in stored if text]
    return any(message.reference in reference.split(",") for reference in references)


class DeliveryPosition(NamedTuple):
    """The place of a delivery in the list, which is sorted by creation time, then suffix."""

    created: int
    suffix: str
    shard: int

    @property
    def key(self) -> HistoryKey:
        return HistoryKey.of(self.shard, self.suffix)


class ListFilter(NamedTuple):
    """Selection of deliveries; None: all. `text`: a part of the text. `since`, `until`: created from this time, and
    before that one. `message`: one that the delivery has sent.
    """

    sender: str | None = None
    tag: str | None = None
    state: DeliveryState | None = None
    verdict: Verdict | None = None
    text: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    message: SentMessage | None = None

    def may_match(self, position: DeliveryPosition) -> bool:
        """Return whether a delivery may be listed, as far as its key shows: the key names the sender."""
        return self.sender in (None, position.key.sender)

    def matches(self, history: History) -> bool:
        """Return whether a delivery is listed; `since` and `until` are not looked at, nor what it has sent."""
        return (
            (self.message is None or self.message.channel in history.channels)
            and self.sender in (None, str(history.sender["id"]))
            and self.state in (None, history.state)
            and self.verdict in (None, history.verdict)
            and (self.tag is None or self.tag in history.tags)
            and (self.text is None or self.text.casefold() in history.text.casefold())
        )


class Listing:
    """One per process."""

    def __init__(self, store: Store, reader: HistoryReader) -> None:
        self._store = store
        self._reader = reader

    async def page(
        self,
        tenant: str,
        wanted: ListFilter,
        cursor: str | None,
        limit: int,
    ) -> tuple[list[History], str | None]:
        """Return a page of summaries and the cursor of the next page. Raises Invalid CURSOR_MALFORMED."""
        found: list[History] = []
        read = 0
        last: DeliveryPosition | None = read_cursor(cursor) if cursor else None
        async for positions in self._pages(tenant, last, wanted):
            for position, history in zip(positions, await self._summaries(positions, tenant, wanted), strict=True):
                if len(found) == limit or read == _MOST_READ:
                    return found, write_cursor(last) if last else None
                last = position
                read += 1
                if history and await self._is_listed(history, position, wanted):
                    found.append(history)
        return found, None

    async def _is_listed(self, history: History, position: DeliveryPosition, wanted: ListFilter) -> bool:
        if not wanted.matches(history):
            return False
        return wanted.message is None or await has_sent(self._store, self._reader, position.key, wanted.message)

    async def _pages(
        self, tenant: str, after: DeliveryPosition | None, wanted: ListFilter
    ) -> AsyncIterator[Sequence[DeliveryPosition]]:
        """Emit the positions in slices that are read at once."""
        some: list[DeliveryPosition] = []
        since = to_ms(wanted.since) if wanted.since else 0
        if wanted.until and (after is None or after.created >= to_ms(wanted.until)):
            after = DeliveryPosition(to_ms(wanted.until), "", 0)
        async for position in self.positions(tenant, after, since):
            some.append(position)
            if len(some) == _AT_ONCE:
                yield some
                some = []
        yield some

    async def _summaries(
        self, positions: Sequence[DeliveryPosition], tenant: str, wanted: ListFilter
    ) -> list[History | None]:
        """Return the deliveries that may be listed, read at the same time; None for the others."""

        async def one(position: DeliveryPosition) -> History | None:
            return await self._summary(position, tenant) if wanted.may_match(position) else None

        return list(await asyncio.gather(*map(one, positions)))

    async def _summary(self, position: DeliveryPosition, tenant: str) -> History | None:
        """Return a summary; None if its retention ended meanwhile."""
        try:
            return await self._reader.summary(position.key, tenant)
        except NotFound:
            return None

    async def positions(
        self, tenant: str, after: DeliveryPosition | None, since: int
    ) -> AsyncIterator[DeliveryPosition]:
        """Emit the places of deliveries behind one, newest first, created since an ms."""
        while True:
            shards = await asyncio.gather(
                *(self._positions_in(shard, tenant, after, since) for shard in range(self._store.shards))
            )
            positions = sorted((position for shard in shards for position in shard), reverse=True)[:_PAGE]
            for position in positions:
                yield position
            if len(positions) < _PAGE:
                return
            after = positions[-1]

    async def _positions_in(
        self, shard: int, tenant: str, after: DeliveryPosition | None, since: int
    ) -> list[DeliveryPosition]:
        """Return the next positions of one shard. Those created in the cursor's own millisecond are read again and
        filtered here.
        """
        latest = str(after.created) if after else "+inf"
        key = KEYS["listed"].at(shard, tenant)
        positions: list[DeliveryPosition] = []
        start = 0
        while len(positions) < _PAGE:
            page = await self._store.command(
                "ZREVRANGEBYSCORE", key, latest, since, "WITHSCORES", "LIMIT", start, _PAGE
            )
            rows = [DeliveryPosition(int(score), suffix, shard) for suffix, score in page]
            positions += [position for position in rows if after is None or position < after]
            start += _PAGE
            if len(rows) < _PAGE:
                break
        return positions


def write_cursor(position: DeliveryPosition) -> str:
    return f"{position.created}-{position.shard}-{to_unreserved(position.suffix)}"


def read_cursor(cursor: str) -> DeliveryPosition:
    """Read the cursor of a page. Raises Invalid CURSOR_MALFORMED."""
    if not (found := re.fullmatch(r"([0-9]{1,15})-([0-9]{1,5})-(.+)", cursor)):
        raise malformed_cursor()
    return DeliveryPosition(int(found[1]), from_unreserved(found[3]), int(found[2]))
