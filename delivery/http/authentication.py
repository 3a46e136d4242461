"""Authenticates a request: a known API key or a session, the scope of the route, what people may do, the request rate.

A session is a cookie, which a browser sends by itself. So a request with it that changes something must come from a
page of this server (W-02, OWASP: Cross-Site Request Forgery Prevention, fetch metadata).
"""

import time
from urllib.parse import urlsplit

from aiohttp import hdrs, web

from core.errors import Forbidden
from core.sessions import Identity
from core.sessions.sessions import PERSONAL_KEY, session_ended
from delivery.http.context import ApiContext
from delivery.http.route import People

SESSION_COOKIE = "ada_session"
_SAFE = frozenset({hdrs.METH_GET, hdrs.METH_HEAD, hdrs.METH_OPTIONS})
_SEC_FETCH_SITE = "Sec-Fetch-Site"


async def authenticate(
    request: web.Request, scope: str, context: ApiContext, people: People = People.REFUSED, *, reads: bool = False
) -> Identity:
    """Return whose request it is. `reads`: it changes nothing. Raises `Forbidden` KEY_MISSING,
    KEY_UNKNOWN, SESSION_ENDED, CROSS_SITE,
    NOT_FOR_PEOPLE, SCOPE_MISSING; `RateExceeded`.
    """
    identity = await identify(request, context)
    if identity.session and request.method not in _SAFE and not is_same_origin(request, context):
        raise Forbidden("CROSS_SITE", "A session changes something only from a page of this server.")
    if identity.person and people is People.REFUSED:
        raise Forbidden("NOT_FOR_PEOPLE", "This needs an API key.")
    may = identity.key.may_read if reads else identity.key.permits
    if scope and not may(scope):
        raise Forbidden("SCOPE_MISSING", _missing(identity, scope))
    context.rate_limiter.check(identity.key.id, time.monotonic())
    return identity


def _missing(identity: Identity, scope: str) -> str:
    if identity.person and not identity.session:
        return f"This personal key, or the role of its person, does not have the right {scope}."
    if identity.person:
        return f"The role of this person does not have the right {scope}."
    return f"This needs an API key with the scope {scope}."


async def identify(request: web.Request, context: ApiContext) -> Identity:
    """Return whose key or session the request has; a key comes first. Raises `Forbidden` KEY_MISSING, KEY_UNKNOWN,
    SESSION_ENDED.
    """
    cookie = request.cookies.get(SESSION_COOKIE)
    if cookie and hdrs.AUTHORIZATION not in request.headers:
        identity = await context.services.sessions.find(cookie)
        if identity is None:
            raise session_ended()
        return identity
    return await _with_bearer(bearer_token(request), context)


async def _with_bearer(secret: str, context: ApiContext) -> Identity:
    if secret.startswith(PERSONAL_KEY) and (identity := await context.services.sessions.find_personal_key(secret)):
        return identity
    key = await context.services.api_keys.use(secret)
    if key is None:
        raise Forbidden("KEY_UNKNOWN", "This key is unknown, expired or revoked.")
    return Identity(key)


async def is_still_known(request: web.Request, context: ApiContext) -> bool:
    """Return whether the key or the session of an open stream still exists."""
    try:
        await identify(request, context)
    except Forbidden:
        return False
    return True


def is_same_origin(request: web.Request, context: ApiContext) -> bool:
    """Return whether a page of this server has sent the request. Browsers send Sec-Fetch-Site only over HTTPS and from
    this machine; over plain HTTP the origin of the page must be the address of the request.
    """
    site = request.headers.get(_SEC_FETCH_SITE)
    if site is not None:
        return site == "same-origin"
    origin = _host_of(request.headers.get(hdrs.ORIGIN, ""))
    return bool(origin) and origin in (request.host.lower(), _host_of(context.options.public_url))


def came_from_elsewhere(request: web.Request, context: ApiContext) -> bool:
    """Return whether the request says that a page of another site has sent it. A program says nothing."""
    says = _SEC_FETCH_SITE in request.headers or hdrs.ORIGIN in request.headers
    return says and not is_same_origin(request, context)


def _host_of(url: str) -> str:
    """Return host and port; "" for what is no address."""
    try:
        return urlsplit(url).netloc.lower()
    except ValueError:
        return ""


def bearer_token(request: web.Request) -> str:
    """Return the secret of the Authorization header (RFC 6750). Raises `Forbidden` KEY_MISSING."""
    scheme, _, secret = request.headers.get(hdrs.AUTHORIZATION, "").partition(" ")
    if scheme.lower() != "bearer" or not secret:
        raise Forbidden("KEY_MISSING", "An API key is required: Authorization: Bearer KEY.")
    return secret.strip()
