"""Signing in to the console and out of it: by a key, a mailed code, a link of the bot, or at an identity provider, with
the buttons, the way there, the way back, and its logout.

A browser that is led back goes to a page of the console, also with a refusal; its code stands in the address there.
"""

import re
import secrets
import time
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Annotated, Literal
from urllib.parse import parse_qs

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler
from msgspec import UNSET, Meta, Struct, UnsetType

from core.errors import Forbidden, Invalid, NotFound, Refused
from core.model.field_types import ShortText
from core.sessions.links import Proven
from core.sessions.outside_accounts import LINK_LIFETIME
from core.sessions.sessions import NewSession
from delivery.api.me import Me, describe
from delivery.api.pages import HTML
from delivery.http.authentication import SESSION_COOKIE, came_from_elsewhere
from delivery.http.context import ApiContext, ApiServices, ProviderSignIn, Request, Response, no_content
from delivery.http.decoding import JSON_TYPES, BodyReader, check_content_type
from delivery.http.fields import Email, RequestModel
from delivery.http.rate_limit import RateLimiter
from delivery.http.receiving import read_body, receive
from delivery.http.responses.problems import invalid_field
from delivery.http.route import OpenRoute, People, Route, Routes

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


_PATH = "/v1/sessions/providers"
_HEADERS = {hdrs.CACHE_CONTROL: "no-store", "Referrer-Policy": "no-referrer"}
_TOKEN_LIMIT = 16 * 1024
_COOKIE_SECONDS = LINK_LIFETIME // timedelta(seconds=1)


class IdentityProvider(Struct):
    """An identity provider at which people sign in. `title`: the text of its button."""

    name: str
    title: str


class IdentityProviderList(Struct):
    """The identity providers of this installation, in the order of the settings."""

    providers: list[IdentityProvider]


class ProviderCallbackQuery(Struct, frozen=True):
    """The parameters that a provider adds to the callback. Providers add parameters of their own."""

    state: Annotated[str, Meta(max_length=256)]
    code: Annotated[str, Meta(max_length=4096)] | UnsetType = UNSET
    error: ShortText | UnsetType = UNSET
    iss: Annotated[str, Meta(max_length=2048, description="the issuer (RFC 9207)")] | UnsetType = UNSET


Step = Callable[[web.Request, ProviderSignIn, str], Awaitable[web.Response]]


def list_providers(context: ApiContext) -> Handler:
    """Return the providers, none without ADA_OIDC."""

    async def handle(request: web.Request) -> web.Response:
        providers = context.services.identity_providers
        found = providers.titles.items() if providers else ()
        return Response(IdentityProviderList([IdentityProvider(*one) for one in found])).encode()

    return handle


def begin_at_provider(context: ApiContext) -> Handler:
    """Redirect the browser to the provider, and set the cookie that the callback requires."""

    async def step(request: web.Request, providers: ProviderSignIn, name: str) -> web.Response:
        browser = secrets.token_urlsafe(32)
        response = _redirect(await providers.begin(name, browser))
        _set_browser(response, browser, providers)
        return response

    return _limited(context, step)


def finish_at_provider(context: ApiContext) -> Handler:
    """Begin the session of the person whose account it is. An account without a person is kept for this browser, and
    the console asks for a code by mail.
    """

    async def step(request: web.Request, providers: ProviderSignIn, name: str) -> web.Response:
        browser, accounts = browser_of(request), context.services.outside_accounts
        account = await providers.finish(name, request.rel_url.raw_query_string, browser)
        session = await accounts.sign_in(account)
        if session is None:
            await accounts.keep(account, browser)
            response = _to_console("#/sign-in?bind=1")
            _set_browser(response, browser, providers)
            return response
        response = _to_console("#/sign-in?done=1")
        response.del_cookie(BROWSER_COOKIE, path="/")
        set_session_cookie(response, session, is_secure=providers.is_secure)
        return response

    return _limited(context, step)


