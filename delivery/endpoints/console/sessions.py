"""Signing in to the console and out of it."""

import time
from datetime import timedelta

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler

from core.errors import Forbidden
from core.sessions.codes import Proven
from core.sessions.sessions import NewSession
from delivery.endpoints.console.me import describe
from delivery.http.authentication import SESSION_COOKIE, came_from_elsewhere
from delivery.http.context import Context, Request, Response, no_content
from delivery.http.input.decoding import JSON_TYPES, BodyReader, check_content_type
from delivery.http.input.receiving import read_body
from delivery.http.rate_limit import RateLimiter
from delivery.http.responses.problems import invalid_field
from delivery.schemas.console import sessions as schemas
from delivery.services import ApiServices

_BODY_LIMIT = 4096
_read_session_request = BodyReader(schemas.SessionRequest).read
_read_code_request = BodyReader(schemas.CodeBody).read


def sign_in(context: Context) -> Handler:
    """Begin a session; the response says who is signed in. The secret of the session is only in the cookie."""
    limiter = _limiter()

    async def handle(request: web.Request) -> web.Response:
        limiter.check(request.remote or "", time.monotonic())
        body = await _read_session_request(await _body(request, context))
        session = await _begin(body, context.services)
        me = await describe(session.identity, context.services, context.options)
        response = Response(me, 201, {hdrs.CACHE_CONTROL: "no-store"}).encode()
        _set_cookie(response, session, is_secure=_is_secure(request, context))
        return response

    return handle


def mail_code(context: Context) -> Handler:
    """Mail a code to sign in. The response is the same for an unknown address."""
    limiter = _limiter()

    async def handle(request: web.Request) -> web.Response:
        limiter.check(request.remote or "", time.monotonic())
        body = await _read_code_request(await _body(request, context))
        sent = await context.services.sign_in_codes.request(body.tenant or "default", body.email)
        return Response(schemas.CodeSent(sent.id, sent.expires_at), 202).encode()

    return handle


def _limiter() -> RateLimiter:
    """Return the limit for each client address, above what a person needs."""
    return RateLimiter(rate=2, burst=60)


async def _begin(body: schemas.SessionRequest, services: ApiServices) -> NewSession:
    """Begin a session by a key, a code or a link. Raises InvalidFields ONE_FIELD_WANTED, Forbidden KEY_UNKNOWN,
    CODE_WRONG, LINK_USED.
    """
    given = {name for name in body.__struct_fields__ if getattr(body, name)}
    if given == {"key"}:
        return await services.sessions.begin_with_key(body.key or "")
    if given == {"link"}:
        return await _begin_as(await services.sign_in_links.use(body.link or ""), services)
    if given == {"code", "code_id"}:
        return await _begin_as(await services.sign_in_codes.confirm(body.code_id or "", body.code or ""), services)
    raise invalid_field("", "ONE_FIELD_WANTED", "Exactly one of key, link, or code with code_id is required.")


async def _begin_as(proven: Proven, services: ApiServices) -> NewSession:
    return await services.sessions.begin_as_person(proven.tenant, proven.person)


async def _body(request: web.Request, context: Context) -> bytes:
    """Read a body that a page has sent. Raises Forbidden CROSS_SITE: a page of another site cannot sign a person in."""
    if came_from_elsewhere(request, context):
        raise Forbidden("CROSS_SITE", "Sign in on a page of this server.")
    check_content_type(request, JSON_TYPES)
    return await read_body(request, _BODY_LIMIT, context.options.body_timeout)


def _set_cookie(response: web.Response, session: NewSession, *, is_secure: bool) -> None:
    age = session.lifetime // timedelta(seconds=1)
    response.set_cookie(
        SESSION_COOKIE, session.secret, max_age=age, path="/", httponly=True, samesite="Strict", secure=is_secure
    )


def _is_secure(request: web.Request, context: Context) -> bool:
    """Return whether the browser uses HTTPS: its page says so. Without a page the address of the settings decides."""
    origin = request.headers.get(hdrs.ORIGIN)
    return request.secure or (origin or context.options.public_url).startswith("https:")


async def sign_out(request: Request[None, schemas.SignOutQuery]) -> Response:
    """End this session, or all of the same person or key. Their event streams end within a second."""
    sessions = request.services.sessions
    await (sessions.end_all if request.query.ends_all else sessions.end)(request.identity)
    gone = f'{SESSION_COOKIE}=""; HttpOnly; Max-Age=0; Path=/; SameSite=Strict'
    return Response(None, no_content().status, {hdrs.SET_COOKIE: gone})
