"""One identity provider over HTTP: its metadata and keys, which are cached, the exchange of a code, and the check of
what it has signed: ID tokens, and logout tokens (OpenID Connect Back-Channel Logout 1.0).

Metadata and keys are read again after an hour, and keys at once when a token names an unknown one, but at most once in
half a minute: forged tokens do not make Ada ask the provider without end. A key is taken only from the provider's own
document: what a token says about where its key is has no effect.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import quote_plus, urlsplit

import msgspec
from aiohttp import encode_basic_auth
from joserfc import jws, jwt
from joserfc.errors import JoseError
from joserfc.jwk import Key, import_key
from oauthlib.oauth2 import OAuth2Error, WebApplicationClient

from core.errors import AdaError
from providers.oidc.settings import OidcProvider
from providers.web_request import ServiceUnavailable, call_service

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519")
"""Those with a public key; neither `none` nor HMAC, whose key would be one that Ada has published or guessed."""

LOGOUT_EVENT = "http://schemas.openid.net/event/backchannel-logout"
LEEWAY = 60
"""Seconds by which the clocks may differ."""

_OLDEST_LOGOUT = 600
_MOST_KEYS = 20
_LONGEST_SUBJECT = 255
_PUBLIC_KEYS = ("RSA", "EC", "OKP")


class JwtRefused(AdaError):
    """The token is not one of the provider's for this client and this moment. The text names the reason."""


class JwtKeyUnknown(JwtRefused):
    """The token names a key that is not among the known ones: the provider may have changed its keys."""


def read_keys(document: Any) -> Sequence[Key]:
    """Return the public keys of a JWKS document, without those that are no keys for signatures."""
    found: list[Key] = []
    listed = document.get("keys") if isinstance(document, dict) else None
    for one in listed if isinstance(listed, list) else []:
        if isinstance(one, dict) and one.get("kty") in _PUBLIC_KEYS and one.get("use", "sig") == "sig":
            try:
                found.append(import_key(one))
            except (JoseError, ValueError, TypeError, KeyError):
                continue
    return found[:_MOST_KEYS]


def check_id_token(token: str, keys: Collection[Key], issuer: str, client_id: str, nonce: str) -> Mapping[str, Any]:
    """Return the claims of an ID token. Raises JwtRefused, JwtKeyUnknown."""
    claims = _signed_claims(token, keys)
    _check(claims, issuer, client_id, {"exp": {"essential": True}, "nonce": {"essential": True, "value": nonce}})
    _check_subject(claims)
    audience = claims["aud"]
    if isinstance(audience, list) and len(audience) > 1 and claims.get("azp") != client_id:
        raise JwtRefused("it is for several clients and does not name this one in azp")
    if "azp" in claims and claims["azp"] != client_id:
        raise JwtRefused("azp names another client")
    return claims


def check_logout_token(token: str, keys: Collection[Key], issuer: str, client_id: str) -> Mapping[str, Any]:
    """Return the claims of a logout token: `jti`, and `sub` or `sid` or both. Raises JwtRefused, JwtKeyUnknown."""
    claims = _signed_claims(token, keys)
    _check(claims, issuer, client_id, {"jti": {"essential": True}, "events": {"essential": True}})
    events = claims["events"]
    if not isinstance(events, dict) or not isinstance(events.get(LOGOUT_EVENT), dict) or "nonce" in claims:
        raise JwtRefused("it is no logout token")
    if claims["iat"] < time.time() - _OLDEST_LOGOUT:
        raise JwtRefused("it is too old")
    if not any(isinstance(claims.get(name), str) and claims[name] for name in ("sub", "sid")):
        raise JwtRefused("it names neither a subject nor a session")
    return claims


def _check(claims: dict[str, Any], issuer: str, client_id: str, further: Mapping[str, jwt.ClaimsOption]) -> None:
    iss: jwt.ClaimsOption = {"essential": True, "value": issuer}
    aud: jwt.ClaimsOption = {"essential": True, "value": client_id}
    registry = jwt.JWTClaimsRegistry(None, LEEWAY, iss=iss, aud=aud, iat={"essential": True}, **further)
    try:
        registry.validate(claims)
    except JoseError as fault:
        raise JwtRefused(f"{fault.error} {getattr(fault, 'claim', '') or ''}".strip()) from None


def _check_subject(claims: Mapping[str, Any]) -> None:
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 0 < len(subject) <= _LONGEST_SUBJECT:
        raise JwtRefused("it has no subject")


def _signed_claims(token: str, keys: Collection[Key]) -> dict[str, Any]:
    """Return the claims of a token with the signature of one of the keys. Raises JwtRefused, JwtKeyUnknown."""
    try:
        key_id = jws.extract_compact(token.encode()).headers().get("kid")
    except (JoseError, ValueError, TypeError):
        raise JwtRefused("it is no signed token") from None
    candidates = [key for key in keys if key_id is None or key.kid == key_id]
    if not candidates:
        raise JwtKeyUnknown("it names an unknown key")
    for key in candidates:
        try:
            return jwt.decode(token, key, algorithms=list(ALGORITHMS)).claims
        except (JoseError, ValueError, TypeError):
            continue
    raise JwtRefused("its signature is wrong")


_CACHED = 3600.0
_BETWEEN_KEYS = 30.0
_FORM = {"Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded"}
_T = TypeVar("_T")