def leave_provider(context: ApiContext) -> Handler:
    """Lead the browser to where a person signs out of the provider itself."""

    async def step(request: web.Request, providers: ProviderSignIn, name: str) -> web.Response:
        address = await providers.sign_out_address(name)
        return _redirect(address) if address else _to_console("#/sign-in")

    return _limited(context, step)


def end_by_provider(context: ApiContext) -> Handler:
    """End the sessions that a provider has ended (OpenID Connect Back-Channel Logout 1.0)."""
    limiter = new_limiter()

    async def handle(request: web.Request) -> web.Response:
        limiter.check(request.remote or "", time.monotonic())
        providers = _set_up(context)
        form = parse_qs((await receive(request, _TOKEN_LIMIT, context.options.body_timeout)).decode("latin-1"))
        tokens = form.get("logout_token", [])
        if len(tokens) != 1:
            raise Invalid("LOGOUT_TOKEN_REFUSED", "The form has no field logout_token, or several.")
        ended = await providers.read_logout(request.match_info["provider"], tokens[0])
        await context.services.outside_accounts.end(ended)
        return web.Response(headers=_HEADERS)

    return handle


def _limited(context: ApiContext, step: Step) -> Handler:
    """Return the handler of a step for browsers; a program gets a refusal as a problem document."""
    limiter = new_limiter()

    async def handle(request: web.Request) -> web.Response:
        try:
            limiter.check(request.remote or "", time.monotonic())
            return await step(request, _set_up(context), request.match_info["provider"])
        except Refused as refusal:
            if "text/html" not in request.headers.get(hdrs.ACCEPT, ""):
                raise
            return _to_console(f"#/sign-in?problem={refusal.code}")

    return handle


def _set_up(context: ApiContext) -> ProviderSignIn:
    if context.services.identity_providers is None:
        raise NotFound("PROVIDER_NOT_FOUND", "There is no identity provider: ADA_OIDC is not set.")
    return context.services.identity_providers


def _set_browser(response: web.Response, browser: str, providers: ProviderSignIn) -> None:
    """`Lax`: the provider leads back from another site."""
    response.set_cookie(
        BROWSER_COOKIE,
        browser,
        max_age=_COOKIE_SECONDS,
        path="/",
        httponly=True,
        samesite="Lax",
        secure=providers.is_secure,
    )


def _to_console(place: str) -> web.Response:
    return _redirect(f"/{place}")


def _redirect(address: str) -> web.Response:
    return web.Response(status=303, headers={**_HEADERS, hdrs.LOCATION: address})


ROUTES: Routes = (
    Route("DELETE", "/v1/sessions", "Sign out: end this session, or all of the same person or key", "", sign_out, 204,
          query=SignOutQuery, people=People.BY_SCOPE),
    OpenRoute("POST", "/v1/sessions", "Sign in to the console; the session is a cookie", sign_in, Me,
              body=SessionRequest, status=201),
    OpenRoute("POST", "/v1/sessions/codes", "Mail a code that signs a person in to the console", mail_code, CodeSent,
              body=CodeBody, status=202),
    OpenRoute("GET", _PATH, "List the identity providers at which people sign in to the console", list_providers,
              IdentityProviderList),
    OpenRoute("GET", f"{_PATH}/{{provider}}", "Lead a browser to an identity provider", begin_at_provider, HTML,
              status=303, acts=True),
    OpenRoute("GET", f"{_PATH}/{{provider}}/callback", "Where an identity provider leads a browser back",
              finish_at_provider, HTML, ProviderCallbackQuery, status=303, acts=True),
    OpenRoute("GET", f"{_PATH}/{{provider}}/sign-out", "Lead a browser to where it signs out of the provider itself",
              leave_provider, HTML, status=303, acts=True),
    OpenRoute("POST", f"{_PATH}/{{provider}}/logout", "End the sessions that an identity provider has ended",
              end_by_provider, HTML, upload="application/x-www-form-urlencoded"),
)  # fmt: skip
