"""API keys: a tenant and scopes, stored by the hash of the secret, revocable.

A secret is 256 random bits, so a plain SHA-256 is enough: there is nothing to guess.
"""

import json
import secrets
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from core.errors import Invalid, NotFound
from core.redis.keys import KEYS
from core.redis.store import Store

SCOPES = frozenset({"send", "read", "manage", "admin"})
# How long a revoked key may still be honoured by a process that saw it just before.
_CACHED = 1.0
_CACHE_SIZE = 10_000


@dataclass(frozen=True, slots=True)
class ApiKey:
    """Who calls. `scopes`: of `SCOPES`; admin has all."""

    id: str
    tenant: str
    scopes: frozenset[str]
    name: str
    created_at: datetime

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "tenant": self.tenant,
            "scopes": sorted(self.scopes),
            "name": self.name,
            "created_at": self.created_at.isoformat(),
        }


class ApiKeys:
    """One per process."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._seen: dict[str, tuple[float, ApiKey | None]] = {}  # by secret, until when: in memory only

    def recall(self, secret: str) -> ApiKey | None:
        """Whose secret this is, if he was found within the last second."""
        seen = self._seen.get(secret)
        return seen[1] if seen and time.monotonic() < seen[0] else None

    async def find(self, secret: str) -> ApiKey | None:
        """Whose secret this is; None if nobody's. At most a second old."""
        seen = self._seen.get(secret)
        if seen and time.monotonic() < seen[0]:
            return seen[1]
        key = _key(await self._store.command("HGETALL", KEYS["access"].at(0, _hash(secret))))
        if len(self._seen) >= _CACHE_SIZE:
            self._seen.clear()
        self._seen[secret] = (time.monotonic() + _CACHED, key)
        return key

    async def create(
        self, name: str, scopes: Iterable[str], tenant: str = "default", secret: str = ""
    ) -> tuple[ApiKey, str]:
        """A new key and its secret, which is shown once and never again. `secret`: one chosen by the operator."""
        chosen = frozenset(scopes)
        if not chosen or chosen - SCOPES:
            raise Invalid("UNKNOWN_SCOPE", f"Scopes are {', '.join(sorted(SCOPES))}.", "scopes")
        if not tenant.replace("-", "").replace("_", "").isalnum() or not tenant.isascii() or len(tenant) > 64:
            raise Invalid("TENANT_MALFORMED", "A tenant is named by letters, digits, - and _.", "tenant")
        secret = secret or f"ada_{secrets.token_urlsafe(32)}"
        key = ApiKey(secrets.token_hex(6), tenant, chosen, name, datetime.now(UTC))
        await self._write(key, _hash(secret))
        return key, secret

    async def _write(self, key: ApiKey, hashed: str) -> None:
        facts = {"id": key.id, "tenant": key.tenant, "scopes": json.dumps(sorted(key.scopes)), "name": key.name}
        facts["created"] = key.created_at.isoformat()
        await self._store.command(
            "HSET", KEYS["access"].at(0, hashed), *(part for pair in facts.items() for part in pair)
        )
        await self._store.command("HSET", KEYS["accesses"].at(0), key.id, hashed)
        self._seen.clear()

    async def ensure(self, secret: str, name: str = "first admin key") -> ApiKey:
        """The operator's first key (ADA_API_KEY): made if it is not there."""
        return await self.find(secret) or (await self.create(name, SCOPES, secret=secret))[0]

    async def list(self) -> list[ApiKey]:
        hashes = await self._store.command("HGETALL", KEYS["accesses"].at(0))
        keys = [_key(await self._store.command("HGETALL", KEYS["access"].at(0, hashed))) for hashed in hashes.values()]
        return sorted((key for key in keys if key), key=lambda key: key.created_at)

    async def revoke(self, key_id: str) -> None:
        """Raises NotFound KEY_NOT_FOUND."""
        hashed = await self._store.command("HGET", KEYS["accesses"].at(0), key_id)
        if not hashed:
            raise NotFound("KEY_NOT_FOUND", "There is no such API key.")
        await self._store.command("DEL", KEYS["access"].at(0, hashed))
        await self._store.command("HDEL", KEYS["accesses"].at(0), key_id)
        self._seen.clear()


def _hash(secret: str) -> str:
    return sha256(secret.encode(errors="surrogatepass")).hexdigest()


def _key(facts: Mapping[str, str]) -> ApiKey | None:
    if not facts:
        return None
    created = datetime.fromisoformat(facts["created"])
    return ApiKey(facts["id"], facts["tenant"], frozenset(json.loads(facts["scopes"])), facts["name"], created)
