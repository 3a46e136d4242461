"""What became of the last runs of `./ada sync`, for each source of people, and what the console asks for next.

A run is reported when it has ended. A run that is asked for is taken by the program that watches the source, and is
open until a result says that it answers it.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from core.directory.records import limit_reached
from core.errors import Conflict, NotFound
from core.model.field_types import PRINTABLE
from core.model.json_form import compact_json
from core.model.people import ACCOUNTS
from core.redis.store import Store

MOST_SOURCES = 50
_LATE_MS = 600_000
_LEAVE_FREELY = 5
"""People of a source that may leave one by one in a day, however few it has."""
_DAY_SECONDS = 86_400
_RUN = "?"
_DRY_RUN = "="
"""Stand after the name of a source in the hash: the run that is asked for, and the last dry run."""

SyncFault = Literal["not_found", "unfinished", "unreadable", "empty", "halved", "leaving", "refused", "failed"]


SyncCount = Annotated[int, Meta(ge=0, le=250_000)]
SyncText = Annotated[str, Meta(max_length=512)]
SyncName = Annotated[str, Meta(min_length=1, max_length=128, pattern=PRINTABLE)]


class SyncChange(Struct, frozen=True):
    """A person that a dry run would change: the fields, without their values."""

    id: str
    created: bool
    fields: Sequence[str] = ()


class ReportedSync(Struct, frozen=True, omit_defaults=True):
    """The report of the program that runs a sync. `place`: what was read, without secrets. `answers`: the time `at`
    of the run that was asked for, 0 for another run. `every`: seconds between two runs, 0 if nothing watches the
    source. `fault`: why nothing was changed, with its `detail`. `missing`, `of`: people of the source that are not in
    the file, of all. `disagreements`: `<person> <column>` where another source has said something else before, whose
    value stays. `columns`, `groups`: what the source has named; a failed run keeps the former ones.
    """

    place: SyncText
    answers: Annotated[int, Meta(ge=0, le=2**53)] = 0
    every: Annotated[int, Meta(ge=0, le=31_536_000)] = 0
    fault: SyncFault | None = None
    detail: SyncText = ""
    created: SyncCount = 0
    updated: SyncCount = 0
    unchanged: SyncCount = 0
    left: SyncCount = 0
    missing: SyncCount = 0
    of: SyncCount = 0
    changes: Annotated[Sequence[SyncChange], Meta(max_length=20)] = ()
    disagreements: Annotated[Sequence[SyncText], Meta(max_length=20)] = ()
    columns: Annotated[Sequence[SyncText], Meta(max_length=500)] = ()
    groups: Annotated[Sequence[SyncName], Meta(max_length=5000)] = ()


class SyncResult(ReportedSync, frozen=True, omit_defaults=True):
    """A run that was noted. `ended`: Unix ms."""

    ended: int = 0


class SyncRequest(Struct, frozen=True):
    """A run that is asked for. `at`: Unix ms."""

    dry_run: bool
    at: int


class SourceState(Struct, frozen=True):
    """A source. `last`, `dry_run`: the last runs, None before the first. `requested`: a run that has not begun."""

    source: str
    last: SyncResult | None = None
    dry_run: SyncResult | None = None
    requested: SyncRequest | None = None

    def is_late(self, now: int) -> bool:
        """Return whether the program that watches the source is silent (`now`: Unix ms)."""
        last = self.last
        return last is not None and last.every > 0 and now - last.ended > 2 * last.every * 1000 + _LATE_MS


def systems_of(external_ids: Sequence[str]) -> list[str]:
    """Return the systems that know a person, in the order in which they got to know it."""
    return [one.partition(":")[0] for one in external_ids]


def owner_of(external_ids: Sequence[str], column: str, source: str, columns: Mapping[str, Sequence[str]]) -> str:
    """Return the source that says what stands in a column of a person: the first that has the person and names the
    column. `columns`: of all sources, by their names; what `source` has, it names.
    """
    systems = systems_of(external_ids)
    return next((one for one in systems if one == source or column in columns.get(one, ())), source)


def is_in_another(external_ids: Sequence[str], source: str, sources: Set[str]) -> bool:
    """Return whether another of the sources has a person."""
    return bool(set(systems_of(external_ids)) & (sources - {source, ACCOUNTS}))


class Syncs:
    """The sources of all tenants."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def all(self, tenant: str) -> list[SourceState]:
        """Return all sources, by name."""
        stored = await self._store.command("HGETALL", self._key(tenant))
        names = sorted({name.rstrip(_RUN + _DRY_RUN) for name in stored})
        return [_state(name, stored) for name in names]

    async def report(self, tenant: str, source: str, result: SyncResult, *, dry_run: bool = False) -> SyncResult:
        """Note the result of a run; return it with its time. A failed one keeps what the source has named before.
        Raises Conflict LIMIT_REACHED.
        """
        known = {one.source: one for one in await self.all(tenant)}
        if source not in known and len(known) >= MOST_SOURCES:
            raise limit_reached(f"There are at most {MOST_SOURCES} sources.")
        before = known[source].last if source in known else None
        result = replace(result, ended=self.now())
        if before and result.fault:
            result = replace(result, columns=before.columns, groups=before.groups)
        name = f"{source}{_DRY_RUN}" if dry_run else source
        await self._store.command("HSET", self._key(tenant), name, compact_json(result))
        return result

    async def request(self, tenant: str, source: str, *, dry_run: bool) -> SyncRequest:
        """Ask the program that watches a source for a run. Raises NotFound SYNC_NOT_FOUND, Conflict
        SYNC_NOT_WATCHED.
        """
        found = next((one for one in await self.all(tenant) if one.source == source), None)
        if found is None:
            raise _not_found(source)
        if found.last is None or not found.last.every or found.is_late(self.now()):
            raise Conflict("SYNC_NOT_WATCHED", "No program watches this source: ./ada sync … --every 1h does.")
        request = SyncRequest(dry_run, self.now())
        await self._store.write("HSET", self._key(tenant), f"{source}{_RUN}", compact_json(request))
        return request

    async def forget(self, tenant: str, source: str) -> None:
        """Forget a source, and how many have left it today; its people stay. Raises NotFound SYNC_NOT_FOUND."""
        names = (source, f"{source}{_RUN}", f"{source}{_DRY_RUN}")
        await self._store.command("DEL", self._departures(tenant, source))
        if not await self._store.write("HDEL", self._key(tenant), *names):
            raise _not_found(source)

    async def columns(self, tenant: str) -> dict[str, Sequence[str]]:
        """Return the columns that each source names."""
        return {one.source: one.last.columns for one in await self.all(tenant) if one.last}

    async def count_departure(self, tenant: str, source: str, count: Callable[[], Awaitable[int]]) -> None:
        """Count a person that leaves a source which names them one by one. In a day (UTC) fewer than half of its people
        may, and 5 always. `count`: returns how many it has, this one among them.

        Raises Conflict SYNC_HALVED, until the next day or until the source is forgotten.
        """
        key = self._departures(tenant, source)
        left = await self._store.write_lasting(2 * _DAY_SECONDS * 1000, "HINCRBY", key, "left", 1)
        if left <= _LEAVE_FREELY or 2 * left < int(await self._store.command("HGET", key, "of") or 0):
            return
        of = await count() + left - 1
        await self._store.command("HSET", key, "of", of)
        if 2 * left >= of:
            await self._store.command("HINCRBY", key, "left", -1)
            detail = (
                f"{left} of {of} people would have left {source} today, so it is taken for broken; nothing was "
                f"changed. If they have left, forget the source: the page Synchronisation, DELETE /v1/syncs/{source}."
            )
            raise Conflict("SYNC_HALVED", detail)

    def now(self) -> int:
        return self._store.now_ms()

    def _key(self, tenant: str) -> str:
        return self._store.tenant_key("syncs", tenant)

    def _departures(self, tenant: str, source: str) -> str:
        return self._store.tenant_key("departures", tenant, source, str(self.now() // (_DAY_SECONDS * 1000)))


def _state(name: str, stored: dict[str, str]) -> SourceState:
    last, dry_run = (
        msgspec.json.decode(stored[key], type=SyncResult) if key in stored else None
        for key in (name, f"{name}{_DRY_RUN}")
    )
    asked = stored.get(f"{name}{_RUN}")
    request = msgspec.json.decode(asked, type=SyncRequest) if asked else None
    if request:
        answer = dry_run if request.dry_run else last
        request = None if answer and answer.answers == request.at else request
    return SourceState(name, last, dry_run, request)


def _not_found(source: str) -> NotFound:
    return NotFound("SYNC_NOT_FOUND", f"No sync of the source {source!r} has run yet.")
