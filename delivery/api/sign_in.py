"""Signing users in to outside services: the address to go to, the page that asks, the callback, and signing out.

The pages are in English and Russian. Everything that comes from outside is escaped.
"""

import re
import secrets
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from html import escape
from string import Template
from typing import Annotated
from urllib.parse import parse_qs

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler
from msgspec import UNSET, Meta, Struct, UnsetType

from core.errors import NotFound, Refused
from core.model.field_types import IdField, ShortText
from core.sentence import LANGUAGES, say
from delivery.api.pages import HTML, read_page
from delivery.http.context import ApiContext, ApiServices, Request, Response, no_content
from delivery.http.fields import RequestModel
from delivery.http.receiving import receive
from delivery.http.responses.problems import problem_of_refusal
from delivery.http.route import NoParameters, OpenRoute, PlainRequest, Repeats, Route, Routes
from providers.sign_in import Invitation, SignIn
from providers.sign_in.sign_in import LIFETIME
from providers.sign_in.sign_in import sign_out as sign_user_out
from providers.sign_in.stored import services_of

_REFUSALS = frozenset(
    {
        "SIGN_IN_UNKNOWN",
        "SIGN_IN_OTHER_BROWSER",
        "SIGN_IN_NOT_CONFIRMED",
        "SIGN_IN_REFUSED",
        "SIGN_IN_FAILED",
    }
)
"""Those with a sentence of their own."""


def page_that_asks(invitation: Invitation, jobs: Sequence[str], confirmation: str) -> str:
    """Return the page that names the person whose jobs will use the account, with the button to go on."""
    user = invitation.signed_in.user
    person = f"{invitation.person} ({user})" if invitation.person else user
    return _filled(
        "sign_in.html",
        service=invitation.signed_in.service,
        person=person,
        jobs=", ".join(jobs) or "–",
        confirmation=confirmation,
    )


def signed_in_page() -> str:
    return read_page(__package__, "signed_in.html")


def refused_page(refusal: Refused) -> str:
    name = refusal.code.removeprefix("SIGN_IN_").lower() if refusal.code in _REFUSALS else "not_done"
    english, russian = (say(f"sign_in_{name}", language) for language in LANGUAGES)
    return _filled("not_signed_in.html", english=english, russian=russian, code=refusal.code)


def confirmation(link: str, browser: str) -> str:
    """Return what the form of the page has for one browser. Another site can send a form, but does not know this."""
    return sha256(f"{link} {browser}".encode(errors="replace")).hexdigest()


def _filled(page: str, **values: str) -> str:
    return Template(read_page(__package__, page)).substitute({name: escape(value) for name, value in values.items()})


class SignInRequest(RequestModel, frozen=True):
    """A person and the service to sign in to; the services are in the file ADA_SIGN_IN."""

    service: ShortText
    user: IdField


class SignInBegun(Struct):
    """The address to which the user goes. It is valid once, until `expires_at`."""

    url: str
    expires_at: datetime


class SignedInList(Struct):
    """The services that a user has signed in to, as ADA_SIGN_IN names them."""

    services: list[str]


class SignInCallbackQuery(Struct, frozen=True):
    """The parameters that a service adds to the callback of a sign-in. Services add parameters of their own."""

    state: Annotated[str, Meta(max_length=256)]
    code: Annotated[str, Meta(max_length=4096)] | UnsetType = UNSET
    error: ShortText | UnsetType = UNSET


COOKIE = "ada_sign_in"
"""A secret of the browser. A sign-in is finished only in the browser that has begun it."""
_COOKIE_PATH = "/v1/sign-in"
_SECRET = re.compile(r"[A-Za-z0-9_-]{43}")
_FORM_LIMIT = 4096
_HEADERS = {
    hdrs.CONTENT_TYPE: HTML,
    hdrs.CACHE_CONTROL: "no-store",
    hdrs.CONTENT_SECURITY_POLICY: "default-src 'none'; base-uri 'none'; frame-ancestors 'none'",
    hdrs.X_CONTENT_TYPE_OPTIONS: "nosniff",
    "Referrer-Policy": "no-referrer",
}


async def begin(request: Request[SignInRequest, NoParameters]) -> Response:
    sign_in, service, user = _sign_in(request.services), request.body.service, str(request.body.user)
    (person,) = await request.services.core.directory.users.lookup(request.tenant, [user])
    url = await sign_in.begin(request.tenant, service, user, (person.name if person else None) or "")
    return Response(SignInBegun(url, datetime.now(UTC) + LIFETIME), 201)


async def list_all(request: PlainRequest) -> Response:
    found = await services_of(request.services.core.store, request.tenant, request.part("user"))
    return Response(SignedInList(found))


