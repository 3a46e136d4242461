"""A sign-in from its address to its callback."""

import secrets
from collections.abc import Mapping
from hashlib import sha256
from urllib.parse import parse_qs

import msgspec
from oauthlib.oauth2 import OAuth2Error, WebApplicationClient

from core.errors import Invalid
from core.redis.keys import KEYS
from core.redis.store import Store
from core.sign_in.client import GrantRefused, fetch_token
from core.sign_in.services import Service, find_service
from core.sign_in.tokens import Tokens
from core.sign_in.vault import Vault

LIFETIME_MS = 10 * 60 * 1000
"""How long a user has from the address to the callback."""

CALLBACK = "/v1/sign-in/callback"


class SignedIn(msgspec.Struct, frozen=True):
    """Who has signed in where."""

    tenant: str
    service: str
    user: str


class _Begun(msgspec.Struct, frozen=True):
    """A sign-in that waits for its callback. `verifier`: the secret of PKCE, which only this installation knows."""

    signed_in: SignedIn
    verifier: str


class SignIn:
    """One per process. `public_url`: the address under which a browser reaches this API."""

    def __init__(
        self, store: Store, vault: Vault, tokens: Tokens, services: Mapping[str, Service], public_url: str
    ) -> None:
        self._store = store
        self._vault = vault
        self._tokens = tokens
        self._services = services
        self._callback = public_url.rstrip("/") + CALLBACK

    async def begin(self, tenant: str, service: str, user: str) -> str:
        """The address to which the user goes; valid for ten minutes, once. Raises Invalid SERVICE_UNKNOWN."""
        found = find_service(self._services, service)
        client, state = WebApplicationClient(found.client_id), secrets.token_urlsafe(32)
        verifier = client.create_code_verifier(64)
        begun = _Begun(SignedIn(tenant, service, user), verifier)
        encrypted = self._vault.encrypt(msgspec.json.encode(begun).decode())
        await self._store.command("SET", _key(state), encrypted, "PX", LIFETIME_MS)
        address: str = client.prepare_request_uri(
            found.authorize_url,
            redirect_uri=self._callback,
            scope=list(found.scopes) or None,
            state=state,
            code_challenge=client.create_code_challenge(verifier, "S256"),
            code_challenge_method="S256",
        )
        return address

    async def is_signed_in(self, tenant: str, service: str, user: str) -> bool:
        """Whether tokens are stored, which the service has not refused when they were refreshed. Raises Invalid
        SERVICE_UNKNOWN.
        """
        find_service(self._services, service)
        return await self._tokens.exist(tenant, service, user)

    async def finish(self, query: str) -> SignedIn:
        """Take the callback's query string, and store the user's tokens.

        Raises Invalid SIGN_IN_UNKNOWN (a wrong, used or old `state`), SIGN_IN_REFUSED; ServiceUnavailable: the user has
        to begin again.
        """
        state = _state_of(query)
        stored = await self._store.command("GETDEL", _key(state)) if state else None
        if not stored:
            raise Invalid(
                "SIGN_IN_UNKNOWN", "This sign-in is not known here, was used before, or took too long.", "state"
            )
        begun = msgspec.json.decode(self._vault.decrypt(stored), type=_Begun)
        service = find_service(self._services, begun.signed_in.service)
        client = WebApplicationClient(service.client_id)
        try:
            code = client.parse_request_uri_response(f"https://callback?{query}", state=state)["code"]
            secret = {"client_secret": service.client_secret} if service.client_secret else {}
            body = client.prepare_request_body(
                code=code, redirect_uri=self._callback, code_verifier=begun.verifier, include_client_id=True, **secret
            )
            token = await fetch_token(service, body)
        except (OAuth2Error, GrantRefused) as refusal:
            raise Invalid("SIGN_IN_REFUSED", f"The service did not sign in: {_reason(refusal)}.", "code") from None
        await self._tokens.write(begun.signed_in.tenant, begun.signed_in.service, begun.signed_in.user, token)
        return begun.signed_in


def _state_of(query: str) -> str:
    return parse_qs(query).get("state", [""])[0]


def _key(state: str) -> str:
    """Only a digest of the state is stored."""
    return KEYS["sign_in"].at(0, sha256(state.encode()).hexdigest())


def _reason(refusal: Exception) -> str:
    error = getattr(refusal, "error", "") or "the grant was refused"
    return str(error)[:100]
