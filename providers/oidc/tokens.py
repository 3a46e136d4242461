"""Checks what an identity provider has signed: ID tokens, and logout tokens (OpenID Connect Back-Channel Logout 1.0).

A key is taken only from the provider's own document: what a token says about where its key is has no effect.
"""

import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from joserfc import jws, jwt
from joserfc.errors import JoseError
from joserfc.jwk import Key, import_key

from core.errors import AdaError

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
