"""API keys: a tenant and scopes, stored under the hash of the secret, revocable.

A secret is 256 random bits, so a plain SHA-256 is enough: it cannot be guessed.
"""

import json
import secrets
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from core.errors import Invalid, NotFound, StoreError
from core.model.clock import from_ms, to_ms
from core.model.people import is_source
from core.redis.keys import KEYS
from core.redis.store import Store

SCOPES = frozenset({"send", "read", "manage", "urgent", "updates", "scim", "inspect", "admin", "operator"})

SCIM = "scim"
"""The scope of an identity provider, whose key has the name of a source of people; no other key is one."""
_OF_OPERATOR = SCOPES - {SCIM}

_FIELDS = ("id", "tenant", "scopes", "name", "created")
_REVOKED = "revoked"

REPLACE_FIRST_KEY = (
    "delete the file api_key in the data directory, or set another ADA_API_KEY, and start `./ada up` again"
)

# How long a process that has just seen a key may still accept it after it was revoked.
_CACHED_SECONDS = 0.5

_CACHE_SIZE = 10_000
_NOTED_SECONDS = 60.0


def permits(scopes: Collection[str], scope: str) -> bool:
    """Return whether these scopes permit what needs `scope`. admin includes all but operator and inspect; operator
    includes all. What `inspect` permits depends on the route: see `may_read`. `scim` is only of keys that have it.
    """
    if scope == SCIM:
        return SCIM in scopes
    if scope in ("operator", "inspect"):
        return not {scope, "operator"}.isdisjoint(scopes)
    return not {scope, "admin", "operator"}.isdisjoint(scopes)


def may_read(scopes: Collection[str], scope: str) -> bool:
    """Return whether these scopes permit to read what needs `scope`: inspect reads all that an operator reads."""
    return permits(scopes, scope) or ("inspect" in scopes and scope != SCIM)


@dataclass(frozen=True, slots=True)
class ApiKey:
    """The identity of a caller. `scopes`: a subset of `SCOPES`. admin permits everything within its tenant, operator
    everything in the installation. `used_at`: when it was used last, to a minute; None if never, or not read.
    """

    id: str
    tenant: str
    scopes: frozenset[str]
    name: str
    created_at: datetime
    used_at: datetime | None = None

    @property
    def is_operator(self) -> bool:
        """Return whether the key may see and change what belongs to other tenants."""
        return "operator" in self.scopes

    def permits(self, scope: str) -> bool:
        """Return whether the key may do what needs `scope`."""
        return permits(self.scopes, scope)

    def may_read(self, scope: str) -> bool:
        """Return whether the key may read what needs `scope`."""
        return may_read(self.scopes, scope)

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "tenant": self.tenant,
            "scopes": sorted(self.scopes),
            "name": self.name,
            "created_at": self.created_at.isoformat(),
            "used_at": self.used_at.isoformat() if self.used_at else None,
        }


