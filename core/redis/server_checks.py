"""Checks a Redis/Valkey server at every start: its settings, the layout of its data, the versions of the library on it.

`notify-keyspace-events` is set (`core.redis.keyspace_events`). All other wrong settings are only reported, with the
command that corrects them, because the operator decides about the server's memory and disk. Versions of the library
that no process uses are removed; a process that still runs one loads it again when it finds it missing
(`core.redis.store`).
"""

import asyncio
import logging
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum

import msgspec
from msgspec import Struct
from redis.exceptions import RedisError

from core.errors import DataMoved, FunctionFault, LayoutUnknown, ShardsDiffer, StoreRefuses
from core.redis.connection import Reply, encoded
from core.redis.keys import KEYS, layout_of_shards
from core.redis.keyspace_events import SETTING, Notifications, ensure_notifications, merged_flags
from core.redis.primary import GRACE_MS
from core.redis.refusals import explained
from core.redis.store import Store

_POLICY = re.compile(r"^maxmemory_policy:(\S+)", re.MULTILINE)
UNUSED = timedelta(days=30)
"""A version that no process has been started with for so long is removed."""
_PREFIX = "ada_"
_USED = KEYS["libraries"].at(0)
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SettingProblem:
    """A setting with a wrong value. `fatal`: the server itself would delete accepted messages. `server`: which one of a
    cluster; "" if there is only one. `managed`: the server takes no CONFIG.
    """

    setting: str
    found: str
    wanted: str
    why: str
    fatal: bool
    server: str = ""
    managed: bool = False

    @property
    def correction(self) -> str:
        on = f" at {self.server}" if self.server else ""
        if self.managed:
            return f"set {self.setting} to {self.wanted} where the server is managed{on}: it takes no CONFIG"
        return f"redis-cli CONFIG SET {self.setting} {self.wanted} && redis-cli CONFIG REWRITE{on}"

    def __str__(self) -> str:
        found = self.found or "empty"
        return f"{self.setting} is {found}, wanted {self.wanted}: {self.why}. Correct it with: {self.correction}"


_WANTED = [
    ("maxmemory-policy", "noeviction", "another policy may evict accepted messages", True),
    ("appendonly", "yes", "without it a restart loses accepted messages", False),
    ("hash-max-listpack-value", "1024", "smaller ones double the memory of a scheduled delivery", False),
]
_WANTED_OF_CLUSTER = [
    ("cluster-require-full-coverage", "no", "all shards stand still while one has no primary", False),
    ("cluster-node-timeout", "3000", "a shard stands still for longer than this when its primary is lost", False),
]
_LONGEST_NODE_TIMEOUT_MS = 5000
_NUMBERS: Mapping[str, Callable[[int], bool]] = {
    "hash-max-listpack-value": lambda found: found >= 1024,
    "cluster-node-timeout": lambda found: found <= _LONGEST_NODE_TIMEOUT_MS,
}
"""Settings of which other values are good, too."""


def setting_problems(settings: Mapping[str, str]) -> list[SettingProblem]:
    """Return the wrong ones among a server's settings. A setting that the server does not report is left out. Pure."""
    problems = []
    for name, value, why, fatal in _WANTED + (_WANTED_OF_CLUSTER if settings.get("cluster-enabled") == "yes" else []):
        found = settings.get(name, value)
        is_good = _NUMBERS[name](int(found)) if name in _NUMBERS else found == value
        if not is_good:
            problems.append(SettingProblem(name, found, value, why, fatal))
    return problems


async def check(store: Store) -> list[SettingProblem]:
    """Run `check_settings` and switch our notifications on."""
    problem = notification_problem(await ensure_notifications(store.command))
    return await check_settings(store) + ([problem] if problem else [])


