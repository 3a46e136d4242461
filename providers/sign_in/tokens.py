"""The tokens of users: fetched from the service, encrypted in Redis, refreshed by one process at a time (U-01, U-21).

oauthlib writes and reads what the token address and the revocation address get and return, aiohttp transfers it.
Whatever is written after a call of the service replaces only what was read before it: a sign-out, or a new sign-in,
that happens during a refresh stays.
"""

import asyncio
import json
import logging
import math
import re
import secrets
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
from oauthlib.oauth2 import OAuth2Error, WebApplicationClient
from oauthlib.oauth2.rfc6749.errors import InvalidGrantError

from core.errors import AdaError, SetupError
from core.redis.keys import KEYS
from core.redis.store import Store
from providers.sign_in.services import Service, find_service
from providers.sign_in.stored import (
    Undecryptable,
    Vault,
    keys_by_shard,
    keys_in_use,
    people_with_tokens,
    shard_of,
    tokens_key,
)
from providers.web_request import ServiceUnavailable, call_service

_HEADERS = {"Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded"}
_ERROR = re.compile(r"[a-z_]{1,50}")


class GrantRefused(AdaError):
    """The code or the refresh token is not valid (any more): the user has to sign in again."""


async def fetch_token(service: Service, body: str) -> Mapping[str, Any]:
    """Return the token that the service returns for a prepared request. Raises GrantRefused, ServiceUnavailable."""
    client = WebApplicationClient(service.client_id)
    status, text = await _post(service, service.token_url, body)
    if not _is_object(text):
        raise ServiceUnavailable(f"the token address answered {status} without a JSON object")
    try:
        token: Mapping[str, Any] = client.parse_request_body_response(text)
    except InvalidGrantError:
        raise GrantRefused("the service refuses the grant") from None
    except OAuth2Error as fault:
        raise ServiceUnavailable(f"the token address answered {error_of(fault)}") from None
    except (Warning, ValueError, TypeError, OverflowError) as fault:
        raise ServiceUnavailable(f"the answer of the token address is no token: {type(fault).__name__}") from None
    return token


async def revoke_token(service: Service, token: str, hint: str) -> None:
    """Have the service end a token (RFC 7009), also an unknown one. `hint`: the kind of the token. Raises
    ServiceUnavailable.
    """
    secret = {"client_secret": service.client_secret} if service.client_secret else {}
    url, _, body = WebApplicationClient(service.client_id).prepare_token_revocation_request(
        service.revoke_url, token, hint, client_id=service.client_id, **secret
    )
    status, _ = await _post(service, url, body)
    if status != 200:
        raise ServiceUnavailable(f"the revocation address answered {status}")


def error_of(fault: Exception) -> str:
    """Return the code of an error of OAuth 2, which may come from a service or a browser; never any other text of
    theirs."""
    code = str(getattr(fault, "error", ""))
    return code if _ERROR.fullmatch(code) else "an unknown error"


async def _post(service: Service, url: str, body: str) -> tuple[int, str]:
    """Return status and text of the response. Raises ServiceUnavailable."""
    return await call_service("POST", url, service.timeout_seconds, body=body, headers=_HEADERS)


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


log = logging.getLogger(__name__)

_EARLY = 60.0
"""Seconds before its end at which a token is refreshed."""

_LOCK_MS = 70_000
"""Longer than the longest call of a service."""

_AGAIN = 0.1
_DEFAULT_LIFETIME = 3600
_LONGEST_LIFETIME = 10 * 366 * 86_400
_REPLACED, _FOREIGN = 1, -1


class SignInExpired(AdaError):
    """The user has not signed in, or has to sign in again."""


class KeyLost(SetupError):
    """Tokens were encrypted with a key that this process does not have."""

    def __init__(self) -> None:
        super().__init__(
            "the sign-ins of users were encrypted with a key that is not here: give back the file sign_in/secret_key of"
            " ADA_DATA, or set ADA_SECRET_KEY to the lost key. If it is lost for good: ./ada sign-in reset --yes"
        )


