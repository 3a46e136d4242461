"""A sign-in from the address that a person opens to the callback of the service, and signing out.

At signing out the tokens are deleted here first, then revoked at the services.
"""

import logging
import secrets
from collections.abc import Mapping
from datetime import timedelta
from hashlib import sha256
from typing import TypeVar
from urllib.parse import parse_qs

import msgspec
from oauthlib.oauth2 import OAuth2Error, WebApplicationClient

from core.errors import Invalid, Refused
from core.redis.keys import KEYS
from core.redis.store import Store
from providers.sign_in.services import Service, find_service
from providers.sign_in.stored import Undecryptable, Vault, forget, shard_of
from providers.sign_in.tokens import GrantRefused, KeyLost, Tokens, error_of, fetch_token
from providers.web_request import ServiceUnavailable

log = logging.getLogger(__name__)

LIFETIME = timedelta(minutes=10)
"""Time limit of a user from the address to the confirmation, and from there to the callback."""

PAGE, CALLBACK = "/v1/sign-in/link/", "/v1/sign-in/callback"


class SignedIn(msgspec.Struct, frozen=True):
    """The sign-in of a user to a service."""

    tenant: str
    service: str
    user: str


class Invitation(msgspec.Struct, frozen=True):
    """The facts that the page shows before the person goes to the service. `person`: the name of the user."""

    signed_in: SignedIn
    person: str = ""


class _Begun(msgspec.Struct, frozen=True):
    """A sign-in that waits for its callback. `verifier`: the secret of PKCE, which only this installation knows.
    `browser`: the digest of the secret of the browser that has begun it.
    """

    signed_in: SignedIn
    verifier: str
    browser: str


_Value = TypeVar("_Value", Invitation, _Begun)


