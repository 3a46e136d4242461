"""Reads the result of the first request with an Idempotency-Key, which `lua/delivery/functions/enqueue.lua` writes."""

import hashlib
from zlib import crc32

import msgspec
from msgspec import Struct

from core.model.clock import from_ms
from core.model.delivery import Accepted, Repeat
from core.model.history_key import HistoryKey, Id, shard_of_sender
from core.model.states import DeliveryState
from core.redis.keys import KEYS
from core.redis.store import Store


class _Stored(Struct):
    fingerprint: str
    answer: tuple[str, str, str, str, int] | None = None


_decode = msgspec.json.Decoder(_Stored, strict=False).decode


def repeat_hash(key: str) -> str:
    """Return an Idempotency-Key as a part of a Redis key: it may contain anything."""
    return hashlib.blake2b(key.encode(), digest_size=16).hexdigest()


async def read_first_result(store: Store, tenant: str, sender: Id, repeat: Repeat) -> Accepted | None:
    """Return the first result, None if there is none. It is in the shard of the Idempotency-Key, or of the sender if
    that had a quota.
    """
    for shard in {crc32(repeat.key.encode()) % store.shards, shard_of_sender(sender, store.shards)}:
        text = await store.command("GET", KEYS["idempotency"].at(shard, tenant, repeat_hash(repeat.key)))
        stored = _decode(text) if text else None
        if stored and stored.answer and stored.fingerprint == repeat.fingerprint:
            return _result(shard, *stored.answer)
    return None


def _result(shard: int, suffix: str, state: str, due: str, asked: str, recipients: int) -> Accepted:
    moved_from = from_ms(asked) if asked else None
    return Accepted(HistoryKey.of(shard, suffix), DeliveryState(state), from_ms(due), moved_from, recipients, True)
