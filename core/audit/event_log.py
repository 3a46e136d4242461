"""Reads which outcomes have an event in the stream, as far as it reaches back (I13).

An outcome and its event are written in one step.

`read_on` may be called again and again. After it, every event written before the call is known, unless it was trimmed
meanwhile; `covers` takes this into account.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence

from core.errors import FunctionFault
from core.redis.constants import EVENTS_KEPT
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
