"""What the stream of events told, as far as it reaches back (I13): an outcome and its event are written in one step.

`read_on` may be called again and again; after it nothing that was written before the call is missing, unless it was
trimmed away meanwhile, which `covers` knows.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from core.errors import ScriptFault
from core.redis.keys import KEYS
from core.redis.store import Store

# Entries of one page: each may tell of thousands of outcomes.
_PAGE = 50
# The stream is trimmed beyond 20,000; below this, on a server that does not count what was added, nothing is missing.
_SURELY_WHOLE = 18_000
# The ms of an entry's id and of its outcomes are taken one after the other.
_SLACK_MS = 1000

EventChange = tuple[str, str, str, int]


class EventLog:
    """The versions of each history that events told, as spans."""

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
        """Pages of what was told since the last time: (history, recipient, channel, version)."""
        await self._look_at_start()
        while True:
            start = self._last if self._last == "-" else f"({self._last}"
            rows = await self._store.command("XRANGE", self._key, start, "+", "COUNT", _PAGE)
            for entry_id, _ in rows:
                self._last = entry_id
            self.entries += len(rows)
            yield [change for _, flat in rows for change in self._take(_fields(flat))]
            if len(rows) < _PAGE:
                return

    async def catch_up(self) -> None:
        async with self._reading:
            async for _ in self.read_on():
                pass

    async def _look_at_start(self) -> None:
        """From where on the stream tells everything."""
        head = await self._store.command("XRANGE", self._key, "-", "+", "COUNT", 1)
        self._first = int(head[0][0].partition("-")[0]) if head else None
        self._whole = self._whole and await self._was_never_trimmed()

    async def _was_never_trimmed(self) -> bool:
        try:
            facts = _fields(await self._store.command("XINFO", "STREAM", self._key))
        except ScriptFault:
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
        """Whether this version was told, or may have been before the stream's beginning. `at`: ms of its writing."""
        spans = self._spans.get(suffix, [])
        if any(low <= version <= high for low, high in spans):
            return True
        if self._whole or (spans and spans[0][0] < version):
            return False
        return self._first is None or at < self._first + _SLACK_MS


def _change(suffix: str, line: str) -> EventChange:
    recipient, channel, text = line.split("\t", 2)
    return suffix, recipient[1:], channel, int(text.split("|", 4)[3])


def _fields(flat: Any) -> dict[str, str]:
    """A map as either protocol answers it."""
    return flat if isinstance(flat, dict) else dict(zip(flat[::2], flat[1::2], strict=True))
