"""What a Redis/Valkey server must be set to, checked at every start; the complaint says the command that mends it.

`notify-keyspace-events` is merged into what is set: others may listen to more. The rest is only complained about: an
operator decides about his server's memory and disk.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from redis.exceptions import ResponseError

from core.errors import LayoutUnknown, StoreFull
from core.redis.keys import KEYS, LAYOUT
from core.redis.store import Store

# K: keyspace channels; g: del, expire, …; x: expired.
_NOTIFY = "Kgx"


@dataclass(frozen=True, slots=True)
class SettingProblem:
    """One setting that is not as it must be. `fatal`: the server itself would throw away accepted messages."""

    setting: str
    found: str
    wanted: str
    why: str
    fatal: bool

    @property
    def mend(self) -> str:
        return f"redis-cli CONFIG SET {self.setting} {self.wanted} && redis-cli CONFIG REWRITE"

    def __str__(self) -> str:
        return f"{self.setting} is {self.found or 'empty'}, wanted {self.wanted}: {self.why}. Mend it with: {self.mend}"


def setting_problems(settings: Mapping[str, str]) -> list[SettingProblem]:
    """Pure: what is wrong with these settings of a server. A setting the server does not tell is not judged."""
    wanted = [
        ("maxmemory-policy", "noeviction", "another policy may evict messages that were accepted", True),
        ("appendonly", "yes", "without it a restart loses what was accepted", False),
        ("hash-max-listpack-value", "1024", "smaller ones double the memory of a scheduled delivery", False),
    ]
    complaints = []
    for name, value, why, fatal in wanted:
        found = settings.get(name)
        if found is not None and found != value and not (name.startswith("hash-") and int(found) >= int(value)):
            complaints.append(SettingProblem(name, found, value, why, fatal))
    return complaints


def merged_flags(found: str) -> str:
    """The notify flags with ours added, nothing taken away. `A` stands for all classes, `g` and `x` included."""
    missing = [flag for flag in _NOTIFY if flag not in found and not (flag in "gx" and "A" in found)]
    return found + "".join(missing)


async def check(store: Store) -> list[SettingProblem]:
    """Judge the server and switch our notifications on. A hosted server that hides CONFIG is not judged."""
    try:
        answer = await store.redis.config_get(
            "maxmemory-policy", "appendonly", "hash-max-*-value", "notify-keyspace-events"
        )
    except ResponseError:
        return []
    settings = {str(name): str(value) for name, value in answer.items()}
    complaints = setting_problems(_renamed(settings))
    found = settings.get("notify-keyspace-events", "")
    if merged_flags(found) != found:
        complaints += await _set_flags(store, found)
    return complaints


def _renamed(settings: Mapping[str, str]) -> dict[str, str]:
    """Redis 6.2 calls listpacks ziplists."""
    return {name.replace("ziplist", "listpack"): value for name, value in settings.items()}


async def check_layout(store: Store) -> None:
    """Every start asks this before anything is written. Raises LayoutUnknown (docs/decisions/0020)."""
    for shard in range(store.shards):
        found = await layout_of(store, shard)
        if found not in (None, LAYOUT):
            raise LayoutUnknown(
                f"{LayoutUnknown.code}: the data on this server are of layout {found}, this version of Ada works with "
                f"{LAYOUT}. Start the version that wrote them, or give this one a server or database of its own."
            )


async def layout_of(store: Store, shard: int) -> int | None:
    """What a shard's data say of themselves; None if there are none. What is older than the number is of layout 1."""
    if found := await store.command("GET", KEYS["layout"].at(shard)):
        return int(found) if found.isdecimal() else 0
    return 1 if await store.command("EXISTS", KEYS["counters"].at(shard)) else None


async def sign_layout(store: Store) -> None:
    """`check_layout`, and an unsigned server is signed. A full one is signed at a later start."""
    await check_layout(store)
    for shard in range(store.shards):
        try:
            await store.command("SET", KEYS["layout"].at(shard), LAYOUT, "NX")
        except StoreFull:
            return


async def configure(store: Store, retention: timedelta) -> None:
    """Tell the scripts what they must know: how long a history is kept from its end on. Only what has changed is
    written, so that couriers start on a full server, too.
    """
    retention_ms = int(retention.total_seconds() * 1000)
    for shard in range(store.shards):
        name = KEYS["settings"].at(shard)
        if await store.command("HGET", name, "retention_ms") != str(retention_ms):
            await store.command("HSET", name, "retention_ms", retention_ms)


async def _set_flags(store: Store, found: str) -> list[SettingProblem]:
    try:
        await store.redis.config_set("notify-keyspace-events", merged_flags(found))
    except ResponseError:
        why = "without them sleeping couriers are not woken, only looked after every few seconds"
        return [SettingProblem("notify-keyspace-events", found, merged_flags(found), why, False)]
    return []