class Metadata(msgspec.Struct, frozen=True):
    """The part of the discovery document that a sign-in needs (OpenID Connect Discovery 1.0, section 3)."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str | None = None
    end_session_endpoint: str | None = None
    token_endpoint_auth_methods_supported: tuple[str, ...] | None = None
    authorization_response_iss_parameter_supported: bool | None = None


class Issuer:
    """The provider of one entry of the settings; one per process."""

    def __init__(self, provider: OidcProvider) -> None:
        self.provider = provider
        self._metadata: tuple[float, Metadata] | None = None
        self._keys: tuple[float, Sequence[Key]] | None = None
        self._reading = asyncio.Lock()

    async def metadata(self) -> Metadata:
        """Return the metadata. Raises ServiceUnavailable, also if the document is of another issuer."""
        async with self._reading:
            if self._metadata is None or _is_old(self._metadata[0], _CACHED):
                url = f"{self.provider.issuer.rstrip('/')}/.well-known/openid-configuration"
                found = _decoded(await self._get(url), Metadata)
                if found.issuer != self.provider.issuer:
                    raise ServiceUnavailable(f"the document is of the issuer {found.issuer[:200]!r}")
                _check_endpoints(found)
                self._metadata = time.monotonic(), found
            return self._metadata[1]

    async def keys(self, *, older_than: float = _CACHED) -> Sequence[Key]:
        """Return the public keys, read again if they are older than so many seconds. Raises ServiceUnavailable."""
        url = (await self.metadata()).jwks_uri
        async with self._reading:
            if self._keys is None or _is_old(self._keys[0], older_than):
                self._keys = time.monotonic(), read_keys(_decoded(await self._get(url), Any))
            return self._keys[1]

    async def check(self, check: Callable[[Sequence[Key]], _T]) -> _T:
        """Return what `check` finds with the keys; with new ones if it does not know the key. Raises JwtRefused,
        ServiceUnavailable.
        """
        try:
            return check(await self.keys())
        except JwtKeyUnknown:
            return check(await self.keys(older_than=_BETWEEN_KEYS))

    async def exchange(self, code: str, verifier: str, redirect_uri: str) -> Mapping[str, Any]:
        """Exchange a code for tokens. Raises JwtRefused if the provider refuses it, ServiceUnavailable."""
        metadata, provider = await self.metadata(), self.provider
        client = WebApplicationClient(provider.client_id)
        secret, authorization = self._credentials(metadata)
        body = client.prepare_request_body(
            code=code, redirect_uri=redirect_uri, code_verifier=verifier, include_client_id=not authorization, **secret
        )
        headers = {**_FORM, **authorization}
        _, text = await call_service(
            "POST", metadata.token_endpoint, provider.timeout_seconds, body=body, headers=headers
        )
        try:
            found: Mapping[str, Any] = client.parse_request_body_response(text)
        except OAuth2Error as refusal:
            raise JwtRefused(f"the code was refused ({str(refusal.error)[:50]})") from None
        except (Warning, ValueError, TypeError, AttributeError, OverflowError, RecursionError):
            raise ServiceUnavailable("the answer of the token address is no token") from None
        return found

    async def user_info(self, access_token: str) -> Mapping[str, Any]:
        """Return the claims about the person that the ID token may lack; {} if the provider has no such address."""
        url = (await self.metadata()).userinfo_endpoint
        if not url:
            return {}
        return _decoded(await self._get(url, {"Authorization": f"Bearer {access_token}"}), dict[str, Any])

    def _credentials(self, metadata: Metadata) -> tuple[Mapping[str, str], Mapping[str, str]]:
        """Return the secret as fields of the form, or as headers (RFC 6749, section 2.3.1)."""
        provider, methods = self.provider, metadata.token_endpoint_auth_methods_supported
        if not provider.client_secret:
            return {}, {}
        if methods and "client_secret_basic" not in methods:
            return {"client_secret": provider.client_secret}, {}
        quoted = (quote_plus(one) for one in (provider.client_id, provider.client_secret))
        return {}, {"Authorization": encode_basic_auth(*quoted)}

    async def _get(self, url: str, headers: Mapping[str, str] | None = None) -> str:
        status, text = await call_service("GET", url, self.provider.timeout_seconds, headers=headers)
        if status != 200:
            raise ServiceUnavailable(f"the service answered {status}")
        return text


def _is_old(read_at: float, seconds: float) -> bool:
    return time.monotonic() - read_at > seconds


def _decoded(text: str, shape: type[_T]) -> _T:
    try:
        return msgspec.json.decode(text, type=shape)
    except (msgspec.MsgspecError, RecursionError):
        raise ServiceUnavailable("the answer is not what such an address returns") from None


def _check_endpoints(metadata: Metadata) -> None:
    """Check that all addresses are safe to send secrets to: https, or at the issuer itself, which is on this machine if
    it has no https. So no document leads Ada to another service of this machine. Raises ServiceUnavailable.
    """
    needed = metadata.authorization_endpoint, metadata.token_endpoint, metadata.jwks_uri
    for url in (*needed, *filter(None, (metadata.userinfo_endpoint, metadata.end_session_endpoint))):
        if _origin(url)[0] != "https" and _origin(url) != _origin(metadata.issuer):
            raise ServiceUnavailable(f"an address of the document must begin with https://, not {url[:200]}")


def _origin(url: str) -> tuple[str, str]:
    """Return scheme, and host with port. Raises ServiceUnavailable."""
    try:
        return urlsplit(url)[:2]
    except ValueError:
        raise ServiceUnavailable("the document has a malformed address") from None