class SignIn:
    """Begins and finishes sign-ins. `public_url`: the address under which a browser reaches this API."""

    def __init__(
        self, store: Store, vault: Vault, tokens: Tokens, services: Mapping[str, Service], public_url: str
    ) -> None:
        self._store = store
        self._vault = vault
        self._services = services
        self._url = public_url.rstrip("/")
        self.tokens = tokens

    @property
    def is_secure(self) -> bool:
        """Return whether browsers reach this API by https."""
        return self._url.startswith("https:")

    async def begin(
        self, tenant: str, service: str, user: str, person: str = "", lifetime: timedelta = LIFETIME
    ) -> str:
        """Return the address that the user opens; what it begins can be confirmed once. Raises Invalid
        SERVICE_UNKNOWN."""
        find_service(self._services, service)
        invitation = Invitation(SignedIn(tenant, service, user), person)
        link = await self._store_step("link", invitation, lifetime)
        return f"{self._url}{PAGE}{link}"

    async def find(self, link: str) -> Invitation:
        """Return the invitation of the last part of an address that `begin` has returned. Raises Invalid
        SIGN_IN_UNKNOWN.
        """
        return self._decoded(await self._store.command("GET", self._key("link", link)), Invitation)

    async def confirm(self, link: str, browser: str) -> str:
        """Return the address of the service to which the browser goes. Raises Invalid SIGN_IN_UNKNOWN,
        SERVICE_UNKNOWN."""
        signed_in = self._decoded(await self._store.command("GETDEL", self._key("link", link)), Invitation).signed_in
        service = find_service(self._services, signed_in.service)
        client = WebApplicationClient(service.client_id)
        verifier = client.create_code_verifier(64)
        state = await self._store_step("state", _Begun(signed_in, verifier, _digest(browser)), LIFETIME)
        address: str = client.prepare_request_uri(
            service.authorize_url,
            redirect_uri=self._url + CALLBACK,
            scope=list(service.scopes) or None,
            state=state,
            code_challenge=client.create_code_challenge(verifier, "S256"),
            code_challenge_method="S256",
        )
        return address

    async def is_signed_in(self, tenant: str, service: str, user: str) -> bool:
        """Return whether tokens are stored, which the service has not refused when they were refreshed. Raises Invalid
        SERVICE_UNKNOWN.
        """
        find_service(self._services, service)
        return await self.tokens.exist(tenant, service, user)

    async def finish(self, query: str, browser: str) -> SignedIn:
        """Take the callback's query string, and store the user's tokens.

        Raises Invalid SIGN_IN_UNKNOWN (a wrong, used or old `state`), SIGN_IN_OTHER_BROWSER (it stays valid for the
        browser that began it), SIGN_IN_REFUSED; Refused SIGN_IN_FAILED, after one line in the log: the user has to
        begin again.
        """
        state = _state_of(query)
        begun = self._decoded(await self._store.command("GET", self._key("state", state)), _Begun)
        if not secrets.compare_digest(begun.browser, _digest(browser)):
            raise Invalid("SIGN_IN_OTHER_BROWSER", "This sign-in was begun in another browser.", "state")
        if not await self._store.command("DEL", self._key("state", state)):
            raise _unknown()
        try:
            token = await self._fetch(begun, query, state)
            await self.tokens.write(begun.signed_in.tenant, begun.signed_in.service, begun.signed_in.user, token)
        except (OAuth2Error, GrantRefused) as refusal:
            detail = f"The service did not sign in: {error_of(refusal)}."
            raise Invalid("SIGN_IN_REFUSED", detail, "code") from None
        except (ServiceUnavailable, KeyLost) as fault:
            log.warning("a sign-in to %s has failed: %s", begun.signed_in.service, fault)
            raise Refused("SIGN_IN_FAILED", "The sign-in has failed at the service. Try again later.") from None
        return begun.signed_in

    async def _fetch(self, begun: _Begun, query: str, state: str) -> Mapping[str, object]:
        """Exchange the code of the callback for tokens."""
        service = find_service(self._services, begun.signed_in.service)
        client = WebApplicationClient(service.client_id)
        code = client.parse_request_uri_response(f"https://callback?{query}", state=state)["code"]
        secret = {"client_secret": service.client_secret} if service.client_secret else {}
        body = client.prepare_request_body(
            code=code,
            redirect_uri=self._url + CALLBACK,
            code_verifier=begun.verifier,
            include_client_id=True,
            **secret,
        )
        return await fetch_token(service, body)

    async def _store_step(self, step: str, value: Invitation | _Begun, lifetime: timedelta) -> str:
        """Store a step with its user and return its secret, which names the shard. Only a digest of it is stored."""
        tenant, user = value.signed_in.tenant, value.signed_in.user
        shard, encrypted = shard_of(self._store, tenant, user), self._vault.encrypt(msgspec.json.encode(value).decode())
        secret = f"{shard}.{secrets.token_urlsafe(32)}"
        words = tenant, user, step, _digest(secret), encrypted, lifetime // timedelta(milliseconds=1)
        await self._store.run("begin_sign_in", shard, *words)
        return secret

    def _key(self, step: str, secret: str) -> str:
        """Return the key of a step; for a secret that names no shard one that is not there."""
        shard = secret.partition(".")[0]
        known = int(shard) if shard.isdecimal() and len(shard) < 6 else 0
        return KEYS[f"sign_in_{step}"].at(known % self._store.shards, _digest(secret))

    def _decoded(self, stored: str | None, kind: type[_Value]) -> _Value:
        """Decrypt a stored value. Raises Invalid SIGN_IN_UNKNOWN."""
        try:
            return msgspec.json.decode(self._vault.decrypt(stored or ""), type=kind)
        except (Undecryptable, msgspec.MsgspecError):
            raise _unknown() from None


def _unknown() -> Invalid:
    return Invalid("SIGN_IN_UNKNOWN", "This sign-in is not known here, was used before, or took too long.", "state")


def _state_of(query: str) -> str:
    return parse_qs(query).get("state", [""])[0]


def _digest(secret: str) -> str:
    return sha256(secret.encode(errors="replace")).hexdigest()


async def sign_out(store: Store, sign_in: SignIn | None, tenant: str, user: str, service: str = "") -> bool:
    """Sign a user out of a service. Without a service: out of all of them, and sign-ins that have begun cannot be
    finished. Returns whether there were tokens. `sign_in`: None without ADA_SIGN_IN; then no service is called.
    """
    deleted = await forget(store, tenant, user, service)
    if sign_in:
        await sign_in.tokens.revoke(deleted)
    return bool(deleted)
