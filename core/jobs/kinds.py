"""The kinds of jobs of an installation: name → schedule, written again and again by the processes that run them."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

import msgspec

from core.errors import Invalid
from core.jobs.record import KIND
from core.jobs.schedule import Schedule, StoredSchedule
from core.jobs.signals import Schema, check_data
from core.redis.keys import KEYS
from core.redis.store import Store

FRESH = timedelta(minutes=1)
"""A process publishes its kinds more often than that."""


_QUERY = "?"
"""Stands between a kind and the name of its query."""


class JobKind(msgspec.Struct, frozen=True):
    """`waiting`: what its jobs wait for now, "" if a process runs them."""

    schedule: Schedule
    waiting: str


class _StoredKind(StoredSchedule, frozen=True, omit_defaults=True):
    """`published`: by the process that did it last (ms). `signals`: the schema of each that the kind declares."""

    published: int = 0
    signals: dict[str, Any] = msgspec.field(default_factory=dict)


class JobKinds:
    """A process that only controls jobs has none of their code, so it finds their schedules here."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def publish(
        self,
        schedules: Mapping[str, Schedule],
        queries: Iterable[tuple[str, str]] = (),
        signals: Mapping[str, Mapping[str, Schema]] | None = None,
    ) -> None:
        """Write the kinds that this process runs, their queries (kind, name) and the types of their signals; those of
        other processes stay. Raises Invalid JOB_KIND_MALFORMED.
        """
        for name in schedules:
            if not KIND.fullmatch(name):
                raise Invalid("JOB_KIND_MALFORMED", f"{name!r} is no name of a kind of job: {KIND.pattern}")
        now, types = self._store.now_ms(), signals or {}
        kinds = {name: _encoded(schedule, now, types.get(name, {})) for name, schedule in schedules.items()}
        words = [word for kind in kinds.items() for word in kind]
        words += [word for kind, name in queries for word in (f"{kind}{_QUERY}{name}", str(now))]
        if words:
            await self._store.command("HSET", KEYS["job_kinds"].at(0), *words)

    async def find(self, kind: str) -> JobKind:
        """Return a kind of job. Raises Invalid JOB_KIND_UNKNOWN."""
        text = await self._store.command("HGET", KEYS["job_kinds"].at(0), kind)
        if text is None:
            known = ", ".join(await self.names()) or "none"
            raise Invalid("JOB_KIND_UNKNOWN", f"There is no kind of job {kind!r}; known are: {known}.", "kind")
        stored = msgspec.json.decode(text, type=_StoredKind)
        return JobKind(stored.schedule, "" if self._is_fresh(stored.published) else _waiting_for(kind))

    async def schedule(self, kind: str) -> Schedule | None:
        """Return the schedule of a kind; None if no process has ever run it."""
        text = await self._store.command("HGET", KEYS["job_kinds"].at(0), kind)
        return msgspec.json.decode(text, type=_StoredKind).schedule if text else None

    async def check_signal(self, kind: str, name: str, data: Any) -> None:
        """Check the data of a signal by what the kind declares. Raises Invalid SIGNAL_OF_OTHER_TYPE."""
        text = await self._store.command("HGET", KEYS["job_kinds"].at(0), kind)
        schema = msgspec.json.decode(text, type=_StoredKind).signals.get(name) if text else None
        if schema is not None:
            check_data(name, schema, data)

    async def waiting(self, kind: str) -> str:
        """Return what jobs of this kind wait for now, "" if a process runs them."""
        try:
            return (await self.find(kind)).waiting
        except Invalid:
            return _waiting_for(kind)

    async def names(self) -> list[str]:
        """Return all kinds that a process has ever run here, sorted."""
        return sorted(
            name for name in await self._store.command("HKEYS", KEYS["job_kinds"].at(0)) if _QUERY not in name
        )

    async def queries(self, kind: str) -> list[str]:
        """Return the queries of a kind that a process answers now, sorted."""
        stored: Mapping[str, str] = await self._store.command("HGETALL", KEYS["job_kinds"].at(0))
        fresh = (name.split(_QUERY) for name, at in stored.items() if _QUERY in name and self._is_fresh(int(at)))
        return sorted(name for of, name in fresh if of == kind)

    def _is_fresh(self, published: int) -> bool:
        return self._store.now_ms() - published < FRESH.total_seconds() * 1000


def _waiting_for(kind: str) -> str:
    return f"waits for a process that runs jobs of the kind {kind!r}"


def _encoded(schedule: Schedule, now: int, signals: Mapping[str, Schema]) -> str:
    facts = msgspec.structs.asdict(StoredSchedule.of(schedule))
    stored = _StoredKind(**facts, published=now, signals=dict(signals))
    return msgspec.json.encode(stored).decode()
