"""Reads all keys of a server in one step, and the violations that the audit finds."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from redis.asyncio import Redis

from core.audit.audit import Audit
from core.audit.invariants.invariant import Violation
from core.redis.store import Store
from tests.support.limits import REPLY
from tests.support.stored_tasks import read_record, with_lease

_DUMP = """
local found = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  local kind = redis.call('TYPE', key).ok
  local value
  if kind == 'hash' then value = redis.call('HGETALL', key)
  elseif kind == 'zset' then value = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  elseif kind == 'set' then value = redis.call('SMEMBERS', key)
  elseif kind == 'list' then value = redis.call('LRANGE', key, 0, -1)
  elseif kind == 'stream' then value = redis.call('XRANGE', key, '-', '+')
  else value = redis.call('GET', key) end
  found[#found + 1] = { key, kind, redis.call('PTTL', key), value }
end
return found
"""


@dataclass(frozen=True, slots=True)
class StoredKey:
    """One key. `value`: a dict for a hash, member → score in order for a zset, entries for a stream, a list or a set,
    otherwise text.
    """

    kind: str
    pttl: int
    value: Any


Dump = Mapping[str, StoredKey]


async def dump(url: str) -> Dump:
    """Return all keys, from one atomic read."""
    async with Redis.from_url(url, protocol=2, socket_timeout=REPLY) as client:
        return await dump_through(client)


async def dump_through(client: Redis) -> Dump:
    """Return what `dump` does, through a client that does not decode. Values that are not UTF-8 (bitmaps) contain
    surrogates.
    """
    rows: list[Any] = await client.eval(_DUMP, 0)
    found = {_text(key): StoredKey(_text(kind), pttl, _value(_text(kind), value)) for key, kind, pttl, value in rows}
    return _with_whole_tasks(found)


def _with_whole_tasks(found: dict[str, StoredKey]) -> Dump:
    """Return each task as one hash of all that is stored of it."""
    for name in [name for name, kept in found.items() if ":task:" in name and kept.kind == "string"]:
        shard, _, task_id = name.removeprefix("queue:").partition(":task:")
        progress = found.pop(f"queue:{shard}:progress:{task_id}", None)
        taken = found.get(f"queue:{shard}:taken")
        lease = taken.value.pop(task_id, None) if taken else None
        facts = with_lease({**(progress.value if progress else {}), **read_record(found[name].value)}, lease)
        found[name] = StoredKey("hash", found[name].pttl, facts)
    return {name: kept for name, kept in found.items() if not (name.endswith(":taken") and not kept.value)}


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def _value(kind: str, raw: Any) -> Any:
    if kind == "hash":
        return {_text(raw[n]): _text(raw[n + 1]) for n in range(0, len(raw), 2)}
    if kind == "zset":
        return {_text(raw[n]): float(raw[n + 1]) for n in range(0, len(raw), 2)}
    if kind in ("list", "set"):
        return [_text(one) for one in raw]
    if kind == "stream":
        return [_value("hash", fields) for _, fields in raw]
    return _text(raw)


async def violations_in(store: Store) -> list[Violation]:
    """Return the violations that `./ada audit` would report; empty if all invariants hold."""
    return [violation async for violation in Audit(store).find()]


def unfinished_keys(found: Dump) -> list[str]:
    """Return the keys of tasks and of unreleased deliveries."""
    return [key for key in found if re.match(r"queue:\{\d+\}:task:|delivery:\{\d+\}:(?!idle:)", key)]
