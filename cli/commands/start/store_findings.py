"""Checks of the store for doctor, and of its Sentinels.

Of the store: role, replicas and their lag, memory, persistence, library; of a cluster whether its nodes answer and
agree, and whether each shard has a primary. Of the Sentinels: whether they agree, whether ADA_REDIS_URL names all, and
whether they replace a lost primary as soon as docs/high-availability.md has it.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from redis.exceptions import RedisError

from cli.services.offices import unread_office
from cli.settings.bot_folders import tenants_of_bots
from cli.settings.settings import Settings
from core.directory import Directory
from core.directory.offices import OfficeState, state_of_office
from core.errors import FunctionFault
from core.model.durability import Durability
from core.redis.cluster import ClusterNodes, ClusterView, Place, view_of
from core.redis.connection import ServerAddress, StoreConnection
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
    """Return the lines of INFO as a mapping."""
    return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)


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


async def check_named_groups(store: Store, settings: Settings) -> AsyncIterator[Finding]:
    """Emit whether the group of ADA_OPERATORS has members, and that of ADA_OFFICE a reader: what is sent to an unknown
    group reaches nobody, without an error.
    """
    directory, tenant = Directory(store), settings.bot_tenant
    if group := settings.operators:
        (known,) = await directory.groups.lookup(tenant, [group])
        loss = "nobody is informed when a channel stops"
        if known is None:
            repair = f"./ada group add {group}, or correct ADA_OPERATORS"
            yield Finding("operators", False, f"there is no group {group!r} in the tenant {tenant!r}: {loss}", repair)
        elif not (await directory.users.page(tenant, group=group)).items:
            repair = f"./ada group add-member {group} ID"
            yield Finding("operators", False, f"the group {group!r} has no members: {loss}", repair)
        else:
            yield Finding("operators", True, f"the members of the group {group!r}")
    for tenant in tenants_of_bots(settings) if settings.office else ():
        yield await check_office(directory, settings, tenant)


async def check_office(directory: Directory, settings: Settings, tenant: str) -> Finding:
    """Return whether somebody reads the office of a tenant."""
    is_main, group = tenant == settings.bot_tenant, settings.office or ""
    what = "office" if is_main else f"office of {tenant}"
    state = await state_of_office(directory, tenant, group)
    if state is OfficeState.READ:
        return Finding(what, True, f"the members of the group {group!r}")
    repair = {
        OfficeState.NO_GROUP: f"./ada group add {group}, or correct ADA_OFFICE",
        OfficeState.NO_MEMBERS: f"./ada group add-member {group} ID",
        OfficeState.NO_READERS: "./ada user change ID --role staff",
    }[state]
    is_needed = is_main or state is not OfficeState.NO_GROUP
    return Finding(what, False if is_needed else None, unread_office(group, tenant, state), repair)


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
