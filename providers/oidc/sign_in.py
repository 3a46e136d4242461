"""A sign-in at an identity provider, from the address that a browser opens to the account behind it."""

import hmac
import logging
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from datetime import timedelta
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qs, urlencode

from oauthlib.oauth2 import WebApplicationClient

from core.errors import Invalid, Refused
from core.redis.keys import KEYS
from core.redis.store import Store
from core.sessions.outside_accounts import EndedLogin, OutsideAccount
from providers.oidc.issuer import Issuer, JwtRefused, check_id_token, check_logout_token
from providers.oidc.settings import OidcProvider, RoleRule, find_provider
from providers.web_request import ServiceUnavailable

log = logging.getLogger(__name__)

LIFETIME = timedelta(minutes=10)
"""Time limit of a person at the provider."""


class OidcSignIn:
    """Sign-ins at all providers of the settings. `public_url`: the address under which a browser reaches this API."""

    def __init__(self, store: Store, providers: Mapping[str, OidcProvider], public_url: str) -> None:
        self._store = store
        self._providers = providers
        self._issuers = {name: Issuer(provider) for name, provider in providers.items()}
        self._url = public_url.rstrip("/")

    @property
    def is_secure(self) -> bool:
        """Return whether browsers reach this API by https."""
        return self._url.startswith("https:")

    @property
    def titles(self) -> Mapping[str, str]:
        """Return the texts of the buttons, by the names of the providers."""
        return {name: provider.title or name for name, provider in self._providers.items()}

    def redirect_uri(self, name: str) -> str:
        """Return the address that is registered at the provider. Each provider has its own, so that the answer of one
        is never taken for that of another (RFC 9700, section 4.4).
        """
        return f"{self._url}/v1/sessions/providers/{name}/callback"

    async def begin(self, name: str, browser: str) -> str:
        """Return the address of the provider to which the browser goes. `browser`: its secret, of which the nonce and
        the verifier of PKCE are made, so neither is stored. Raises NotFound PROVIDER_NOT_FOUND, Refused SIGN_IN_FAILED.
        """
        provider = find_provider(self._providers, name)
        try:
            metadata = await self._issuers[name].metadata()
        except ServiceUnavailable as fault:
            raise _failed(name, fault) from None
        state = secrets.token_urlsafe(32)
        client = WebApplicationClient(provider.client_id)
        verifier = _derived(browser, "verifier", state)
        await self._store.command("SET", self._state_key(name, state, browser), "1", "PX", LIFETIME // _MS)
        address: str = client.prepare_request_uri(
            metadata.authorization_endpoint,
            redirect_uri=self.redirect_uri(name),
            scope=list(provider.scopes),
            state=state,
            nonce=_derived(browser, "nonce", state),
            code_challenge=client.create_code_challenge(verifier, "S256"),
            code_challenge_method="S256",
        )
        return address

    async def finish(self, name: str, query: str, browser: str) -> OutsideAccount:
        """Take the query string of the callback; return the account that has signed in.

        Raises NotFound PROVIDER_NOT_FOUND; Invalid SIGN_IN_UNKNOWN (a wrong, used or old `state`, or that of another
        browser or provider), SIGN_IN_REFUSED (by the person or the provider); Refused SIGN_IN_FAILED, after one line in
        the log: the answer is not one that the provider has signed for this sign-in, or it cannot be reached.
        """
        provider, given = find_provider(self._providers, name), parse_qs(query)
        state, code, error, issuer = (_only(given, one) for one in ("state", "code", "error", "iss"))
        if not await self._store.command("DEL", self._state_key(name, state, browser)):
            raise Invalid("SIGN_IN_UNKNOWN", "This sign-in is not known here, was used before, or took too long.")
        if error or not code:
            raise Invalid("SIGN_IN_REFUSED", "The identity provider did not sign in.")
        try:
            await self._check_issuer(name, issuer)
            claims = await self._claims(name, code, browser, state)
        except (ServiceUnavailable, JwtRefused) as fault:
            raise _failed(name, fault) from None
        return _account(provider, claims)

    async def _check_issuer(self, name: str, issuer: str) -> None:
        """Check that the answer is of this provider (RFC 9207). Raises JwtRefused, ServiceUnavailable."""
        metadata = await self._issuers[name].metadata()
        if issuer != metadata.issuer and (issuer or metadata.authorization_response_iss_parameter_supported):
            raise JwtRefused("the answer is of another issuer")

    async def _claims(self, name: str, code: str, browser: str, state: str) -> Mapping[str, Any]:
        """Return what the provider says about the person, first of all in the ID token."""
        issuer, provider, nonce = self._issuers[name], self._providers[name], _derived(browser, "nonce", state)
        tokens = await issuer.exchange(code, _derived(browser, "verifier", state), self.redirect_uri(name))
        id_token = str(tokens.get("id_token", ""))
        claims = await issuer.check(
            lambda keys: check_id_token(id_token, keys, provider.issuer, provider.client_id, nonce)
        )
        wanted = {"email", "email_verified", *([provider.roles.claim.partition(".")[0]] if provider.roles else [])}
        if wanted <= claims.keys():
            return claims
        further = await issuer.user_info(str(tokens.get("access_token", "")))
        if further and further.get("sub") != claims["sub"]:
            raise JwtRefused("the further claims are about another person")
        return {**further, **claims}

    async def read_logout(self, name: str, token: str) -> EndedLogin:
        """Return what a logout token ends. Raises NotFound PROVIDER_NOT_FOUND, Invalid LOGOUT_TOKEN_REFUSED, Refused
        SIGN_IN_FAILED (the keys cannot be read).
        """
        provider = find_provider(self._providers, name)
        try:
            claims = await self._issuers[name].check(
                lambda keys: check_logout_token(token, keys, provider.issuer, provider.client_id)
            )
        except JwtRefused as refusal:
            raise Invalid("LOGOUT_TOKEN_REFUSED", f"The logout token was refused: {refusal}.") from None
        except ServiceUnavailable as fault:
            raise _failed(name, fault) from None
        subject, login = str(claims.get("sub") or ""), str(claims.get("sid") or "")
        return EndedLogin(provider.tenant, provider.issuer, subject, login, str(claims["jti"]))

    async def sign_out_address(self, name: str) -> str:
        """Return the address at which a person signs out of the provider itself; "" if it has none. Raises NotFound
        PROVIDER_NOT_FOUND, Refused SIGN_IN_FAILED.
        """
        provider = find_provider(self._providers, name)
        try:
            address = (await self._issuers[name].metadata()).end_session_endpoint or ""
        except ServiceUnavailable as fault:
            raise _failed(name, fault) from None
        query = urlencode({"client_id": provider.client_id, "post_logout_redirect_uri": f"{self._url}/"})
        return f"{address}{'&' if '?' in address else '?'}{query}" if address else ""

    async def check(self, name: str) -> str:
        """Ask a provider for its metadata and keys; return what is wrong with it, "" if nothing is."""
        try:
            metadata, keys = await self._issuers[name].metadata(), await self._issuers[name].keys()
        except ServiceUnavailable as fault:
            return str(fault)
        if not keys:
            return f"{metadata.jwks_uri} has no key for signatures"
        return ""

    def _state_key(self, name: str, state: str, browser: str) -> str:
        shard = self._store.shard_of_tenant(self._providers[name].tenant)
        return KEYS["oidc_state"].at(shard, _derived(browser, f"state {name}", state))


_MS = timedelta(milliseconds=1)


def _only(given: Mapping[str, list[str]], name: str) -> str:
    """Return a parameter that stands once in a query, "" for any other."""
    values = given.get(name, [])
    return values[0] if len(values) == 1 else ""


def _derived(browser: str, use: str, state: str) -> str:
    """Return a value that only the browser with this secret has for this sign-in."""
    made = hmac.digest(browser.encode(errors="replace"), f"{use} {state}".encode(errors="replace"), sha256)
    return urlsafe_b64encode(made).decode().rstrip("=")


def _account(provider: OidcProvider, claims: Mapping[str, Any]) -> OutsideAccount:
    """Return the account of checked claims. An address counts only with `email_verified`: true, and no other form."""
    email, login = claims.get("email"), claims.get("sid")
    is_verified = claims.get("email_verified") is True and isinstance(email, str)
    return OutsideAccount(
        provider.tenant,
        provider.issuer,
        str(claims["sub"]),
        login if isinstance(login, str) else "",
        str(email) if is_verified else "",
        role_of(provider.roles, claims),
        tuple(dict.fromkeys(provider.roles.values.values())) if provider.roles else (),
    )


def role_of(rule: RoleRule | None, claims: Mapping[str, Any]) -> str | None:
    """Return the role that a rule gives for claims; None for none."""
    if rule is None:
        return None
    value: Any = claims
    for step in [rule.claim] if rule.claim in claims else rule.claim.split("."):
        value = value.get(step) if isinstance(value, Mapping) else None
    found = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    return next((role for given, role in rule.values.items() if given in found), None)


def _failed(name: str, fault: Exception) -> Refused:
    log.warning("a sign-in at the identity provider %s has failed: %s", name, fault)
    return Refused("SIGN_IN_FAILED", "The sign-in has failed at the identity provider. Try again later.")
