"""Begins, finds and ends sessions.

A secret has 256 random bits, so a plain SHA-256 is enough: it cannot be guessed. A session is a string with a time to
live, and an entry in the list of the sessions of its key or person, by which all of them are ended at once. Both are in
the shard of the tenant, which the secret names.
"""

import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import msgspec
from msgspec import Struct

from core.admission.api_keys import ApiKey, ApiKeys, hash_of
from core.admission.quotas import ADMIN
from core.directory import Directory
from core.errors import Forbidden
from core.model.clock import to_ms
from core.model.history_key import Id
from core.model.people import User, id_text
from core.redis.keys import KEYS
from core.redis.store import Store

LIFETIME_OF_KEYS = timedelta(hours=12)
LIFETIME_OF_PEOPLE = timedelta(days=14)
_SCOPES_OF_ROLES: Mapping[str | None, frozenset[str]] = {
    "trainer": frozenset({"send", "read"}),
    "staff": frozenset({"send", "read"}),
    "admin": frozenset({"send", "read", "manage"}),
}
_OF_ANY_PERSON = frozenset({"read"})

_PLACED = re.compile(r"(\d{1,5})\.", re.ASCII)


@dataclass(frozen=True, slots=True)
class Identity:
    """`person` None: a program, or a session that an API key has begun. `session`: the hash of its secret, "" for a
    request with a key. For a person, `key` has the tenant and the scopes of its role.
    """

    key: ApiKey
    person: User | None = None
    session: str = ""

    @classmethod
    def of_person(cls, tenant: str, person: User, session: str, since: datetime) -> "Identity":
        scopes = _SCOPES_OF_ROLES.get(person.role, _OF_ANY_PERSON)
        key = ApiKey(f"person:{tenant}:{person.id}", tenant, scopes, person.name or str(person.id), since)
        return cls(key, person, session)

    @property
    def tenant(self) -> str:
        return self.key.tenant

    def acts_for(self, sender: Id) -> bool:
        """Return whether it sends as this sender, and changes and reads what that has sent: a person as itself, a key
        as every sender of its tenant.
        """
        return self.person is None or id_text(self.person.id) == id_text(sender)

    def may_see_deliveries_of(self, sender: Id) -> bool:
        """Return whether it sees that this sender has sent something, to whom and with which outcome: an administrator
        sees those of all of the tenant. A text of others is another matter.
        """
        return self.acts_for(sender) or (self.person is not None and self.person.role == ADMIN)


class _StoredSession(Struct, frozen=True, omit_defaults=True):
    """The stored record of a session. Either `person` or `key` (the hash of an API key) is set."""

    tenant: str
    begun_at: datetime
    person: str = ""
    key: str = ""


class NewSession(Struct, frozen=True):
    """`secret` is the value of the cookie; it is shown nowhere else and not stored."""

    secret: str
    identity: Identity
    lifetime: timedelta


class Sessions:
    """The sessions of all tenants; one per process."""

    def __init__(self, store: Store, directory: Directory, api_keys: ApiKeys) -> None:
        self._store = store
        self._directory = directory
        self._api_keys = api_keys

    async def begin_with_key(self, key_secret: str) -> NewSession:
        """Begin a session with the rights of an API key. Raises Forbidden KEY_UNKNOWN."""
        key = await self._api_keys.use(key_secret)
        if key is None:
            raise Forbidden("KEY_UNKNOWN", "This API key is unknown or revoked.", "key")
        stored = _StoredSession(key.tenant, datetime.now(UTC), key=hash_of(key_secret))
        return await self._begin(stored, LIFETIME_OF_KEYS)

    async def begin_as_person(self, tenant: str, person: Id) -> NewSession:
        """Begin a session of a person who has proved who it is. Raises Forbidden SESSION_ENDED if it was deleted."""
        stored = _StoredSession(tenant, datetime.now(UTC), person=id_text(person))
        return await self._begin(stored, LIFETIME_OF_PEOPLE)

    async def _begin(self, session: _StoredSession, lifetime: timedelta) -> NewSession:
        shard = self._store.shard_of_tenant(session.tenant)
        secret = new_secret(shard, 32)
        hashed = hash_of(secret)
        identity = await self._identity(session, hashed)
        if identity is None:
            raise session_ended()
        listed, ttl_ms = self._list_of(identity), lifetime // timedelta(milliseconds=1)
        now = to_ms(datetime.now(UTC))
        await self._store.command("ZREMRANGEBYSCORE", listed, "-inf", now)
        await self._store.command("ZADD", listed, now + ttl_ms, hashed)  # first: what is listed can be ended
        await self._store.command("PEXPIRE", listed, ttl_ms)
        encoded = msgspec.json.encode(session).decode()
        await self._store.command("SET", KEYS["session"].at(shard, hashed), encoded, "PX", ttl_ms)
        return NewSession(secret, identity, lifetime)

    async def find(self, secret: str) -> Identity | None:
        """Return whose session it is, with the rights of this moment (those of a key at most half a second old); None
        if it has ended.
        """
        hashed = hash_of(secret)
        key = KEYS["session"].at(shard_in(secret, self._store.shards), hashed)
        stored = await self._store.command("GET", key)
        return await self._identity(msgspec.json.decode(stored, type=_StoredSession), hashed) if stored else None

    async def _identity(self, session: _StoredSession, hashed: str) -> Identity | None:
        if session.key:
            key = await self._api_keys.use_hashed(session.key)
            return Identity(key, session=hashed) if key else None
        (person,) = await self._directory.users.lookup(session.tenant, [session.person])
        return (
            Identity.of_person(session.tenant, person, hashed, session.begun_at)
            if person and not person.blocked
            else None
        )

    async def end(self, identity: Identity) -> None:
        """End the session of a request; a request with an API key has none."""
        if identity.session:
            await self._store.command("DEL", *self._keys(identity, [identity.session]))
            await self._store.command("ZREM", self._list_of(identity), identity.session)

    async def end_all(self, identity: Identity) -> None:
        """End all sessions of the same person or key."""
        listed = self._list_of(identity)
        hashes = await self._store.command("ZRANGE", listed, 0, -1)
        if hashes:
            await self._store.command("DEL", *self._keys(identity, hashes))
            await self._store.command("ZREM", listed, *hashes)

    def _keys(self, identity: Identity, hashes: Iterable[str]) -> list[str]:
        shard = self._store.shard_of_tenant(identity.tenant)
        return [KEYS["session"].at(shard, one) for one in hashes]

    def _list_of(self, identity: Identity) -> str:
        """Return the key of the list, by which `delete_user.lua` ends the sessions of a deleted person."""
        whose = f"user:{id_text(identity.person.id)}" if identity.person else f"key:{identity.key.id}"
        return self._store.tenant_key("sessions", identity.tenant, whose)


def session_ended() -> Forbidden:
    return Forbidden("SESSION_ENDED", "The session has ended. Sign in again.")


def new_secret(shard: int, random_bytes: int) -> str:
    """Return a random text for a record in this shard; it is fit for a URL and a cookie."""
    return f"{shard}.{secrets.token_urlsafe(random_bytes)}"


def shard_in(secret: str, shards: int) -> int:
    """Return the shard that a secret names; 0 if it names none that exists, and then no record is found there."""
    found = _PLACED.match(secret)
    shard = int(found[1]) if found else 0
    return shard if shard < shards else 0
