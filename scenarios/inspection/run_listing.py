"""The runs of a tenant, the newest first: by person, scenario, state and time, from the indexes of Redis."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime

import msgspec
from msgspec import Struct

from core.model.clock import from_ms, to_ms, write_time
from core.model.history_key import own_name
from core.redis.keys import KEYS
from core.redis.store import Store

_MOST_READ = 2000
"""Runs that are looked at for one page."""
_BATCH = 200
_FIELDS = ("person", "scenarios", "version", "began", "ended", "dropped", "faults", "event")

Position = tuple[int, str]
"""When a run began (ms), and its id."""


class RunFilter(Struct, frozen=True):
    """A filter of runs; "" and None match all. `state`: running, over, dropped or with_faults. `person`:
    channel:user_id.
    """

    person: str = ""
    scenario: str = ""
    state: str = ""
    since: datetime | None = None
    until: datetime | None = None


class RunFacts(Struct, frozen=True):
    """The facts shown of every run. `state`: running, over or dropped. `version`: that of the bot's files with which it
    began.
    """

    id: str
    person: str
    state: str
    version: str
    scenarios: Sequence[str]
    began: str
    ended: str | None


class RunSummary(RunFacts, frozen=True):
    """A run in a list. `faults`: how many of its actions failed or are unknown. `text`: what the person wrote or
    pressed. `name`: of the person, if the directory knows it.
    """

    faults: int
    text: str
    name: str | None = None


class RunListing:
    """One per process."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def page(
        self, tenant: str, wanted: RunFilter, cursor: str | None, limit: int
    ) -> tuple[list[RunSummary], str | None]:
        """Return a page, and the cursor of the next one. At most 2,000 runs are read, so a page may be short."""
        found: list[RunSummary] = []
        position = _position(cursor)
        for _ in range(_MOST_READ // _BATCH):
            batch = await self._batch(tenant, wanted, position)
            for position, summary in batch:
                if summary and _fits(summary, wanted):
                    found.append(summary)
                    if len(found) == limit:
                        return found, _cursor(position)
            if len(batch) < _BATCH:
                return found, None
        return found, _cursor(position)

    async def _batch(
        self, tenant: str, wanted: RunFilter, position: Position
    ) -> list[tuple[Position, RunSummary | None]]:
        shards = range(self._store.shards)
        if wanted.person:
            shards = range(at := self._store.shard_of(own_name(tenant, wanted.person)), at + 1)
        lists = await asyncio.gather(*(self._behind(shard, tenant, wanted, position) for shard in shards))
        newest = sorted((one for found in lists for one in found), reverse=True)[:_BATCH]
        rows = await asyncio.gather(*(self._fields(run) for _, run in newest))
        return [(place, _summary(place[1], row)) for place, row in zip(newest, rows, strict=True)]

    async def _behind(self, shard: int, tenant: str, wanted: RunFilter, position: Position) -> list[Position]:
        """Return up to a batch of runs behind a position. Several may have begun in the same ms."""
        key, oldest = _index(shard, tenant, wanted), to_ms(wanted.since) if wanted.since else "-inf"
        newest = min(position[0], to_ms(wanted.until)) if wanted.until else position[0]
        found: list[Position] = []
        offset = 0
        while len(found) < _BATCH:
            limits = "LIMIT", offset, _BATCH, "WITHSCORES"
            rows = await self._store.command("ZRANGE", key, newest, oldest, "BYSCORE", "REV", *limits)
            places = [(int(float(score)), run) for run, score in rows]
            found += [place for place in places if place < position]
            offset += _BATCH
            if len(rows) < _BATCH:
                break
        return found[:_BATCH]

    async def _fields(self, run: str) -> Sequence[str | None]:
        key = KEYS["run"].at(int(run.partition(".")[0]), run)
        return list(await self._store.command("HMGET", key, *_FIELDS))


def _index(shard: int, tenant: str, wanted: RunFilter) -> str:
    """Return the smallest index that has all runs that are wanted; what else is wanted is compared run by run."""
    if wanted.person:
        return KEYS["runs"].at(shard, tenant, wanted.person)
    if wanted.state == "running":
        return KEYS["open_runs"].at(shard, tenant)
    if wanted.state == "with_faults":
        return KEYS["faulty_runs"].at(shard, tenant)
    if wanted.scenario:
        return KEYS["scenario_runs"].at(shard, tenant, wanted.scenario)
    return KEYS["tenant_runs"].at(shard, tenant)


def _summary(run: str, fields: Sequence[str | None]) -> RunSummary | None:
    """Return what is shown of a run; None if it is not stored any more."""
    person, scenarios, version, began, ended, dropped, faults, event = fields
    if person is None or scenarios is None or version is None or began is None:
        return None
    names = msgspec.json.decode(scenarios, type=list[str])
    state = "dropped" if dropped else "over" if ended else "running"
    end = write_time(from_ms(int(ended))) if ended else None
    return RunSummary(
        run, person, state, version, names, write_time(from_ms(int(began))), end, int(faults or 0), _text(event)
    )


def _text(event: str | None) -> str:
    values = msgspec.json.decode(event or "{}", type=dict[str, object])
    return str(values.get("event_text") or values.get("callback_data") or "")[:200]


_STATES: dict[str, Callable[[RunSummary], bool]] = {
    "running": lambda run: run.state == "running",
    "over": lambda run: run.state == "over",
    "dropped": lambda run: run.state == "dropped",
    "with_faults": lambda run: run.faults > 0,
}


def _fits(run: RunSummary, wanted: RunFilter) -> bool:
    if wanted.scenario and wanted.scenario not in run.scenarios:
        return False
    return not wanted.state or _STATES[wanted.state](run)


def _position(cursor: str | None) -> Position:
    began, _, run = (cursor or "").partition("-")
    return (int(began), run) if cursor else (1 << 53, "")


def _cursor(position: Position) -> str:
    return f"{position[0]}-{position[1]}"
