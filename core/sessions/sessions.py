"""Begins, finds and ends sessions.

A secret has 256 random bits, so a plain SHA-256 is enough: it cannot be guessed. A session is a string with a time to
live, and an entry in the list of the sessions of its key or person, by which all of them are ended at once. Both are in
the shard of the tenant, which the secret names. A personal key is stored as a session with a name and scopes, so it
ends as sessions do; one list for each shard has the personal keys of all people, and is read in place of all sessions.
"""

import re
import secrets
from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import msgspec
from msgspec import Struct
from msgspec.structs import replace

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

PERSONAL_KEY = "adap_"
"""How the secret of a personal key begins."""

CALENDAR = "calendar"
"""The scope of a personal key that reads the calendar of its person."""

_NOTED = timedelta(minutes=1)
_PAGE = 500
_PLACED = re.compile(r"(\d{1,5})\.", re.ASCII)


@dataclass(frozen=True, slots=True)
class Identity:
    """`person` None: a program, or a session that an API key has begun. `session`: the hash of its secret, "" for a
    request with a key. For a person, `key` has the tenant and the scopes of its role; of these, a personal key has
    those that were chosen for it.
    """

    key: ApiKey
    person: User | None = None
    session: str = ""

    @classmethod
    def of_person(
        cls, tenant: str, person: User, session: str, since: datetime, among: Collection[str] | None = None
    ) -> "Identity":
        """`among`: the scopes to which a personal key is limited; None: all of the role."""
        scopes = _SCOPES_OF_ROLES.get(person.role, _OF_ANY_PERSON)
        if among is not None:
            scopes = scopes.intersection(among)
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


class PersonalKey(Struct, frozen=True, omit_defaults=True):
    """A key of a person, without its secret. `scopes`: sorted. `used_at`: to a minute; None if it was never used."""

    id: str
    name: str
    scopes: list[str]
    expires_at: datetime
    used_at: datetime | None = None


class OutsideLogin(Struct, frozen=True):
    """The account of an identity provider with which a session was begun. `account`: an external id of the person;
    `login`: the provider's id of the sign-in as a digest, "" if it has none.
    """

    account: str
    login: str = ""


