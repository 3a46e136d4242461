"""Reads the result of the first request with an Idempotency-Key, which `lua/delivery/functions/enqueue.lua` writes."""

import hashlib

import msgspec
from msgspec import Struct

from core.model.clock import from_ms
from core.model.delivery import Accepted, NewDelivery, Repeat
from core.model.history_key import HistoryKey
from core.model.states import DeliveryState
from core.redis.keys import KEYS
from core.redis.store import Store


class _StoredResult(Struct):
    fingerprint: str
    answer: tuple[str, str, str, str, int] | None = None


_decode = msgspec.json.Decoder(_StoredResult, strict=False).decode


def repeat_hash(key: str) -> str:
    """Return an Idempotency-Key as a part of a Redis key: it may contain anything."""
    return hashlib.blake2b(key.encode(), digest_size=16).hexdigest()


async def read_first_result(store: Store, delivery: NewDelivery, repeat: Repeat) -> Accepted | None:
    """Return the first result, None if there is none. It is in the shard of the delivery: of its lane, of its sender if
    that had a quota, else of the Idempotency-Key.
    """
    names = (repeat.key, str(delivery.sender.id), delivery.lane or "")
    key_shards = (delivery.history_key.shard,) if delivery.history_key else ()
    for shard in {*(store.shard_of(name) for name in names if name), *key_shards}:
        text = await store.command("GET", KEYS["idempotency"].at(shard, delivery.tenant, repeat_hash(repeat.key)))
        stored = _decode(text) if text else None
        if stored and stored.answer and stored.fingerprint == repeat.fingerprint:
            return _result(shard, *stored.answer)
    return None


def _result(shard: int, suffix: str, state: str, due: str, asked: str, recipients: int) -> Accepted:
    moved_from = from_ms(asked) if asked else None
    return Accepted(HistoryKey.of(shard, suffix), DeliveryState(state), from_ms(due), moved_from, recipients, True)
