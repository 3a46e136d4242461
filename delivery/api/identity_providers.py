"""Signing people in to the console at an identity provider: the buttons, the way there, the way back, and its logout.

A browser that is led back goes to a page of the console, also with a refusal; its code stands in the address there.
"""

import secrets
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Annotated
from urllib.parse import parse_qs

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler
from msgspec import UNSET, Meta, Struct, UnsetType

from core.errors import Invalid, NotFound, Refused
from core.model.field_types import ShortText
from core.sessions.outside_accounts import LINK_LIFETIME
from delivery.api.pages import HTML
from delivery.api.sessions import BROWSER_COOKIE, browser_of, new_limiter, set_session_cookie
from delivery.http.context import ApiContext, Response
from delivery.http.input.receiving import receive
from delivery.http.route import OpenRoute, Routes
from delivery.http.services import ProviderSignIn

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


def list_all(context: ApiContext) -> Handler:
    """Return the providers, none without ADA_OIDC."""

    async def handle(request: web.Request) -> web.Response:
        providers = context.services.identity_providers
        found = providers.titles.items() if providers else ()
        return Response(IdentityProviderList([IdentityProvider(*one) for one in found])).encode()

    return handle


def begin(context: ApiContext) -> Handler:
    """Redirect the browser to the provider, and set the cookie that the callback requires."""

    async def step(request: web.Request, providers: ProviderSignIn, name: str) -> web.Response:
        browser = secrets.token_urlsafe(32)
        response = _redirect(await providers.begin(name, browser))
        _set_browser(response, browser, providers)
        return response

    return _limited(context, step)


def finish(context: ApiContext) -> Handler:
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


def leave(context: ApiContext) -> Handler:
    """Lead the browser to where a person signs out of the provider itself."""

    async def step(request: web.Request, providers: ProviderSignIn, name: str) -> web.Response:
        address = await providers.sign_out_address(name)
        return _redirect(address) if address else _to_console("#/sign-in")

    return _limited(context, step)


def end(context: ApiContext) -> Handler:
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
    OpenRoute("GET", _PATH, "List the identity providers at which people sign in to the console", list_all,
              IdentityProviderList),
    OpenRoute("GET", f"{_PATH}/{{provider}}", "Lead a browser to an identity provider", begin, HTML, status=303,
              acts=True),
    OpenRoute("GET", f"{_PATH}/{{provider}}/callback", "Where an identity provider leads a browser back", finish, HTML,
              ProviderCallbackQuery, status=303, acts=True),
    OpenRoute("GET", f"{_PATH}/{{provider}}/sign-out", "Lead a browser to where it signs out of the provider itself",
              leave, HTML, status=303, acts=True),
    OpenRoute("POST", f"{_PATH}/{{provider}}/logout", "End the sessions that an identity provider has ended", end, HTML,
              upload="application/x-www-form-urlencoded"),
)  # fmt: skip
