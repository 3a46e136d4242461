"""Reads one Redis stream from an entry on, for as long as its task runs.

Used by core.deliveries.tracker and core.queue.client.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping

from redis.exceptions import RedisError

from core.redis.connection import OutageLog, StoreConnection
from core.redis.store import Store

log = logging.getLogger(__name__)

_BLOCK_MS = 5000
# Seconds to wait for the reply of a read that blocks for `_BLOCK_MS`.
_SILENCE = 10.0
_COUNT = 500
_PAUSE = 0.2
_FROM_NOW = "$"

OnEntry = Callable[[str, Mapping[str, str]], None]


def _ignore_gap() -> None:
    """Do nothing: the stream is not trimmed, so no entry is missed."""


class StreamReader:
    """`last`: the id of the entry to read on from, "0-0" for all. `on_entry` gets each entry's id and fields, in order.

    After a lost connection the reader connects again, calls `on_gap` and goes on behind the last entry it read: entries
    are missed if the stream was trimmed meanwhile. A promoted server may lack that entry; the reader then goes on
    behind the newest one that is there. The callbacks must not block.
    """

    def __init__(
        self, store: Store, key: str, last: str, on_entry: OnEntry, on_gap: Callable[[], None] = _ignore_gap
    ) -> None:
        self._shard_map = store.shard_map
        self._home = store.home_of("XREAD", key)
        self._key = key
        self._last = last
        self._on_entry = on_entry
        self._on_gap = on_gap
        self._outage = OutageLog(log, f"{key} cannot be read")

    async def run(self) -> None:
        """Read until cancelled."""
        is_first = True
        while True:
            try:
                connection = await self._shard_map.of(self._home).open()
                if not is_first:
                    await self._return_to_stream(connection)
                    self._on_gap()
                await self._read(connection)
            except (RedisError, OSError, TimeoutError) as fault:
                self._outage.failed(fault)
            is_first = False
            await self._shard_map.pause(self._shard_map.of(self._home), _PAUSE)

    async def _return_to_stream(self, connection: StoreConnection) -> None:
        """Go back to the newest entry if the last one read is ahead of it: else nothing would be read up to there."""
        found = await connection.request("XREVRANGE", self._key, "+", "-", "COUNT", 1)
        newest = found[0][0] if found else "0-0"
        if self._last != _FROM_NOW and _numbers(newest) < _numbers(self._last):
            self._last = newest

    async def _read(self, connection: StoreConnection) -> None:
        """Read until the connection is lost. Raises RedisError or TimeoutError."""
        try:
            while True:
                options = ("COUNT", _COUNT, "BLOCK", _BLOCK_MS, "STREAMS", self._key, self._last)
                async with asyncio.timeout(_SILENCE):
                    found = await connection.request("XREAD", *options)
                self._outage.ended()
                for entry_id, fields in found[self._key] if found else ():
                    self._last = entry_id
                    self._on_entry(entry_id, entry_fields(fields))
        finally:
            connection.close()


def _numbers(entry_id: str) -> tuple[int, int]:
    ms, _, number = entry_id.partition("-")
    return int(ms), int(number)


def entry_fields(flat: list[str]) -> dict[str, str]:
    """Return the fields of a stream's entry, which the server lists as name, value, …"""
    return dict(zip(flat[::2], flat[1::2], strict=True))
