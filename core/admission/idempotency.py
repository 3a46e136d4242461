"""Stores the response to a write for its repeats (Idempotency-Key).

Deliveries do not use it: `lua/delivery/functions/enqueue.lua` stores their result in the same step as the delivery.
"""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from hashlib import blake2b

from core.errors import Conflict, StoreError, StoreRefuses
from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.keys import KEYS
from core.redis.store import Store

_RETENTION_MS = 24 * 3600 * 1000
# If a process died between begin and finish, its caller may repeat the request after this. Every write is safe to
# repeat.
_IN_PROGRESS = timedelta(minutes=1)
_RENEWALS = 3
"""Number of extensions of the mark of a request in progress before it would end."""


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A response as it was sent."""

    status: int
    body: bytes


class Idempotency:
    """Marks requests and keeps their responses. `in_progress`: how long the mark of a request outlives its process."""

    def __init__(self, store: Store, in_progress: timedelta = _IN_PROGRESS) -> None:
        self._store = store
        self._in_progress = in_progress

    async def begin(self, tenant: str, key: str, fingerprint: str) -> StoredResponse | None:
        """Return the stored response of a repeat; None for a first request, which must call `finish` or `forget`.

        Raises Conflict IDEMPOTENCY_IN_PROGRESS or IDEMPOTENCY_KEY_REUSED, and StoreRefuses for a first request that
        cannot be stored.
        """
        # `call` identifies our own mark if the store repeats the command after a lost connection.
        mark = json.dumps({"fingerprint": fingerprint, "call": secrets.token_hex(8)})
        full: StoreRefuses | None = None
        try:
            if await self._store.command("SET", self._name(tenant, key), mark, "NX", "PX", self._in_progress_ms):
                return None
        except StoreRefuses as fault:
            full = fault  # raised also if the key exists, so look first
        found = await self._store.command("GET", self._name(tenant, key))
        if found is None and full:
            raise full
        if found == mark:
            return None
        known = json.loads(found or mark)
        if known["fingerprint"] != fingerprint:
            raise Conflict("IDEMPOTENCY_KEY_REUSED", "This Idempotency-Key was used with another request.")
        if "status" not in known:
            raise Conflict("IDEMPOTENCY_IN_PROGRESS", "The first request with this Idempotency-Key is still under way.")
        return StoredResponse(known["status"], known["body"].encode())

    @asynccontextmanager
    async def in_progress(self, tenant: str, key: str) -> AsyncIterator[None]:
        """Keep the request in progress, however long the block takes."""
        renewing = asyncio.create_task(self._renew(tenant, key), name="renew idempotency key")
        try:
            yield
        finally:
            await cancel_and_wait(renewing)

    async def _renew(self, tenant: str, key: str) -> None:
        while True:
            await asyncio.sleep(self._in_progress.total_seconds() / _RENEWALS)
            with suppress(StoreError):  # it is extended again before it ends
                await self._store.command("PEXPIRE", self._name(tenant, key), self._in_progress_ms)

    @property
    def _in_progress_ms(self) -> int:
        return int(self._in_progress.total_seconds() * 1000)

    async def finish(self, tenant: str, key: str, fingerprint: str, status: int, body: bytes) -> None:
        """Store the response for a day."""
        stored = json.dumps({"fingerprint": fingerprint, "status": status, "body": body.decode()})
        await self._store.write("SET", self._name(tenant, key), stored, "PX", _RETENTION_MS)

    async def bind(self, tenant: str, key: str, fingerprint: str) -> bool:
        """Bind the key to an operation whose result is stored elsewhere; return whether it was free. Raises Conflict
        IDEMPOTENCY_KEY_REUSED if another one has it.
        """
        name, mark = self._name(tenant, key), json.dumps({"fingerprint": fingerprint, "status": 0, "body": ""})
        with suppress(StoreRefuses):  # raised also if the key exists, so look
            if await self._store.command("SET", name, mark, "NX", "PX", _RETENTION_MS):
                return True
        found = await self._store.command("GET", name)
        if found is not None and json.loads(found)["fingerprint"] != fingerprint:
            raise Conflict("IDEMPOTENCY_KEY_REUSED", "This Idempotency-Key was used with another request.")
        return False

    async def forget(self, tenant: str, key: str) -> None:
        """Forget a write that was refused and changed nothing: the key may be used again, with another request."""
        await self._store.command("DEL", self._name(tenant, key))

    def _name(self, tenant: str, key: str) -> str:
        """Return the Redis key. The caller's key is hashed because it may contain anything. Name and shard are those of
        a delivery with this key, so that a key of one operation is refused by every other.
        """
        shard = self._store.shard_of(key)
        return KEYS["idempotency"].at(shard, tenant, blake2b(key.encode(), digest_size=16).hexdigest())