async def sign_out(request: PlainRequest) -> Response:
    """Sign a user out of a service. A job that needs it is paused when it next asks for its token."""
    services, service, user = request.services, request.part("service"), request.part("user")
    if not await sign_user_out(services.core.store, services.sign_in, request.tenant, user, service):
        raise NotFound("NOT_SIGNED_IN", "The user has not signed in to this service.")
    return no_content()


def ask(context: ApiContext) -> Handler:
    """Return the handler of the page that names the person and the jobs, and asks. It changes nothing: programs open
    addresses, too, to show what is behind them.
    """

    async def handle(request: web.Request) -> web.Response:
        sign_in, link = _sign_in(context.services), request.match_info["link"]
        invitation = await sign_in.find(link)
        signed_in, browser = invitation.signed_in, _browser(request) or secrets.token_urlsafe(32)
        jobs = await context.services.core.jobs.of_user(signed_in.tenant, signed_in.user)
        page = page_that_asks(invitation, [job.id.name for job in jobs], confirmation(link, browser))
        response = web.Response(text=page, headers=_HEADERS)
        response.set_cookie(COOKIE, browser, path=_COOKIE_PATH, httponly=True, samesite="Lax", secure=sign_in.is_secure)
        return response

    return _with_pages(handle)


def confirm(context: ApiContext) -> Handler:
    """Return the handler by which the person agrees. The form of another site is refused: it does not have what the
    page has for this browser.
    """

    async def handle(request: web.Request) -> web.Response:
        link, browser = request.match_info["link"], _browser(request)
        form = parse_qs((await receive(request, _FORM_LIMIT, context.options.body_timeout)).decode("latin-1"))
        given = form.get("confirmation", [""])[0]
        if not browser or not secrets.compare_digest(given.encode(), confirmation(link, browser).encode()):
            raise Refused("SIGN_IN_NOT_CONFIRMED", "Open the address again, and press the button of the page.")
        address = await _sign_in(context.services).confirm(link, browser)
        return web.Response(status=303, headers={**_HEADERS, hdrs.LOCATION: address})

    return _with_pages(handle)


def finish(context: ApiContext) -> Handler:
    """Return the page that the service leads the user to. Jobs that waited for the sign-in go on."""

    async def handle(request: web.Request) -> web.Response:
        query, browser = request.rel_url.raw_query_string, _browser(request)
        signed_in = await _sign_in(context.services).finish(query, browser)
        await context.services.core.jobs.resume_after_sign_in(signed_in.tenant, signed_in.user, signed_in.service)
        return web.Response(text=signed_in_page(), headers=_HEADERS)

    return _with_pages(handle)


def _with_pages(handle: Callable[[web.Request], Awaitable[web.Response]]) -> Handler:
    """Return the handler with a page for each refusal, if a browser asks."""

    async def handle_with_pages(request: web.Request) -> web.Response:
        try:
            return await handle(request)
        except Refused as refusal:
            if "text/html" not in request.headers.get(hdrs.ACCEPT, ""):
                raise
            status = problem_of_refusal(refusal).status
            return web.Response(text=refused_page(refusal), status=status, headers=_HEADERS)

    return handle_with_pages


def _browser(request: web.Request) -> str:
    """Return the secret of the browser; "" if it has none."""
    secret = request.cookies.get(COOKIE, "")
    return secret if _SECRET.fullmatch(secret) else ""


def _sign_in(services: ApiServices) -> SignIn:
    """Return the sign-in of this installation. Raises NotFound SIGN_IN_NOT_SET_UP."""
    if services.sign_in is None:
        raise NotFound("SIGN_IN_NOT_SET_UP", "There is no service to sign in to: ADA_SIGN_IN is not set.")
    return services.sign_in


ROUTES: Routes = (
    Route("POST", "/v1/sign-in", "Begin to sign a user in to an outside service", "manage", begin, 201, SignInBegun,
          body=SignInRequest),
    Route("GET", "/v1/sign-in/users/{user}", "List the services that a user has signed in to", "manage", list_all,
          200, SignedInList),
    Route("DELETE", "/v1/sign-in/users/{user}/{service}", "Sign a user out of an outside service", "manage", sign_out,
          204, repeats=Repeats.STORED),
    OpenRoute("GET", "/v1/sign-in/link/{link}",
              "The page that names the person whose jobs will use the account, and asks", ask, HTML),
    OpenRoute("POST", "/v1/sign-in/link/{link}", "The answer of the person: goes on to the service", confirm, HTML),
    OpenRoute("GET", "/v1/sign-in/callback", "Where a service leads a user back after a sign-in", finish, HTML,
              SignInCallbackQuery, acts=True),
)  # fmt: skip