async def check_settings(store: Store) -> list[SettingProblem]:
    """Return the wrong settings of each primary. Those that a server hides are left out; if it takes no CONFIG, its
    eviction policy is read from INFO.
    """
    try:
        answers = await store.command_everywhere(
            "CONFIG", "GET", "maxmemory-policy", "appendonly", "hash-max-*-value", "cluster-*"
        )
    except FunctionFault:
        return await _check_policy(store)
    found = {
        server: setting_problems({str(name): str(value) for name, value in answer.items()})
        for server, answer in answers.items()
    }
    return _named(found)


async def _check_policy(store: Store) -> list[SettingProblem]:
    try:
        answers = await store.command_everywhere("INFO", "memory")
    except FunctionFault:
        return []
    policies = {server: _POLICY.findall(str(answer)) for server, answer in answers.items()}
    found = {server: setting_problems({"maxmemory-policy": one[0]} if one else {}) for server, one in policies.items()}
    return [replace(problem, managed=True) for problem in _named(found)]


def _named(found: Mapping[str, list[SettingProblem]]) -> list[SettingProblem]:
    """Return the problems of all servers; of several, each with its server."""
    if len(found) == 1:
        return next(iter(found.values()))
    return [replace(problem, server=server) for server, problems in found.items() for problem in problems]


def notification_problem(state: Notifications) -> SettingProblem | None:
    """Return the problem that sleeping workers are not woken, if they are not."""
    if not state.missing:
        return None
    found = state.found or ""
    why = f"without it sleeping couriers are not woken; they only look for work every few seconds ({state.refusal})"
    return SettingProblem(SETTING, found, merged_flags(found), why, False)


async def check_channels(store: Store) -> None:
    """Check the rights to keyspace events. Raises SetupError if they are missing; StoreUnavailable."""
    first: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

    def take(reply: Reply) -> None:
        if not first.done():
            first.set_result(reply)

    channel = f"__keyspace@{store.address.database}__:{KEYS['timer'].at(0)}"
    try:
        connection = await store.topology.open(take, take)
        connection.lost.add_done_callback(lambda lost: take(lost.result()))
        connection.write(encoded("SUBSCRIBE", channel))
        reply = await first
        connection.close()
        if isinstance(reply, RedisError):
            raise reply
    except (RedisError, OSError, TimeoutError) as fault:
        raise explained(fault, store.address) from None


async def check_writes(store: Store) -> None:
    """Check that the server can be written to. Raises StoreRefuses if the server takes no writes at present. Changes
    nothing.
    """
    await store.command("SETRANGE", KEYS["layout"].at(0), 0, "")


async def check_layout(store: Store) -> None:
    """Check the layout; called at every start before anything is written. Raises LayoutUnknown (docs/decisions/0020),
    ShardsDiffer, DataMoved.
    """
    await check_migration(store)
    await check_shards(store)
    for shard in range(store.shards):
        refuse_other_layout(await layout_of(store, shard), store.shards)


def refuse_other_layout(found: str | None, shards: int) -> None:
    """Refuse data with another layout than those of this version have in so many shards. Pure. Raises LayoutUnknown."""
    if found in (None, str(layout_of_shards(shards))):
        return
    raise LayoutUnknown(
        f"{LayoutUnknown.code}: "
        f"the data on this server has layout {found}, this version of Ada works with {layout_of_shards(shards)}. "
        "Start the version that wrote it, or give this version its own server or database."
    )


async def layout_of(store: Store, shard: int) -> str | None:
    """Return the layout of a shard's data; None if there is no data."""
    found = await store.command("GET", KEYS["layout"].at(shard))
    return None if found is None else str(found)


async def check_migration(store: Store) -> None:
    """Check that the data are not moved elsewhere. Raises DataMoved."""
    if found := await store.command("GET", KEYS["migration"].at(0)):
        raise DataMoved(f"{DataMoved.code}: {MigrationMark.read(found).sentence}")


async def check_shards(store: Store) -> None:
    """Check the number of shards: a delivery or a task is found in the shard that its id or lane names, so with another
    number a lane would stand in two shards. Raises ShardsDiffer.
    """
    found = await store.command("GET", KEYS["shards"].at(0))
    if found not in (None, str(store.shards)):
        raise ShardsDiffer(
            f"{ShardsDiffer.code}: the data on this server is spread over {found} shards, ADA_SHARDS is {store.shards}."
            f" Set ADA_SHARDS={found}, or give this installation its own server or database."
        )


