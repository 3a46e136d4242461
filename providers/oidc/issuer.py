"""One identity provider over HTTP: its metadata and keys, which are cached, and the exchange of a code.

Metadata and keys are read again after an hour, and keys at once when a token names an unknown one, but at most once in
half a minute: forged tokens do not make Ada ask the provider without end.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import quote_plus, urlsplit

import msgspec
from aiohttp import encode_basic_auth
from joserfc.jwk import Key
from oauthlib.oauth2 import OAuth2Error, WebApplicationClient

from providers.oidc.settings import OidcProvider
from providers.oidc.tokens import JwtKeyUnknown, JwtRefused, read_keys
from providers.service_call import ServiceUnavailable, call_service

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
