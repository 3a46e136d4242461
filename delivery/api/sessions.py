"""Signing in to the console and out of it."""

import re
import time
from datetime import datetime, timedelta
from typing import Annotated, Literal

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler
from msgspec import UNSET, Meta, Struct, UnsetType

from core.errors import Forbidden
from core.model.field_types import ShortText
from core.sessions.links import Proven
from core.sessions.sessions import NewSession
from delivery.api.me import Me, describe
from delivery.http.authentication import SESSION_COOKIE, came_from_elsewhere
from delivery.http.context import ApiContext, Request, Response, no_content
from delivery.http.fields import Email, RequestModel
from delivery.http.input.decoding import JSON_TYPES, BodyReader, check_content_type
from delivery.http.input.receiving import read_body
from delivery.http.rate_limit import RateLimiter
from delivery.http.responses.problems import invalid_field
from delivery.http.route import OpenRoute, People, Route, Routes
from delivery.http.services import ApiServices

Secret = Annotated[str, Meta(min_length=1, max_length=256)]


class SessionRequest(RequestModel, frozen=True):
    """The proof of an identity: an API key, by a mailed code and its id, or by a link of the bot."""

    key: Annotated[Secret, Meta(description="an API key")] | UnsetType = UNSET
    code_id: Annotated[Secret, Meta(description="the id of the request of the code")] | UnsetType = UNSET
    code: (
        Annotated[str, Meta(min_length=1, max_length=64, description="spaces and small letters do not matter")]
        | UnsetType
    ) = UNSET
    link: Annotated[Secret, Meta(description="the last part of the address that the bot has sent")] | UnsetType = UNSET
    bind_account: (
        Annotated[
            bool,
            Meta(description="with a code: the account with which this browser came from a provider is the person's"),
        ]
        | UnsetType
    ) = UNSET


class CodeBody(RequestModel, frozen=True):
    """The address to which a code is mailed. `tenant`: that of the person."""

    email: Email
    tenant: Annotated[ShortText, Meta(extra_json_schema={"default": "default"})] | UnsetType = UNSET


class CodeSent(Struct):
    """A code is mailed if a person has the address. `code_id` is needed together with the code."""

    code_id: str
    expires_at: datetime


class SignOutQuery(RequestModel, frozen=True):
    """Selects the sessions that end."""

    all: (
        Annotated[
            Literal["", "1", "true", "0", "false"],
            Meta(description="all sessions of this person or key; the name alone means true"),
        ]
        | UnsetType
    ) = UNSET

    @property
    def ends_all(self) -> bool:
        return self.all in ("", "1", "true")


BROWSER_COOKIE = "ada_browser"
"""A secret of the browser. A sign-in at an identity provider is finished only in the browser that has begun it."""
_BROWSER = re.compile(r"[A-Za-z0-9_-]{43}")
_BODY_LIMIT = 4096
_read_session_request = BodyReader(SessionRequest).read
_read_code_request = BodyReader(CodeBody).read


def sign_in(context: ApiContext) -> Handler:
    """Begin a session; the response says who is signed in. The secret of the session is only in the cookie."""
    limiter = new_limiter()

    async def handle(request: web.Request) -> web.Response:
        limiter.check(request.remote or "", time.monotonic())
        body = await _read_session_request(await _body(request, context))
        session = await _begin(body, context.services, browser_of(request))
        me = await describe(session.identity, context.services, context.options)
        response = Response(me, 201, {hdrs.CACHE_CONTROL: "no-store"}).encode()
        set_session_cookie(response, session, is_secure=_is_secure(request, context))
        return response

    return handle


def mail_code(context: ApiContext) -> Handler:
    """Mail a code to sign in. The response is the same for an unknown address."""
    limiter = new_limiter()

    async def handle(request: web.Request) -> web.Response:
        limiter.check(request.remote or "", time.monotonic())
        body = await _read_code_request(await _body(request, context))
        sent = await context.services.sign_in_codes.request(body.tenant or "default", body.email)
        return Response(CodeSent(sent.id, sent.expires_at), 202).encode()

    return handle


def new_limiter() -> RateLimiter:
    """Return the limit for each client address, above what a person needs."""
    return RateLimiter(rate=2, burst=60)


async def _begin(body: SessionRequest, services: ApiServices, browser: str) -> NewSession:
    """Begin a session by a key, a code or a link. Raises InvalidFields ONE_FIELD_WANTED, Forbidden KEY_UNKNOWN,
    CODE_WRONG, LINK_USED; what `OutsideAccounts.link` raises.
    """
    given = {name for name in body.__struct_fields__ if getattr(body, name)}
    if given == {"key"}:
        return await services.sessions.begin_with_key(body.key or "")
    if given == {"link"}:
        return await _begin_as(await services.sign_in_links.use(body.link or ""), services)
    if given - {"bind_account"} == {"code", "code_id"}:
        proven = await services.sign_in_codes.confirm(body.code_id or "", body.code or "")
        return await (
            services.outside_accounts.link(browser, proven) if body.bind_account else _begin_as(proven, services)
        )
    raise invalid_field("", "ONE_FIELD_WANTED", "Exactly one of key, link, or code with code_id is required.")


async def _begin_as(proven: Proven, services: ApiServices) -> NewSession:
    return await services.sessions.begin_as_person(proven.tenant, proven.person)


async def _body(request: web.Request, context: ApiContext) -> bytes:
    """Read a body that a page has sent. Raises Forbidden CROSS_SITE: a page of another site cannot sign a person in."""
    if came_from_elsewhere(request, context):
        raise Forbidden("CROSS_SITE", "Sign in on a page of this server.")
    check_content_type(request, JSON_TYPES)
    return await read_body(request, _BODY_LIMIT, context.options.body_timeout)


def set_session_cookie(response: web.Response, session: NewSession, *, is_secure: bool) -> None:
    age = session.lifetime // timedelta(seconds=1)
    response.set_cookie(
        SESSION_COOKIE, session.secret, max_age=age, path="/", httponly=True, samesite="Strict", secure=is_secure
    )


def browser_of(request: web.Request) -> str:
    """Return the secret of the browser; "" if it has none."""
    secret = request.cookies.get(BROWSER_COOKIE, "")
    return secret if _BROWSER.fullmatch(secret) else ""


def _is_secure(request: web.Request, context: ApiContext) -> bool:
    """Return whether the browser uses HTTPS: its page says so. Without a page the address of the settings decides."""
    origin = request.headers.get(hdrs.ORIGIN)
    return request.secure or (origin or context.options.public_url).startswith("https:")


async def sign_out(request: Request[None, SignOutQuery]) -> Response:
    """End this session, or all of the same person or key. Their event streams end within a second."""
    sessions = request.services.sessions
    await (sessions.end_all if request.query.ends_all else sessions.end)(request.identity)
    gone = f'{SESSION_COOKIE}=""; HttpOnly; Max-Age=0; Path=/; SameSite=Strict'
    return Response(None, no_content().status, {hdrs.SET_COOKIE: gone})


ROUTES: Routes = (
    Route("DELETE", "/v1/sessions", "Sign out: end this session, or all of the same person or key", "", sign_out, 204,
          query=SignOutQuery, people=People.BY_SCOPE),
    OpenRoute("POST", "/v1/sessions", "Sign in to the console; the session is a cookie", sign_in, Me,
              body=SessionRequest, status=201),
    OpenRoute("POST", "/v1/sessions/codes", "Mail a code that signs a person in to the console", mail_code, CodeSent,
              body=CodeBody, status=202),
)  # fmt: skip