class StoredTokens(msgspec.Struct, frozen=True, omit_defaults=True):
    """`expires_at`: Unix seconds of the end of the access token."""

    access: str
    refresh: str = ""
    expires_at: float = 0.0

    @classmethod
    def of(cls, token: Mapping[str, Any], old: "StoredTokens | None" = None) -> "StoredTokens":
        """Return the tokens of a service's answer, which may leave out a refresh token that stays the same. Raises
        ServiceUnavailable if it is none.
        """
        access, refresh = token.get("access_token"), token.get("refresh_token") or (old.refresh if old else "")
        if not (isinstance(access, str) and access and isinstance(refresh, str)):
            raise ServiceUnavailable("the token address sent no access token")
        return cls(access, refresh, time.time() + _lifetime(token.get("expires_in")))


class _TokenPlace(NamedTuple):
    """Names the tokens of a user for a service."""

    tenant: str
    service: str
    user: str


class _Read(NamedTuple):
    """`stored`: the tokens as they are stored."""

    tokens: StoredTokens
    stored: str

    @property
    def is_valid(self) -> bool:
        return self.tokens.expires_at - time.time() > _EARLY


class Tokens:
    """Reads, refreshes, revokes and re-encrypts tokens. `services`: by name."""

    def __init__(self, store: Store, vault: Vault, services: Mapping[str, Service]) -> None:
        self._store = store
        self._vault = vault
        self._services = services

    async def access_token(self, tenant: str, service: str, user: str) -> str:
        """Return a token that is valid for at least a minute. Raises SignInExpired; ServiceUnavailable if it had to be
        refreshed and the service does not answer; KeyLost; Invalid SERVICE_UNKNOWN.
        """
        place = _TokenPlace(tenant, service, user)
        found = await self._read(place)
        return (found if found.is_valid else await self._refreshed(place)).tokens.access

    async def write(self, tenant: str, service: str, user: str, token: Mapping[str, Any]) -> None:
        """Store what the service has returned at the sign-in. Raises ServiceUnavailable, KeyLost."""
        await self.check_keys()
        await self._replace(_TokenPlace(tenant, service, user), "", self._encrypted(StoredTokens.of(token)))

    async def exist(self, tenant: str, service: str, user: str) -> bool:
        return bool(await self._store.command("HEXISTS", tokens_key(self._store, tenant, user), service))

    async def revoke(self, deleted: Mapping[str, str]) -> None:
        """Have the services revoke tokens that were deleted here: stored tokens by service. A failure is one line in
        the log.
        """
        await asyncio.gather(*(self._revoke(*one) for one in deleted.items()))

    async def check_keys(self) -> None:
        """Check that all tokens can be decrypted. Raises KeyLost if tokens were encrypted with a key that this process
        does not have.
        """
        if await keys_in_use(self._store) - set(self._vault.fingerprints):
            raise KeyLost

    async def rotate(self) -> int:
        """Encrypt all tokens with the first key, after which the other keys are not needed. Returns how many.

        First every shard notes the new key, so that processes without it write nothing from then on. After a crash a
        repeat does the rest. Raises KeyLost, Undecryptable.
        """
        await self.check_keys()
        count, (new, *others) = 0, self._vault.fingerprints
        for key in keys_by_shard(self._store) if await keys_in_use(self._store) else ():
            await self._store.command("SADD", key, new)
        async for tenant, user in people_with_tokens(self._store):
            for service, stored in (
                await self._store.command("HGETALL", tokens_key(self._store, tenant, user))
            ).items():
                again = self._vault.encrypt(self._vault.decrypt(stored))
                count += await self._replace(_TokenPlace(tenant, service, user), stored, again)
        for key in keys_by_shard(self._store) if others else ():
            await self._store.command("SREM", key, *others)
        return count

    async def _refreshed(self, place: _TokenPlace) -> _Read:
        """Return the tokens after a refresh by this process, or by another one that is faster."""
        service = find_service(self._services, place.service)
        shard, owner = shard_of(self._store, place.tenant, place.user), secrets.token_hex(8)
        lock = KEYS["sign_in_refresh"].at(shard, f"{self._key(place)}:{place.service}")
        while not await self._store.command("SET", lock, owner, "NX", "PX", _LOCK_MS):  # noqa: ASYNC110 - it is in Redis
            await asyncio.sleep(_AGAIN)
        try:
            found = await self._read(place)
            return found if found.is_valid else await self._refresh(place, service, found)
        finally:
            if await self._store.command("GET", lock) == owner:
                await self._store.command("DEL", lock)

    async def _refresh(self, place: _TokenPlace, service: Service, old: _Read) -> _Read:
        try:
            tokens = StoredTokens.of(await _fetch_refreshed(service, old.tokens), old.tokens)
        except GrantRefused as refusal:
            if await self._replace(place, old.stored, ""):
                raise SignInExpired(str(refusal)) from None
            return await self._read(place)
        if await self._replace(place, old.stored, encrypted := self._encrypted(tokens)):
            return _Read(tokens, encrypted)
        try:
            return await self._read(place)
        except SignInExpired:  # signed out during the refresh: only this process knows the new tokens
            await self._revoke(place.service, encrypted)
            raise

    async def _revoke(self, name: str, stored: str) -> None:
        """Have a service revoke the refresh token, which ends the access token, too; without one the access token."""
        service = self._services.get(name)
        if service is None or not service.revoke_url:
            return
        try:
            tokens = self._decrypted(stored)
            hint = "refresh_token" if tokens.refresh else "access_token"
            await revoke_token(service, tokens.refresh or tokens.access, hint)
        except (SignInExpired, ServiceUnavailable) as fault:
            log.warning("a token of %s was deleted here, but it was not revoked there: %s", name, fault)

    async def _replace(self, place: _TokenPlace, expected: str, encrypted: str) -> bool:
        """Return False if the tokens are not the expected ones any more. Raises KeyLost."""
        words = (place.tenant, place.user, place.service, expected, encrypted)
        shard = shard_of(self._store, place.tenant, place.user)
        replaced = await self._store.run("replace_tokens", shard, *words, *self._vault.fingerprints)
        if replaced == _FOREIGN:
            raise KeyLost
        return bool(replaced == _REPLACED)

    async def _read(self, place: _TokenPlace) -> _Read:
        """Return the tokens of a user. Raises SignInExpired, KeyLost."""
        stored = await self._store.command("HGET", self._key(place), place.service)
        if stored is None:
            raise SignInExpired("the user has not signed in")
        try:
            return _Read(self._decrypted(stored), stored)
        except SignInExpired:
            await self.check_keys()
            raise

    def _key(self, place: _TokenPlace) -> str:
        return tokens_key(self._store, place.tenant, place.user)

    def _decrypted(self, stored: str) -> StoredTokens:
        """Return the stored tokens. Raises SignInExpired if they cannot be read."""
        try:
            return msgspec.json.decode(self._vault.decrypt(stored), type=StoredTokens)
        except (Undecryptable, msgspec.MsgspecError):
            raise SignInExpired("the tokens cannot be read") from None

    def _encrypted(self, tokens: StoredTokens) -> str:
        return self._vault.encrypt(msgspec.json.encode(tokens).decode())


async def _fetch_refreshed(service: Service, old: StoredTokens) -> Mapping[str, Any]:
    """Exchange a refresh token for new tokens. Raises GrantRefused, ServiceUnavailable."""
    if not old.refresh:
        raise GrantRefused("the sign-in has expired")
    client = WebApplicationClient(service.client_id)
    secret = {"client_secret": service.client_secret} if service.client_secret else {}
    body = client.prepare_refresh_body(refresh_token=old.refresh, client_id=service.client_id, **secret)
    return await fetch_token(service, body)


def _lifetime(expires_in: object) -> float:
    """Return a lifetime in seconds. Services may leave it out, or write it as text. Raises ServiceUnavailable for what
    makes no sense.
    """
    if expires_in is None:
        return _DEFAULT_LIFETIME
    try:
        seconds = math.nan if isinstance(expires_in, bool) else float(str(expires_in))
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= _LONGEST_LIFETIME:
        raise ServiceUnavailable("the token address sent a lifetime that makes no sense")
    return seconds
