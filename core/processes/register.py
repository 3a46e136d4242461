"""Writes and reads the entries of processes: one key each with a time to live, and an index of their ids.

Called by `cli.processes.noted_process` (writes), `core.processes.overview` and `core.deliveries.live` (read).
"""

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import msgspec

from core.model.clock import in_ms
from core.processes.record import ENDED, SILENT_AFTER, ProcessRecord, ProcessState
from core.redis.keys import KEYS
from core.redis.store import Store

SILENT_KEPT = timedelta(minutes=10)
"""How long after its last beat the entry of a process that has vanished stays."""
ENDED_KEPT = timedelta(days=1)
"""How long an operator can read why a process has ended."""
_SHARD = 0
_INDEX = KEYS["processes"].at(_SHARD)
_decode = msgspec.json.Decoder(ProcessRecord).decode


class ProcessRegister:
    """All processes of an installation."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def write(self, record: ProcessRecord) -> None:
        """Store an entry, in one write to the connection. Raises StoreError."""
        kept = in_ms(ENDED_KEPT if record.state in ENDED else SILENT_KEPT)
        await asyncio.gather(
            self._store.command("SET", _key(record.id), msgspec.json.encode(record).decode(), "PX", kept),
            self._store.command("ZADD", _INDEX, record.since, record.id),
            self._store.command("PEXPIRE", _INDEX, in_ms(ENDED_KEPT)),
        )

    async def remove(self, *ids: str) -> None:
        """Remove entries. Raises StoreError."""
        if ids:
            await asyncio.gather(
                self._store.command("DEL", *map(_key, ids)),
                self._store.command("ZREM", _INDEX, *ids),
            )

    async def list(self, now: int) -> Sequence[ProcessRecord]:
        """Return the entries by kind, name, host and start; at `now`, in ms, those without a beat are silent. Raises
        StoreError.
        """
        ids = await self._store.command("ZRANGE", _INDEX, 0, -1)
        texts = await self._store.command("MGET", *map(_key, ids)) if ids else []
        await self._forget([one for one, text in zip(ids, texts, strict=True) if text is None])
        found = [_as_of(_decode(text), now) for text in texts if text is not None]
        return sorted(found, key=lambda one: (one.kind, one.name, one.host, one.started))

    async def _forget(self, gone: Sequence[str]) -> None:
        """Take ids out of the index whose entries have ended."""
        if gone:
            await self._store.command("ZREM", _INDEX, *gone)


def _key(process: str) -> str:
    return KEYS["process"].at(_SHARD, process)


def _as_of(record: ProcessRecord, now: int) -> ProcessRecord:
    if record.state in ENDED or now - record.beat < in_ms(SILENT_AFTER):
        return record
    return msgspec.structs.replace(record, state=ProcessState.SILENT, since=record.beat)
