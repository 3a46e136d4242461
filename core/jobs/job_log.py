"""The live log of a job: the last lines, and those that follow (U-22).

A line has an id, and reading goes on after the last line that a reader has seen. About 1000 lines are kept.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from datetime import datetime

from msgspec import Struct

from core.jobs.record import JobId
from core.jobs.storage import place_of
from core.model.clock import from_ms
from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.keys import KEYS
from core.redis.store import Store
from core.redis.stream_reader import StreamReader, entry_fields

BEGIN = "0-0"


class LogLine(Struct, frozen=True):
    """`id`: of the entry; `at`: when it was written."""

    id: str
    at: datetime
    text: str


class JobLog:
    """One per process."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def last(self, job_id: JobId, most: int = 100) -> list[LogLine]:
        """The last lines, the oldest first."""
        found = await self._store.command("XREVRANGE", self._key(job_id), "+", "-", "COUNT", most)
        return [_line(entry_id, entry_fields(flat)) for entry_id, flat in reversed(found)]

    async def follow(self, job_id: JobId, after: str = BEGIN) -> AsyncGenerator[LogLine, None]:
        """The lines after the line `after`, and then every new one, without end."""
        lines: asyncio.Queue[LogLine] = asyncio.Queue()

        def on_entry(entry_id: str, fields: Mapping[str, str]) -> None:
            lines.put_nowait(_line(entry_id, fields))

        reader = StreamReader(self._store, self._key(job_id), after, on_entry)
        reading = asyncio.create_task(reader.run())
        try:
            while True:
                yield await lines.get()
        finally:
            await cancel_and_wait(reading)

    def _key(self, job_id: JobId) -> str:
        shard, name = place_of(job_id, self._store.shards)
        return KEYS["job_log"].at(shard, name)


def _line(entry_id: str, fields: Mapping[str, str]) -> LogLine:
    return LogLine(entry_id, from_ms(entry_id.partition("-")[0]), fields.get("line", ""))
