"""Reads Redis streams from an entry on, for as long as its task runs: all in one command, in a cluster each in its own.

Used by core.deliveries.tracker, core.queue.client, core.webhooks.runtime and scenarios.execution.parking.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence

from redis.exceptions import RedisError

from core.redis.connection import OutageLog, StoreConnection
from core.redis.store import Store

log = logging.getLogger(__name__)

_BLOCK_MS = 5000
# Seconds to wait for the reply of a read that blocks for `_BLOCK_MS`.
_SILENCE = 10.0
_COUNT = 500
_PAUSE = 0.2
FROM_NOW = "$"

OnEntry = Callable[[str, str, Mapping[str, str]], None]
"""Gets the key of a stream, and the id and fields of its entry."""


def _ignore_gap() -> None:
    """Do nothing: the stream is not trimmed, so no entry is missed."""


class StreamReader:
    """`last`: stream → the id of the entry to read on from, "0-0" for all, FROM_NOW for those to come. `on_entry` gets
    the entries of a stream in order.

    After a lost connection the reader connects again, calls `on_gap` and goes on behind the last entry it read: entries
    are missed if the stream was trimmed meanwhile. A promoted server may lack that entry; the reader then goes on
    behind the newest one that is there. The callbacks must not block.
    """

    def __init__(
        self, store: Store, last: Mapping[str, str], on_entry: OnEntry, on_gap: Callable[[], None] = _ignore_gap
    ) -> None:
        self._store = store
        self._last = dict(last)
        self._on_entry = on_entry
        self._on_gap = on_gap

    async def run(self) -> None:
        """Read until cancelled."""
        async with asyncio.TaskGroup() as reading:
            for group in self._store.in_one_command(list(self._last)):
                reading.create_task(self._read_on(group), name=f"reads {group[0]}")

    async def _read_on(self, keys: Sequence[str]) -> None:
        """Read streams of one primary until cancelled."""
        shard_map, home = self._store.shard_map, self._store.home_of("XREAD", keys[0])
        outage, is_first = OutageLog(log, f"{', '.join(keys)} cannot be read"), True
        while True:
            try:
                connection = await shard_map.of(home).open()
                await self._find_places(connection, keys)
                if not is_first:
                    self._on_gap()
                await self._read(connection, keys, outage)
            except (RedisError, OSError, TimeoutError) as fault:
                outage.failed(fault)
            is_first = False
            await shard_map.pause(shard_map.of(home), _PAUSE)

    async def _find_places(self, connection: StoreConnection, keys: Sequence[str]) -> None:
        """Begin at the newest entry where only later ones are wanted: with "$" those between two commands would be
        missed. Go back to it if the last entry read is ahead of it: else nothing would be read up to there.
        """
        for key in keys:
            found = await connection.request("XREVRANGE", key, "+", "-", "COUNT", 1)
            newest = found[0][0] if found else "0-0"
            if self._last[key] == FROM_NOW or _numbers(newest) < _numbers(self._last[key]):
                self._last[key] = newest

    async def _read(self, connection: StoreConnection, keys: Sequence[str], outage: OutageLog) -> None:
        """Read until the connection is lost. Raises RedisError or TimeoutError."""
        try:
            while True:
                streams = (*keys, *(self._last[key] for key in keys))
                async with asyncio.timeout(_SILENCE):
                    found = await connection.request("XREAD", "COUNT", _COUNT, "BLOCK", _BLOCK_MS, "STREAMS", *streams)
                outage.ended()
                for key, entries in (found or {}).items():
                    for entry_id, fields in entries:
                        self._last[key] = entry_id
                        self._on_entry(key, entry_id, entry_fields(fields))
        finally:
            connection.close()


def _numbers(entry_id: str) -> tuple[int, int]:
    ms, _, number = entry_id.partition("-")
    return int(ms), int(number)


def entry_fields(flat: list[str]) -> dict[str, str]:
    """Return the fields of a stream's entry, which the server lists as name, value, …"""
    return dict(zip(flat[::2], flat[1::2], strict=True))
