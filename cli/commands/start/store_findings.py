"""Checks of the store for doctor, and of its Sentinels.

Of the store: version, writes, layout, loss, clock, and whether sleeping couriers are woken; role, replicas and their
lag, memory, persistence, library; of a cluster whether its nodes answer and agree, and whether each shard has a
primary. Of the Sentinels: whether they agree, whether ADA_REDIS_URL names all, and whether they replace a lost primary
as soon as docs/high-availability.md has it.
"""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from redis.exceptions import RedisError

from core.errors import (
    DataMoved,
    FunctionFault,
    LayoutUnknown,
    SetupError,
    ShardsDiffer,
    StoreRefuses,
    StoreUnavailable,
)
from core.model.durability import Durability
from core.processes import LOSS_REMEDY, last_loss
from core.redis.cluster import ClusterNodes, ClusterView, Place, view_of
from core.redis.connection import ServerAddress, StoreConnection
from core.redis.keys import layout_of_shards
from core.redis.keyspace_events import SETTING, ensure_notifications
from core.redis.refusals import grant
from core.redis.server_checks import check_channels, check_layout, check_writes, notification_problem
from core.redis.store import Store
from core.redis.topology import ANSWER


@dataclass(frozen=True)
class Finding:
    """The result of one check. `is_good` is None if there is nothing to check, for example without credentials."""

    what: str
    is_good: bool | None
    detail: str
    repair: str = ""

    def __str__(self) -> str:
        mark = {True: "good", False: "BAD ", None: "    "}[self.is_good]
        return f"{mark}  {self.what:<12} {self.detail}" + (f"\n                   {self.repair}" if self.repair else "")


_REPLICA = re.compile(
    r"^slave\d+:ip=(?P<ip>[^,]+),port=(?P<port>\d+),state=(?P<state>\w+),offset=(?P<offset>\d+)", re.MULTILINE
)
RUNBOOK = "docs/runbook.md"


async def check_replication(store: Store, durability: Durability) -> AsyncIterator[Finding]:
    """Emit what is seen of each, on every primary. What a server hides from this user is no finding."""
    for primary, homes in store.shard_map.primaries().items():
        async for finding in _check_primary(store, homes[0], durability):
            at = f"{primary.place}: " if store.shard_map.cluster else ""
            yield replace(finding, detail=at + finding.detail)
    if store.shard_map.cluster:
        yield await check_cluster(store, store.shard_map.cluster)


async def _check_primary(store: Store, home: int, durability: Durability) -> AsyncIterator[Finding]:
    for section, check in (("replication", _replicas), ("memory", _memory), ("persistence", _persistence)):
        try:
            text = str(await store.command_at(home, "INFO", section))
        except FunctionFault as refusal:
            yield Finding(section, None, f"hidden from this user ({refusal})")
        else:
            yield check(text, durability)
    yield await _library(store, home)


def _replicas(text: str, durability: Durability) -> Finding:
    facts, needed = facts_of(text), durability is Durability.REPLICA
    if facts.get("role") != "master":
        return Finding(
            "role", False, "replica: it takes no writes", "let ADA_REDIS_URL name the primary or its Sentinels"
        )
    end = int(facts["master_repl_offset"])
    lags = [
        f"{one['ip']}:{one['port']} {one['state']}, {max(0, end - int(one['offset']))} bytes behind"
        for one in _REPLICA.finditer(text)
    ]
    if not lags:
        repair = f"ADA_DURABILITY=replica accepts nothing without one: {RUNBOOK}" if needed else ""
        return Finding("role", False if needed else None, "primary without replicas", repair)
    return Finding("role", True, f"primary with {len(lags)} replicas: {'; '.join(lags)}; durability is {durability}")


def _memory(text: str, _: Durability) -> Finding:
    facts = facts_of(text)
    limit, policy = facts.get("maxmemory_human", "?"), facts.get("maxmemory_policy", "?")
    detail = f"{facts.get('used_memory_human')} used, maxmemory {'not set' if limit == '0B' else limit}, {policy}"
    return Finding("memory", policy == "noeviction", detail)


def _persistence(text: str, _: Durability) -> Finding:
    facts = facts_of(text)
    if facts.get("aof_enabled") != "1":
        return Finding("persistence", None, "append-only file off: a restart of this server loses what it had")
    status = facts.get("aof_last_write_status", "?")
    return Finding("persistence", status == "ok", f"append-only file on, last write {status}")


async def _library(store: Store, home: int) -> Finding:
    found = await store.command_at(home, "FUNCTION", "LIST", "LIBRARYNAME", store.library.name)
    return Finding("library", bool(found), f"{store.library.name} is {'loaded' if found else 'missing'} on the primary")


def facts_of(text: str) -> Mapping[str, str]:
    return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)


