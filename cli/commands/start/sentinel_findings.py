"""Checks of the Sentinels for doctor: whether they agree, whether ADA_REDIS_URL names all, and whether they replace a
lost primary as soon as docs/high-availability.md has it.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from redis.exceptions import RedisError

from cli.commands.start.store_findings import RUNBOOK, Finding
from core.model.durability import Durability
from core.redis.connection import ServerAddress, StoreConnection
from core.redis.store import Store
from core.redis.topology import ANSWER

_LEAST = 3
"""Sentinels. Of two none may be lost."""


@dataclass(frozen=True)
class _Period:
    """A setting of Sentinels in milliseconds. `why`: what another value does, with its seconds as `{seconds}`."""

    setting: str
    least: int
    most: int
    wanted: int
    why: str


_PERIODS = (
    _Period("down-after-milliseconds", 2000, 10_000, 3000, "all stands still for this long when a primary is lost"),
    _Period("failover-timeout", 0, 60_000, 20_000, "a split vote is repeated after twice this time"),
)
_TOO_SHORT = "a replica may be promoted that misses what was acknowledged"


@dataclass(frozen=True)
class _View:
    """The reply of a Sentinel. `names`: the primary, or why none; `id`: its own, or ""; `facts`: what it knows of the
    primary; `quorum_fault`: why it could promote nothing at present, or "".
    """

    place: str
    names: str
    id: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    quorum_fault: str = ""

    @property
    def known(self) -> int:
        """The number of Sentinels that it knows, with itself; 0 if it did not reply."""
        return 1 + int(self.facts["num-other-sentinels"]) if self.facts else 0


async def check_sentinels(store: Store, durability: Durability) -> AsyncIterator[Finding]:
    """Emit nothing where ADA_REDIS_URL names no Sentinels."""
    if not (sentinels := store.topology.sentinels):
        return
    views = await asyncio.gather(*(_view_of(sentinels.name, one) for one in sentinels.sentinels))
    yield _agreement(views, store.address)
    for finding in (*_unnamed(views, durability), *_promotion(views, sentinels.name)):
        yield finding


def _agreement(views: Sequence[_View], primary: ServerAddress) -> Finding:
    listed = ", ".join(f"{view.place} names {view.names}" for view in views)
    agreed = [view.names for view in views].count(f"{primary.host}:{primary.port}")
    if agreed == len(views):
        return Finding("sentinels", True, listed)
    return Finding("sentinels", None if agreed > len(views) // 2 else False, listed, RUNBOOK)


def _unnamed(views: Sequence[_View], durability: Durability) -> Iterator[Finding]:
    """Emit whether ADA_REDIS_URL leaves out Sentinels. One that it names twice is one; a silent one is another."""
    named = len({view.id for view in views} - {""}) + sum(not view.id for view in views)
    known = max(view.known for view in views)
    if named < known:
        is_bad = durability is Durability.REPLICA and named < known - known // 2
        repair = (
            "name all: with fewer than half of them ADA_DURABILITY=replica accepts nothing (STORE_PRIMARY_IN_DOUBT)"
        )
        yield Finding("sentinels", False if is_bad else None, f"ADA_REDIS_URL names {named} of {known}", repair)


def _promotion(views: Sequence[_View], name: str) -> Iterator[Finding]:
    """Emit what keeps the Sentinels from replacing a lost primary, or delays it."""
    answering = [view for view in views if view.facts]
    faults = [fault for view in answering for fault in _faults(view, name)]
    yield from faults
    if answering and not faults:
        lost, again = (max(int(view.facts[one.setting]) for view in answering) for one in _PERIODS)
        detail = f"a primary is lost after {lost / 1000:g} s; a split vote is repeated after {2 * again / 1000:g} s"
        yield Finding("promotion", True, detail)


def _faults(view: _View, name: str) -> Iterator[Finding]:
    quorum, known = int(view.facts["quorum"]), view.known
    if view.quorum_fault:
        detail = f"{view.place} could promote nothing at present: {view.quorum_fault}"
        yield Finding("promotion", False, detail, "start the other Sentinels; each must reach each")
    if known < _LEAST:
        detail = f"{view.place} knows {known} Sentinels: none of them may be lost"
        yield Finding("promotion", None, detail, "start three, each on a machine of its own: docs/high-availability.md")
    elif quorum > known // 2 + 1:
        detail = f"{view.place} wants {quorum} of {known} Sentinels to agree, so fewer than half of them may be lost"
        yield Finding("promotion", None, detail, _command(view, name, "quorum", known // 2 + 1))
    for one in _PERIODS:
        found = int(view.facts[one.setting])
        if not one.least <= found <= one.most:
            why = one.why if found > one.most else _TOO_SHORT
            detail = f"{one.setting} of {view.place} is {found}, not {one.wanted}: {why}"
            yield Finding("promotion", None, detail, _command(view, name, one.setting, one.wanted))


def _command(view: _View, name: str, setting: str, value: int) -> str:
    host, _, port = view.place.rpartition(":")
    return f"redis-cli -h {host} -p {port} SENTINEL SET {name} {setting} {value}"


async def _view_of(name: str, sentinel: ServerAddress) -> _View:
    """Return what a Sentinel reports, or why it reports nothing."""
    place = f"{sentinel.host}:{sentinel.port}"
    commands = (("GET-MASTER-ADDR-BY-NAME", name), ("MYID",), ("MASTER", name), ("CKQUORUM", name))
    try:
        async with asyncio.timeout(ANSWER):
            connection = await StoreConnection.open(sentinel)
            try:
                found, own, facts, quorum = await connection.request_all([("SENTINEL", *words) for words in commands])
            finally:
                connection.close()
    except (RedisError, OSError, TimeoutError) as fault:
        return _View(place, f"nothing ({str(fault) or type(fault).__name__})")
    if isinstance(found, RedisError):
        return _View(place, f"nothing ({found})")
    return _View(
        place,
        ":".join(found) if found else "nothing",
        "" if isinstance(own, RedisError) else own,
        {} if isinstance(facts, RedisError) else facts,
        str(quorum) if isinstance(quorum, RedisError) else "",
    )
