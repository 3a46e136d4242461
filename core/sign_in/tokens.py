"""The tokens of users: encrypted in Redis, refreshed by one process at a time (U-01, U-21)."""

import asyncio
import secrets
import time
from collections.abc import Mapping
from typing import Any

import msgspec
from oauthlib.oauth2 import WebApplicationClient

from core.errors import AdaError
from core.redis.keys import KEYS
from core.redis.store import Store
from core.sign_in.client import GrantRefused, fetch_token
from core.sign_in.services import Service, find_service
from core.sign_in.vault import Undecryptable, Vault

_EARLY = 60.0
"""Seconds before its end at which a token is refreshed."""

_LOCK_MS = 20_000
_AGAIN = 0.1
_DEFAULT_LIFETIME = 3600


class SignInExpired(AdaError):
    """The user has not signed in, or has to sign in again."""


class StoredTokens(msgspec.Struct, frozen=True, omit_defaults=True):
    """`expires_at`: Unix seconds of the end of the access token."""

    access: str
    refresh: str = ""
    expires_at: float = 0.0

    @classmethod
    def of(cls, token: Mapping[str, Any], old: "StoredTokens | None" = None) -> "StoredTokens":
        """From a service's answer, which may leave out a refresh token that stays the same."""
        lifetime = float(token.get("expires_in") or _DEFAULT_LIFETIME)
        refresh = str(token.get("refresh_token") or (old.refresh if old else ""))
        return cls(str(token["access_token"]), refresh, time.time() + lifetime)


class Tokens:
    """One per process. `services`: by name."""

    def __init__(self, store: Store, vault: Vault, services: Mapping[str, Service]) -> None:
        self._store = store
        self._vault = vault
        self._services = services

    async def access_token(self, tenant: str, service: str, user: str) -> str:
        """A token that is valid for at least a minute. Raises SignInExpired; ServiceUnavailable if it had to be
        refreshed and the service does not answer; Invalid SERVICE_UNKNOWN.
        """
        key = KEYS["sign_in_tokens"].at(0, tenant, service, user)
        tokens = await self._read(key)
        if tokens.expires_at - time.time() > _EARLY:
            return tokens.access
        return (await self._refreshed(key, find_service(self._services, service))).access

    async def write(self, tenant: str, service: str, user: str, token: Mapping[str, Any]) -> None:
        """Store what the service has returned at the sign-in."""
        await self._write(KEYS["sign_in_tokens"].at(0, tenant, service, user), StoredTokens.of(token))

    async def exist(self, tenant: str, service: str, user: str) -> bool:
        """Whether there are tokens of a user."""
        return bool(await self._store.command("EXISTS", KEYS["sign_in_tokens"].at(0, tenant, service, user)))

    async def forget(self, tenant: str, service: str, user: str) -> bool:
        """Remove the tokens of a user. Returns whether there were any."""
        return bool(await self._store.command("DEL", KEYS["sign_in_tokens"].at(0, tenant, service, user)))

    async def _refreshed(self, key: str, service: Service) -> StoredTokens:
        """The tokens after a refresh by this process, or by another one that is faster."""
        lock, owner = KEYS["sign_in_refresh"].at(0, key), secrets.token_hex(8)
        while not await self._store.command("SET", lock, owner, "NX", "PX", _LOCK_MS):  # noqa: ASYNC110 - it is in Redis
            await asyncio.sleep(_AGAIN)
        try:
            tokens = await self._read(key)
            if tokens.expires_at - time.time() > _EARLY:
                return tokens
            return await self._refresh(key, service, tokens)
        finally:
            if await self._store.command("GET", lock) == owner:
                await self._store.command("DEL", lock)

    async def _refresh(self, key: str, service: Service, old: StoredTokens) -> StoredTokens:
        if not old.refresh:
            await self._store.command("DEL", key)
            raise SignInExpired("the sign-in has expired")
        client = WebApplicationClient(service.client_id)
        secret = {"client_secret": service.client_secret} if service.client_secret else {}
        body = client.prepare_refresh_body(refresh_token=old.refresh, client_id=service.client_id, **secret)
        try:
            tokens = StoredTokens.of(await fetch_token(service, body), old)
        except GrantRefused as refusal:
            await self._store.command("DEL", key)
            raise SignInExpired(str(refusal)) from None
        await self._write(key, tokens)
        return tokens

    async def _read(self, key: str) -> StoredTokens:
        """Raises SignInExpired."""
        stored = await self._store.command("GET", key)
        if stored is None:
            raise SignInExpired("the user has not signed in")
        try:
            return msgspec.json.decode(self._vault.decrypt(stored), type=StoredTokens)
        except Undecryptable as fault:
            raise SignInExpired(str(fault)) from None

    async def _write(self, key: str, tokens: StoredTokens) -> None:
        await self._store.command("SET", key, self._vault.encrypt(msgspec.json.encode(tokens).decode()))