CLOCK_TOLERANCE = 1.0
"""Seconds between our clock and the server's. The server's clock decides when a delivery is due."""


async def check_notifications(store: Store) -> Finding:
    """Return whether sleeping couriers are woken. Sets the server's flags if they are missing, and reports it."""
    state = await ensure_notifications(store.command)
    if problem := notification_problem(state):
        return Finding(
            "wake-up", False, f"{problem.setting} is {problem.found or 'empty'}: {problem.why}", problem.correction
        )
    try:
        await check_channels(store)
    except (SetupError, StoreUnavailable) as error:
        return Finding("wake-up", False, str(error))
    if state.found is None:
        detail = f"{SETTING} is hidden from this user ({state.refusal}); it must contain K, g and x"
        return Finding("wake-up", None, detail, grant(store.address))
    if state.changed:
        return Finding(
            "wake-up", True, f"CHANGED: {state.changed}", "redis-cli CONFIG REWRITE, so that a restart keeps it"
        )
    return Finding("wake-up", True, f"{SETTING} is {state.found}")


async def check_version(store: Store) -> Finding:
    facts = facts_of(str(await store.command("INFO", "server")))
    name = facts.get("server_name", "redis")
    version = facts.get(f"{name}_version", facts.get("redis_version"))
    return Finding("redis", True, f"{name} {version}")


async def check_store_writes(store: Store) -> Finding:
    try:
        await check_writes(store)
    except StoreRefuses as fault:
        return Finding("writes", False, f"{fault.code}: {fault}")
    return Finding("writes", True, "the server takes writes")


async def check_data_layout(store: Store) -> Finding:
    try:
        await check_layout(store)
    except (DataMoved, LayoutUnknown, ShardsDiffer) as error:
        return Finding("layout", False, str(error))
    return Finding("layout", True, str(layout_of_shards(store.shards)))


async def check_loss(store: Store) -> Finding:
    if loss := await last_loss(store):
        return Finding("stored data", False, loss.sentence, LOSS_REMEDY)
    return Finding("stored data", True, "no loss was noticed")


async def check_clock(store: Store) -> Finding:
    """Return the difference between the two clocks, corrected by half of the round trip."""
    began = time.time()
    seconds, micros = map(int, await store.command("TIME"))
    difference = abs(seconds + micros / 1e6 - (began + time.time()) / 2)
    if difference > CLOCK_TOLERANCE:
        return Finding(
            "clock", False, f"the server's clock differs from ours by {difference:.1f} s", "synchronize both with NTP"
        )
    return Finding("clock", True, f"differs from the server's by {difference * 1000:.0f} ms")


_OPEN = re.compile(r"\[(\d+)-[<>]-\w+\]")
"""A slot that moves key by key, in CLUSTER NODES."""


async def check_cluster(store: Store, nodes: ClusterNodes) -> Finding:
    places = sorted(store.shard_map.known_places)
    seen = dict(zip(places, await asyncio.gather(*(_seen(nodes, place) for place in places)), strict=True))
    views = [view for view in seen.values() if isinstance(view, ClusterView)]
    faults = [f"{host}:{port} {what}" for (host, port), what in seen.items() if isinstance(what, str)]
    lost = [shard for shard in range(store.shards) if not _is_owned(store.shard_map.slot_of(shard), views)]
    if lost:
        faults.insert(0, f"shards {', '.join(map(str, lost))} have no primary")
    if views and (disagreeing := len({_owners(view) for view in views}) - 1):
        faults.append(f"{disagreeing} other views of the slots")
    if moving := await _moving(store):
        faults.append(f"slots {', '.join(moving)} move key by key: their shards wait")
    detail = f"{len(store.shard_map.primaries())} primaries, {len(places)} nodes, {store.shards} shards"
    if not faults:
        return Finding("cluster", True, detail)
    return Finding("cluster", False if lost or moving else None, f"{detail}; {'; '.join(faults)}", RUNBOOK)


async def _seen(nodes: ClusterNodes, place: Place) -> ClusterView | str:
    """Return what a node sees, or why it does not answer."""
    try:
        return await view_of(nodes, place)
    except (RedisError, OSError, TimeoutError) as fault:
        return f"does not answer ({str(fault) or type(fault).__name__})"


def _owners(view: ClusterView) -> frozenset[tuple[int, int, Place]]:
    return frozenset((one.first, one.last, one.owner) for one in view.slots)


def _is_owned(slot: int, views: Sequence[ClusterView]) -> bool:
    return any(view.owner_of(slot) for view in views)


async def _moving(store: Store) -> list[str]:
    """Return the slots whose keys are being moved one by one. Each primary names only its own."""
    try:
        texts = await store.command_everywhere("CLUSTER", "NODES")
    except FunctionFault:
        return []
    return sorted({slot for text in texts.values() for slot in _OPEN.findall(str(text))})


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
