"""Signing in to the console and out of it."""

from datetime import timedelta

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler

from core.errors import Forbidden
from core.sessions.sessions import NewSession
from delivery.endpoints.console.me import describe
from delivery.http.authentication import SESSION_COOKIE, came_from_elsewhere
from delivery.http.context import Context, Request, Response, no_content
from delivery.http.decoding import JSON_TYPES, BodyReader, check_content_type
from delivery.http.receiving import read_body
from delivery.schemas import sessions as schemas

_BODY_LIMIT = 4096
_read_session_request = BodyReader(schemas.SessionRequest).read


def sign_in(context: Context) -> Handler:
    """Begins a session; the response says who is signed in. The secret of the session is only in the cookie."""

    async def handle(request: web.Request) -> web.Response:
        body = await _read_session_request(await _body(request, context))
        session = await context.services.sessions.begin_with_key(body.key)
        me = await describe(session.identity, context.services, context.options)
        response = Response(me, 201, {hdrs.CACHE_CONTROL: "no-store"}).encode()
        _set_cookie(response, session, is_secure=_is_secure(request, context))
        return response

    return handle


async def _body(request: web.Request, context: Context) -> bytes:
    """Raises Forbidden CROSS_SITE: a page of another site signs nobody in."""
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
