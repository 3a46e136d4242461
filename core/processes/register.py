"""Writes and reads the entries of processes: one hash, whose old entries are removed when it is read.

Called by `cli.processes.noted_process` (writes), `core.processes.overview` and `core.deliveries.live` (read).
"""

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
_ENTRIES = KEYS["processes"].at(0)
_decode = msgspec.json.Decoder(ProcessRecord).decode


class ProcessRegister:
    """All processes of an installation."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def write(self, record: ProcessRecord) -> None:
        """Store an entry. Raises StoreError."""
        await self._store.command("HSET", _ENTRIES, record.id, msgspec.json.encode(record).decode())

    async def remove(self, *ids: str) -> None:
        """Remove entries. Raises StoreError."""
        if ids:
            await self._store.command("HDEL", _ENTRIES, *ids)

    async def list(self, now: int) -> Sequence[ProcessRecord]:
        """Return the entries by kind, name, host and start; at `now`, in ms, those without a beat are silent. Remove
        the old ones. Raises StoreError.
        """
        texts = await self._store.command("HGETALL", _ENTRIES)
        found = [_decode(text) for text in texts.values()]
        await self.remove(*(one.id for one in found if _is_old(one, now)))
        kept = [_as_of(one, now) for one in found if not _is_old(one, now)]
        return sorted(kept, key=lambda one: (one.kind, one.name, one.host, one.started))


def _is_old(record: ProcessRecord, now: int) -> bool:
    return now - record.beat > in_ms(ENDED_KEPT if record.state in ENDED else SILENT_KEPT)


def _as_of(record: ProcessRecord, now: int) -> ProcessRecord:
    if record.state in ENDED or now - record.beat < in_ms(SILENT_AFTER):
        return record
    return msgspec.structs.replace(record, state=ProcessState.SILENT, since=record.beat)
