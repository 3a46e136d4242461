"""Authenticates a request: a known API key, the scope of the route, the request rate of the key."""

import time

from aiohttp import hdrs, web

from core.admission.api_keys import ApiKey
from core.errors import Forbidden
from delivery.http.context import Context


async def authenticate(request: web.Request, scope: str, context: Context) -> ApiKey:
    """Return the key of the request. Raises `Forbidden` KEY_MISSING, KEY_UNKNOWN, SCOPE_MISSING; `RateExceeded`."""
    secret, api_keys = bearer_token(request), context.services.api_keys
    key = await api_keys.use(secret)
    if key is None:
        raise Forbidden("KEY_UNKNOWN", "This API key is unknown or revoked.")
    if not key.permits(scope):
        raise Forbidden("SCOPE_MISSING", f"This needs an API key with the scope {scope}.")
    context.rate_limiter.check(key.id, time.monotonic())
    return key


def bearer_token(request: web.Request) -> str:
    """Return the secret of the Authorization header (RFC 6750). Raises `Forbidden` KEY_MISSING."""
    scheme, _, secret = request.headers.get(hdrs.AUTHORIZATION, "").partition(" ")
    if scheme.lower() != "bearer" or not secret:
        raise Forbidden("KEY_MISSING", "An API key is required: Authorization: Bearer KEY.")
    return secret.strip()