async def sign_layout(store: Store) -> None:
    """Check the layout as `check_layout` does, then write it, the number of shards and the primary if they are missing.
    On a server that refuses writes a later start does it.
    """
    await check_layout(store)
    try:
        await store.command("SET", KEYS["shards"].at(0), store.shards, "NX")
        for shard in range(store.shards):
            await store.command("SET", KEYS["layout"].at(shard), layout_of_shards(store.shards), "NX")
            await store.run("note_primary", shard, GRACE_MS)
    except StoreRefuses:
        return
    await check_shards(store)  # another process may have started at the same time


async def configure(
    store: Store,
    retention: timedelta,
    threads_retention: timedelta | None = None,
    answers_retention: timedelta | None = None,
) -> None:
    """Write the settings that functions read: how long a history is kept after its end, a thread after its last
    message, and the history of a delivery that asks after its question is closed. Only changes are written, so that
    couriers also start on a full server.
    """
    kept = {"retention_ms": retention, "threads_ms": threads_retention, "answers_ms": answers_retention}
    for shard in range(store.shards):
        name = KEYS["settings"].at(shard)
        for field, duration in kept.items():
            if duration is None:
                continue
            ms = duration // timedelta(milliseconds=1)
            if await store.command("HGET", name, field) != str(ms):
                await store.command("HSET", name, field, ms)


class Side(StrEnum):
    """The server that has the data before a migration, and the one that has them after it."""

    SOURCE = "source"
    TARGET = "target"


class MigrationMark(Struct, frozen=True):
    """`id`: the same on both servers. `other`: the other server, without its password. `is_done`: whether all data are
    at the target.
    """

    id: str
    side: Side
    other: str
    is_done: bool = False

    @classmethod
    def read(cls, text: str | bytes) -> "MigrationMark":
        return msgspec.json.decode(text, type=cls)

    @property
    def text(self) -> str:
        return msgspec.json.encode(self).decode()

    @property
    def sentence(self) -> str:
        """Return why no process may start here, and what to do."""
        if self.is_done:
            return f"the data of this server have moved to {self.other}. Set ADA_REDIS_URL to it."
        way = "to" if self.side is Side.SOURCE else "from"
        return f"`./ada migrate` has not moved all data {way} {self.other}. Run it again, with ADA_REDIS_URL as before."


async def register(store: Store) -> None:
    """Note that this version is used, and remove unused ones; called at every start. What the server refuses (it is
    full, a key has another type, a right is missing) is left to a later start.
    """
    now = time.time_ns() // 1_000_000
    try:
        await _note(store, now)
        await _remove_unused(store, now)
    except (StoreRefuses, FunctionFault) as fault:
        log.warning("the library %s is not noted as used: %s", store.library.name, fault)


async def _note(store: Store, now: int) -> None:
    await store.command("SET", KEYS["library"].at(0), store.library.name)
    for name in await _loaded(store):
        await store.command("ZADD", _USED, "NX", now, name)
    await store.command("ZADD", _USED, now, store.library.name)


async def _remove_unused(store: Store, now: int) -> None:
    for name in await store.command("ZRANGEBYSCORE", _USED, "-inf", now - UNUSED // timedelta(milliseconds=1)):
        await _remove(store, name)
        await store.command("ZREM", _USED, name)


async def _loaded(store: Store) -> list[str]:
    found = await store.command_everywhere("FUNCTION", "LIST", "LIBRARYNAME", f"{_PREFIX}*")
    return sorted({library["library_name"] for libraries in found.values() for library in libraries})


async def _remove(store: Store, name: str) -> None:
    try:
        await store.command_everywhere("FUNCTION", "DELETE", name)
    except FunctionFault as fault:
        if "Library not found" not in str(fault):
            raise