class ApiKeys:
    """Creates, finds and revokes the keys of all tenants."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._cache: dict[str, tuple[float, ApiKey | None]] = {}  # hash → until when, key
        self._noted: dict[str, float] = {}  # id → until when its use is not noted again

    async def use(self, secret: str) -> ApiKey | None:
        """Return the same as `find`, for a request: the use is noted, at most once a minute."""
        return await self.use_hashed(hash_of(secret))

    async def use_hashed(self, hashed: str) -> ApiKey | None:
        """Use a key by the hash of its secret, which a session has."""
        key = await self._find(hashed)
        now = time.monotonic()
        if key and now >= self._noted.get(key.id, now):
            self._noted[key.id] = now + _NOTED_SECONDS
            with suppress(StoreError):  # what cannot be noted is no reason to refuse the request
                await self._store.command("HSET", KEYS["uses"].at(0), key.id, to_ms(datetime.now(UTC)))
        return key

    async def find(self, secret: str) -> ApiKey | None:
        """Return the key with this secret, at most half a second old; None if there is none."""
        return await self._find(hash_of(secret))

    async def _find(self, hashed: str) -> ApiKey | None:
        cached = self._cache.get(hashed)
        if cached and time.monotonic() < cached[0]:
            return cached[1]
        key = _key(await self._store.command("HGETALL", KEYS["access"].at(0, hashed)))
        if len(self._cache) >= _CACHE_SIZE:
            self._cache.clear()
        self._cache[hashed] = (time.monotonic() + _CACHED_SECONDS, key)
        return key

    async def create(
        self, name: str, scopes: Iterable[str], tenant: str = "default", secret: str = ""
    ) -> tuple[ApiKey, str]:
        """Create a key; return it with its secret, which is not stored. `secret`: one chosen by the operator. Raises
        Invalid KEY_NAME_MALFORMED, UNKNOWN_SCOPE, TENANT_MALFORMED.
        """
        check_key_name(name)
        chosen = frozenset(scopes)
        if SCIM in chosen and not is_source(name):
            detail = "The name of a key with the scope scim is its source: small letters, digits and _, at most 27."
            raise Invalid("KEY_NAME_MALFORMED", detail, "name")
        if not chosen or chosen - SCOPES:
            raise Invalid("UNKNOWN_SCOPE", f"Scopes are {', '.join(sorted(SCOPES))}.", "scopes")
        if not tenant.replace("-", "").replace("_", "").isalnum() or not tenant.isascii() or len(tenant) > 64:
            raise Invalid("TENANT_MALFORMED", "A tenant is named by letters, digits, - and _.", "tenant")
        secret = secret or f"ada_{secrets.token_urlsafe(32)}"
        key = ApiKey(secrets.token_hex(6), tenant, chosen, name, datetime.now(UTC))
        await self._write(key, hash_of(secret))
        return key, secret

    async def _write(self, key: ApiKey, hashed: str) -> None:
        values = key.id, key.tenant, json.dumps(sorted(key.scopes)), key.name, key.created_at.isoformat()
        flat = [part for field in zip(_FIELDS, values, strict=True) for part in field]
        await self._store.write("HSET", KEYS["access"].at(0, hashed), *flat)
        await self._store.write("HSET", KEYS["accesses"].at(0), key.id, hashed)
        self._cache.clear()

    async def was_revoked(self, secret: str) -> bool:
        """Return whether there was a key with this secret, which was revoked."""
        return bool(await self._store.command("HEXISTS", KEYS["access"].at(0, hash_of(secret)), _REVOKED))

    async def ensure(self, secret: str, name: str = "first admin key") -> ApiKey | None:
        """Create the operator's first key (ADA_API_KEY) unless it exists. It always has all scopes but scim. Returns
        None if it was revoked: it stays so.
        """
        if await self.was_revoked(secret):
            return None
        key = await self.find(secret)
        if key is None:
            return (await self.create(name, _OF_OPERATOR, secret=secret))[0]
        if not key.scopes >= _OF_OPERATOR:
            key = replace(key, scopes=_OF_OPERATOR)
            await self._write(key, hash_of(secret))
        return key

    async def list(self) -> list[ApiKey]:
        """Return all keys, the oldest first, each with its last use."""
        hashes = await self._store.command("HGETALL", KEYS["accesses"].at(0))
        uses = await self._store.command("HGETALL", KEYS["uses"].at(0))
        keys = [_key(await self._store.command("HGETALL", KEYS["access"].at(0, hashed))) for hashed in hashes.values()]
        used = [replace(key, used_at=from_ms(uses[key.id]) if key.id in uses else None) for key in keys if key]
        return sorted(used, key=lambda key: key.created_at)

    async def revoke(self, key_id: str) -> None:
        """Revoke an API key. The hash of its secret is kept, so that `ensure` does not create it again. Raises NotFound
        KEY_NOT_FOUND.
        """
        hashed = await self._store.command("HGET", KEYS["accesses"].at(0), key_id)
        if not hashed:
            raise NotFound("KEY_NOT_FOUND", "There is no such API key.")
        access = KEYS["access"].at(0, hashed)
        await self._store.write("HSET", access, _REVOKED, datetime.now(UTC).isoformat())
        await self._store.write("HDEL", access, *_FIELDS)
        await self._store.write("HDEL", KEYS["accesses"].at(0), key_id)
        await self._store.command("HDEL", KEYS["uses"].at(0), key_id)
        self._cache.clear()


def check_key_name(name: str) -> None:
    """Check the name of an API key or a personal key. Raises Invalid KEY_NAME_MALFORMED."""
    if not name.strip() or not name.isprintable() or len(name) > 128:
        raise Invalid("KEY_NAME_MALFORMED", "A key has a name of 1 to 128 printable characters.", "name")


def hash_of(secret: str) -> str:
    """Return what is stored of a secret of 256 random bits."""
    return sha256(secret.encode(errors="surrogatepass")).hexdigest()


def _key(fields: Mapping[str, str]) -> ApiKey | None:
    if not fields or _REVOKED in fields:
        return None
    scopes = frozenset(json.loads(fields["scopes"]))
    return ApiKey(fields["id"], fields["tenant"], scopes, fields["name"], datetime.fromisoformat(fields["created"]))
