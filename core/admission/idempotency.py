"""The first answer to a write, kept for its repeats (Idempotency-Key).

Deliveries keep theirs inside `lua/delivery/enqueue.lua`, in one step with the delivery.
"""

import json
import secrets
from dataclasses import dataclass
from hashlib import blake2b

from core.errors import Conflict, StoreFull
from core.redis.keys import KEYS
from core.redis.store import Store

_KEPT_MS = 24 * 3600 * 1000
# A process that died between begin and finish: after this its caller may go on; every write is safe to repeat.
_UNDER_WAY_MS = 60 * 1000


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """An answer as it was given."""

    status: int
    body: bytes


class Idempotency:
    """One per process."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def begin(self, tenant: str, key: str, fingerprint: str) -> StoredAnswer | None:
        """None: go on, then `finish` or `forget`. Raises Conflict IDEMPOTENCY_IN_PROGRESS or IDEMPOTENCY_KEY_REUSED,
        and StoreFull if it is the first and can not be kept.
        """
        # `call` makes the mark ours: should the store repeat the command after a lost connection, we find our own.
        mark = json.dumps({"fingerprint": fingerprint, "call": secrets.token_hex(8)})
        full: StoreFull | None = None
        try:
            if await self._store.command("SET", _name(tenant, key), mark, "NX", "PX", _UNDER_WAY_MS):
                return None
        except StoreFull as fault:
            full = fault  # also told of a key that is there
        found = await self._store.command("GET", _name(tenant, key))
        if found is None and full:
            raise full
        if found == mark:
            return None
        known = json.loads(found or mark)
        if known["fingerprint"] != fingerprint:
            raise Conflict("IDEMPOTENCY_KEY_REUSED", "This Idempotency-Key was used with another request.")
        if "status" not in known:
            raise Conflict("IDEMPOTENCY_IN_PROGRESS", "The first request with this Idempotency-Key is still under way.")
        return StoredAnswer(known["status"], known["body"].encode())

    async def finish(self, tenant: str, key: str, fingerprint: str, status: int, body: bytes) -> None:
        """Keep the answer for a day."""
        kept = json.dumps({"fingerprint": fingerprint, "status": status, "body": body.decode()})
        await self._store.command("SET", _name(tenant, key), kept, "PX", _KEPT_MS)

    async def forget(self, tenant: str, key: str) -> None:
        """The write was refused and changed nothing: its repeat may be another."""
        await self._store.command("DEL", _name(tenant, key))


def _name(tenant: str, key: str) -> str:
    """The caller's key by its hash: he may put anything into it. `w` keeps these apart from those of deliveries."""
    return KEYS["idempotency"].at(0, tenant, "w" + blake2b(key.encode(), digest_size=16).hexdigest())
