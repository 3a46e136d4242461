"""The live log of a job: the last 1000 lines, numbered from 1, and those that follow (U-22).

A reader goes on after the last line that it has seen. It sleeps without polling: a follower sets the job's bell, a new
line deletes it (`lua/jobs/modules/job_log.lua`), and that wakes all followers of the job.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from datetime import datetime

from msgspec import Struct

from core.errors import StoreRefuses
from core.jobs.record import JobId
from core.jobs.storage import place_of
from core.model.clock import from_ms
from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.keys import KEYS
from core.redis.keyspace_events import KeyspaceEvents
from core.redis.store import Store

BEGIN = "0"
_PAGE = 50
LONGEST_SLEEP = 10.0
"""Seconds. A lost event costs a follower no more."""

_BELL_MS = 60_000


class LogLine(Struct, frozen=True):
    """`id`: its number; `at`: when it was written."""

    id: str
    at: datetime
    text: str


class JobLog:
    """Reads and follows the logs of jobs."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def last(self, job_id: JobId, most: int = 100) -> list[LogLine]:
        """Return the last lines, the oldest first."""
        return await self._from(job_id, -most)

    async def follow(self, job_id: JobId, after: str = BEGIN) -> AsyncGenerator[LogLine, None]:
        """Emit the lines after the line `after`, and then every new one, without end."""
        news, seen, bell = asyncio.Event(), int(after), self._key("job_bell", job_id)
        listening = asyncio.create_task(KeyspaceEvents(self._store, {bell: news.set}).run())
        try:
            while True:
                news.clear()
                with suppress(StoreRefuses):
                    await self._store.command("SET", bell, "", "PX", _BELL_MS)
                for line in await self._after(job_id, seen):
                    seen = int(line.id)
                    yield line
                with suppress(TimeoutError):
                    await asyncio.wait_for(news.wait(), LONGEST_SLEEP)
        finally:
            await cancel_and_wait(listening)

    async def _after(self, job_id: JobId, seen: int) -> list[LogLine]:
        """Return the lines after the number `seen`; all, if the log is not the one in which that was seen."""
        lines = await self._from(job_id, -_PAGE)
        if lines and int(lines[0].id) > seen + 1:
            lines = await self._from(job_id, 0)
        is_other = lines and int(lines[-1].id) < seen
        return [line for line in lines if is_other or int(line.id) > seen]

    async def _from(self, job_id: JobId, start: int) -> list[LogLine]:
        """Return the lines from this place on."""
        found = await self._store.command("LRANGE", self._key("job_log", job_id), start, -1)
        return [_line(entry) for entry in found]

    def _key(self, kind: str, job_id: JobId) -> str:
        shard, name = place_of(job_id, self._store.shards)
        return KEYS[kind].at(shard, name)


def _line(entry: str) -> LogLine:
    number, ms, text = entry.split(" ", 2)
    return LogLine(number, from_ms(ms), text)
