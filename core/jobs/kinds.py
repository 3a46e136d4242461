"""The kinds of jobs of an installation: name → schedule, written by the processes that run them."""

from collections.abc import Mapping
from datetime import time, timedelta

import msgspec

from core.errors import Invalid
from core.jobs.record import KIND
from core.jobs.schedule import DailyWindow, Schedule
from core.redis.keys import KEYS
from core.redis.store import Store


class _StoredKind(msgspec.Struct, frozen=True, omit_defaults=True):
    seconds: float
    begin: time | None = None
    end: time | None = None


class JobKinds:
    """A process that only controls jobs has none of their code, so it finds their schedules here."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def publish(self, schedules: Mapping[str, Schedule]) -> None:
        """Write the kinds that this process runs; those of other processes stay. Raises Invalid JOB_KIND_MALFORMED."""
        for name in schedules:
            if not KIND.fullmatch(name):
                raise Invalid("JOB_KIND_MALFORMED", f"{name!r} is no name of a kind of job: {KIND.pattern}")
        words = [word for name, schedule in schedules.items() for word in (name, _encoded(schedule))]
        if words:
            await self._store.command("HSET", KEYS["job_kinds"].at(0), *words)

    async def find(self, kind: str) -> Schedule:
        """Raises Invalid JOB_KIND_UNKNOWN."""
        stored = await self._store.command("HGET", KEYS["job_kinds"].at(0), kind)
        if stored is None:
            known = ", ".join(await self.names()) or "none"
            raise Invalid("JOB_KIND_UNKNOWN", f"There is no kind of job {kind!r}; known are: {known}.", "kind")
        return _decoded(stored)

    async def names(self) -> list[str]:
        """All kinds that a process has ever run here, sorted."""
        return sorted(await self._store.command("HKEYS", KEYS["job_kinds"].at(0)))


def _encoded(schedule: Schedule) -> str:
    window = schedule.window
    kind = _StoredKind(
        schedule.period.total_seconds(), window.begin if window else None, window.end if window else None
    )
    return msgspec.json.encode(kind).decode()


def _decoded(stored: str) -> Schedule:
    kind = msgspec.json.decode(stored, type=_StoredKind)
    window = DailyWindow(kind.begin, kind.end) if kind.begin is not None and kind.end is not None else None
    return Schedule(timedelta(seconds=kind.seconds), window)