class StoredSession(Struct, frozen=True, omit_defaults=True):
    """The stored record of a session, or of a personal key. Either `person` or `key` (the hash of an API key) is
    set.
    """

    tenant: str
    begun_at: datetime
    person: str = ""
    key: str = ""
    personal_key: PersonalKey | None = None  # None: a session, whose secret is a cookie
    outside: OutsideLogin | None = None  # None: begun with a key, a code or a link


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
        stored = StoredSession(key.tenant, datetime.now(UTC), key=hash_of(key_secret))
        return await self._begin(stored, LIFETIME_OF_KEYS)

    async def begin_as_person(self, tenant: str, person: Id, outside: OutsideLogin | None = None) -> NewSession:
        """Begin a session of a person who has proved who it is. Raises Forbidden SESSION_ENDED if it was deleted."""
        stored = StoredSession(tenant, datetime.now(UTC), person=id_text(person), outside=outside)
        return await self._begin(stored, LIFETIME_OF_PEOPLE)

    async def _begin(self, session: StoredSession, lifetime: timedelta) -> NewSession:
        secret = new_secret(self._store.shard_of_tenant(session.tenant), 32)
        return NewSession(secret, await self.store(session, secret, lifetime), lifetime)

    async def store(self, session: StoredSession, secret: str, lifetime: timedelta) -> Identity:
        """Store a session or a personal key under the hash of its secret; return whose it is. Raises Forbidden
        SESSION_ENDED if its person or key is gone.
        """
        hashed = hash_of(secret)
        identity = await self._identity(session, hashed)
        if identity is None:
            raise session_ended()
        listed, ttl_ms = self._list_of(identity), lifetime // timedelta(milliseconds=1)
        for one in (listed, self._personal_list(identity)) if session.personal_key else (listed,):
            await self._list(one, hashed, ttl_ms)  # first: what is listed can be ended
        key = self._keys(identity, [hashed])[0]
        # The secret of a personal key is shown once, so a replica must have it; who loses a session signs in again.
        keep = self._store.write if session.personal_key else self._store.command
        await keep("SET", key, _encoded(session), "PX", ttl_ms)
        if await self._store.command("ZSCORE", listed, hashed) is None:  # all were ended meanwhile
            await self._store.command("DEL", key)
            raise session_ended()
        return identity

    async def find(self, secret: str) -> Identity | None:
        """Return whose session it is, with the rights of this moment (those of a key at most half a second old); None
        if it has ended.
        """
        session = await self.stored(secret)
        return await self._identity(session, hash_of(secret)) if session and not session.personal_key else None

    async def find_personal_key(self, secret: str, *, for_calendar: bool = False) -> Identity | None:
        """Return whose personal key it is, with the rights of this moment; None if it is unknown, expired or revoked,
        or its person blocked. Its use is noted, at most once a minute. `for_calendar`: whether it is wanted for a
        calendar; the key of one is good for nothing else, because it stands in an address.
        """
        session = await self.stored(secret) if secret.startswith(PERSONAL_KEY) else None
        if session is None or session.personal_key is None:
            return None
        if (CALENDAR in session.personal_key.scopes) is not for_calendar:
            return None
        identity = await self._identity(session, "")
        now, used_at = datetime.now(UTC), session.personal_key.used_at
        if identity and (used_at is None or now - used_at >= _NOTED):
            noted = replace(session, personal_key=replace(session.personal_key, used_at=now))
            key = self._keys(identity, [hash_of(secret)])[0]
            await self._store.command("SET", key, _encoded(noted), "XX", "KEEPTTL")  # XX: a revoked one stays revoked
        return identity

    async def personal_keys(self, before: datetime | None = None) -> AsyncIterator[tuple[str, str, PersonalKey]]:
        """Yield (tenant, person, key) of the personal keys of all tenants. `before`: of those that end before then."""
        latest = f"({to_ms(before)}" if before else "+inf"
        for shard in range(self._store.shards):
            listed = KEYS["personal_keys"].at(shard)
            hashes = await self._store.command("ZRANGEBYSCORE", listed, to_ms(datetime.now(UTC)), latest)
            for first in range(0, len(hashes), _PAGE):
                names = [KEYS["session"].at(shard, one) for one in hashes[first : first + _PAGE]]
                for session in map(_decoded, await self._store.command("MGET", *names)):
                    if session and session.personal_key:  # else it was revoked, or its person deleted
                        yield session.tenant, session.person, session.personal_key

    async def stored(self, secret: str) -> StoredSession | None:
        """Return the record with this secret, a session's or a personal key's."""
        key = KEYS["session"].at(shard_in(secret.removeprefix(PERSONAL_KEY), self._store.shards), hash_of(secret))
        return _decoded(await self._store.command("GET", key))

    async def all_of(self, identity: Identity) -> Mapping[str, StoredSession]:
        """Return the sessions and personal keys of the same person or key, by the hashes of their secrets."""
        hashes = await self._store.command("ZRANGE", self._list_of(identity), 0, -1)
        if not hashes:
            return {}
        records = await self._store.command("MGET", *self._keys(identity, hashes))
        found = {hashed: _decoded(record) for hashed, record in zip(hashes, records, strict=True)}
        return {hashed: session for hashed, session in found.items() if session}

    async def _identity(self, session: StoredSession, hashed: str) -> Identity | None:
        if session.key:
            key = await self._api_keys.use_hashed(session.key)
            return Identity(key, session=hashed) if key else None
        (person,) = await self._directory.users.lookup(session.tenant, [session.person])
        if person is None or person.blocked:
            return None
        if session.outside and session.outside.account not in person.external_ids:
            return None
        among = session.personal_key.scopes if session.personal_key else None
        return Identity.of_person(session.tenant, person, hashed, session.begun_at, among)

    async def end(self, identity: Identity) -> None:
        """End the session of a request; a request with an API key has none."""
        if identity.session:
            await self.end_hashed(identity, identity.session)

    async def end_hashed(self, identity: Identity, hashed: str) -> None:
        """End the session or personal key with this hash, which is of the same person or key."""
        await self._store.write("DEL", *self._keys(identity, [hashed]))
        for listed in (self._list_of(identity), self._personal_list(identity)):
            await self._store.command("ZREM", listed, hashed)

    async def end_all(self, identity: Identity) -> None:
        """End all sessions and personal keys of the same person or key."""
        listed = self._list_of(identity)
        hashes = await self._store.command("ZRANGE", listed, 0, -1)
        if hashes:
            await self._store.write("DEL", *self._keys(identity, hashes))
            for one in (listed, self._personal_list(identity)):
                await self._store.command("ZREM", one, *hashes)

    async def end_outside(self, tenant: str, person: User, outside: OutsideLogin) -> None:
        """End the sessions of a person that were begun with this account; with `login` only those of that sign-in."""
        identity = Identity.of_person(tenant, person, "", datetime.now(UTC))
        for hashed, session in (await self.all_of(identity)).items():
            begun = session.outside
            if begun and begun.account == outside.account and outside.login in ("", begun.login):
                await self.end_hashed(identity, hashed)

    def shard_of(self, identity: Identity) -> int:
        """Return the shard of the sessions of a person or key."""
        return self._store.shard_of_tenant(identity.tenant)

    def _keys(self, identity: Identity, hashes: Iterable[str]) -> list[str]:
        shard = self.shard_of(identity)
        return [KEYS["session"].at(shard, one) for one in hashes]

    async def _list(self, listed: str, hashed: str, ttl_ms: int) -> None:
        """Add a session to a list, which lives as long as its last one."""
        now = to_ms(datetime.now(UTC))
        await self._store.command("ZREMRANGEBYSCORE", listed, "-inf", now)
        await self._store.command("ZADD", listed, now + ttl_ms, hashed)
        if last := await self._store.command("ZRANGE", listed, -1, -1, "WITHSCORES"):
            await self._store.command("PEXPIREAT", listed, int(float(last[0][1])))

    def _personal_list(self, identity: Identity) -> str:
        return KEYS["personal_keys"].at(self.shard_of(identity))

    def _list_of(self, identity: Identity) -> str:
        """Return the key of the list, by which `delete_user.lua` ends the sessions of a deleted person."""
        whose = f"user:{id_text(identity.person.id)}" if identity.person else f"key:{identity.key.id}"
        return self._store.tenant_key("sessions", identity.tenant, whose)


def _encoded(session: StoredSession) -> str:
    return msgspec.json.encode(session).decode()


def _decoded(record: str | None) -> StoredSession | None:
    return msgspec.json.decode(record, type=StoredSession) if record else None


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
