"""Checks of high availability for doctor: role, replicas and their lag, memory, persistence, library, Sentinels,
cluster."""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace

from redis.exceptions import RedisError

from cli.commands.start.cluster_findings import check_cluster
from cli.commands.start.finding import Finding
from core.errors import FunctionFault
from core.model.durability import Durability
from core.redis.connection import ServerAddress, StoreConnection
from core.redis.sentinels import SentinelSet
from core.redis.sentinels.finding import ANSWER
from core.redis.store import Store

_REPLICA = re.compile(
    r"^slave\d+:ip=(?P<ip>[^,]+),port=(?P<port>\d+),state=(?P<state>\w+),offset=(?P<offset>\d+)", re.MULTILINE
)
_RUNBOOK = "docs/runbook.md"


@dataclass(frozen=True)
class _View:
    """What a Sentinel says. `names`: the primary, or why none; `id`: its own, or ""; `known`: how many Sentinels it
    knows, with itself, or 0.
    """

    names: str
    id: str = ""
    known: int = 0


async def check_replication(store: Store, durability: Durability) -> AsyncIterator[Finding]:
    """Emit what is seen of each, on every primary. What a server hides from this user is no finding."""
    for primary, homes in store.shard_map.primaries().items():
        async for finding in _check_primary(store, homes[0], durability):
            at = f"{primary.place}: " if store.shard_map.cluster else ""
            yield replace(finding, detail=at + finding.detail)
    if store.topology.sentinels:
        for finding in await _sentinels(store.topology.sentinels, store.address, durability):
            yield finding
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
        repair = f"ADA_DURABILITY=replica accepts nothing without one: {_RUNBOOK}" if needed else ""
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


async def _sentinels(sentinels: SentinelSet, primary: ServerAddress, durability: Durability) -> list[Finding]:
    views = [await _view_of(sentinels.name, one) for one in sentinels.sentinels]
    seen = [view.names for view in views]
    pairs = zip(sentinels.sentinels, seen, strict=True)
    listed = ", ".join(f"{one.host}:{one.port} names {what}" for one, what in pairs)
    agreed = seen.count(f"{primary.host}:{primary.port}")
    if agreed == len(seen):
        agreement = Finding("sentinels", True, listed)
    else:
        agreement = Finding("sentinels", None if agreed > len(seen) // 2 else False, listed, _RUNBOOK)
    return [agreement, *_unnamed(views, durability)]


def _unnamed(views: Sequence[_View], durability: Durability) -> list[Finding]:
    """Return whether ADA_REDIS_URL leaves out Sentinels. One that it names twice is one; a silent one is another."""
    named = len({view.id for view in views} - {""}) + sum(not view.id for view in views)
    known = max(view.known for view in views)
    if named >= known:
        return []
    is_bad = durability is Durability.REPLICA and named < known - known // 2
    repair = "name all: with fewer than half of them ADA_DURABILITY=replica accepts nothing (STORE_PRIMARY_IN_DOUBT)"
    return [Finding("sentinels", False if is_bad else None, f"ADA_REDIS_URL names {named} of {known}", repair)]


async def _view_of(name: str, sentinel: ServerAddress) -> _View:
    """Return what a Sentinel says, or why it says nothing."""
    commands = (("GET-MASTER-ADDR-BY-NAME", name), ("MYID",), ("SENTINELS", name))
    try:
        async with asyncio.timeout(ANSWER):
            connection = await StoreConnection.open(sentinel)
            try:
                found, own, others = await connection.request_all([("SENTINEL", *words) for words in commands])
            finally:
                connection.close()
    except (RedisError, OSError, TimeoutError) as fault:
        return _View(f"nothing ({str(fault) or type(fault).__name__})")
    if isinstance(found, RedisError):
        return _View(f"nothing ({found})")
    known = 0 if isinstance(others, RedisError) else 1 + len(others)
    return _View(":".join(found) if found else "nothing", "" if isinstance(own, RedisError) else own, known)


def facts_of(text: str) -> Mapping[str, str]:
    """Return the lines of INFO as a mapping."""
    return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
