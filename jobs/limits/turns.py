"""When a call of an iteration may begin (`Limit.rate`), and what follows if the service refuses it for its rate."""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta

from core.errors import Invalid
from core.jobs import Jobs
from core.jobs.storage import key_name
from core.redis.store import Store
from jobs.limits.limit import Limit
from jobs.recording.guard import Guard
from jobs.signals import Suspended, Throttled

_SHARD = 0
_SHORT = timedelta(seconds=1)
"""So long a call waits in its process; if its turn is later, the iteration sleeps."""

REFUSED_FOR = timedelta(minutes=1)
"""If the service does not say how long it refuses calls."""


class Turns:
    """The calls of one attempt."""

    def __init__(self, store: Store, limits: Sequence[Limit], guard: Guard, jobs: Jobs) -> None:
        self._store = store
        self._limits = {limit.name: limit for limit in limits if limit.rate is not None}
        self._guard = guard
        self._now = jobs.now

    async def take(self, name: str) -> None:
        """Wait until a call of this limit may begin, and count it. Raises Suspended if that is later; Invalid
        LIMIT_UNKNOWN.
        """
        if not name:
            return
        limit, job = self._find(name), self._guard.job
        per_ms = int(limit.per.total_seconds() * 1000)
        words = (limit.id_of(job), key_name(job.id), limit.rate or 0, per_ms)
        while wait_ms := int(await self._store.run("take_turn", _SHARD, *words)):
            wait = timedelta(milliseconds=wait_ms)
            if wait > _SHORT:
                raise self._suspended(limit, self._now() + wait)
            await asyncio.sleep(wait.total_seconds())
            self._guard.check()

    async def refuse(self, name: str, refusal: Throttled) -> Suspended:
        """Let no job make a call of this limit for the time that the service asks for. Returns what ends this
        attempt.
        """
        limit, wait = self._find(name), refusal.after or REFUSED_FOR
        wait_ms = max(1, int(wait.total_seconds() * 1000))
        await self._store.run("refuse_calls", _SHARD, limit.id_of(self._guard.job), wait_ms)
        return self._suspended(limit, self._now() + wait)

    def _suspended(self, limit: Limit, until: datetime) -> Suspended:
        return self._guard.suspend(until, [], f"waits for its turn: limit {limit.shown_for(self._guard.job)}")

    def _find(self, name: str) -> Limit:
        if name not in self._limits:
            known = ", ".join(map(repr, self._limits)) or "none"
            raise Invalid("LIMIT_UNKNOWN", f"The job has no limit {name!r} with a rate; it has: {known}.")
        return self._limits[name]
