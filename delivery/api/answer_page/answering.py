"""The page on which a recipient answers by a link: GET and HEAD show it and change nothing, a POST answers.

There is no API key and no cookie: the token in the address is the secret, and a form of another site does not know it.
"""

import logging
import secrets
import time
from collections.abc import Awaitable, Callable
from datetime import tzinfo
from urllib.parse import parse_qs

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler

from core.answers.links import LinkedQuestion
from core.answers.tokens import LINK_LENGTH
from core.errors import Refused, StoreError
from delivery.api.answer_page.page import POLICY, outage_page, page_of, refused_page
from delivery.api.pages import HTML
from delivery.http.context import ApiContext
from delivery.http.input.receiving import receive
from delivery.http.rate_limit import RateLimiter
from delivery.http.responses.problems import problem_of_refusal
from delivery.http.route import OpenRoute, Routes

log = logging.getLogger(__name__)

PATH = "/a/{token}"
_FORM_LIMIT = 4096
"""Bytes."""
_RATE, _BURST = 0.5, 30
"""Requests of one link, per second and at once."""
_HEADERS = {
    hdrs.CONTENT_TYPE: HTML,
    hdrs.CACHE_CONTROL: "no-store",
    hdrs.CONTENT_SECURITY_POLICY: POLICY,
    hdrs.X_CONTENT_TYPE_OPTIONS: "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Robots-Tag": "noindex",
}


def show(context: ApiContext) -> Handler:
    """Return the handler that shows the page. Scanners and previews of messengers open links, too."""
    return _handler(context, _shown)


def take(context: ApiContext) -> Handler:
    """Return the handler that counts an answer and shows what came of it."""
    return _handler(context, _answered)


async def _shown(request: web.Request, context: ApiContext, token: str) -> str:
    linked = await context.services.core.answer_links.open(token)
    chosen = request.query.get("o", "")
    return page_of(linked, int(chosen) if chosen.isdecimal() else 0, _zone(context, linked))


async def _answered(request: web.Request, context: ApiContext, token: str) -> str:
    links = context.services.core.answer_links
    body = await receive(request, _FORM_LIMIT, context.options.body_timeout)
    option = parse_qs(body.decode(errors="replace")).get("option", [""])[0]
    given = await links.answer(token, option, secrets.token_hex(9))
    linked = await links.open(token)
    return page_of(linked, 0, _zone(context, linked), given)


def _handler(context: ApiContext, respond: Callable[[web.Request, ApiContext, str], Awaitable[str]]) -> Handler:
    """Return a handler whose refusals and outages are pages, too: people read them."""
    limiter = RateLimiter(_RATE, _BURST)

    async def handle(request: web.Request) -> web.Response:
        token, languages = request.match_info["token"], request.headers.get(hdrs.ACCEPT_LANGUAGE, "")
        headers = dict(_HEADERS)
        try:
            limiter.check(token[:LINK_LENGTH], time.monotonic())
            return web.Response(text=await respond(request, context, token), headers=headers)
        except Refused as refusal:
            problem = problem_of_refusal(refusal)
            return web.Response(text=refused_page(refusal, languages), status=problem.status, headers=headers)
        except StoreError as fault:
            log.warning("an answer by a link has to wait: %s", fault)
            return web.Response(text=outage_page(languages), status=503, headers={**headers, hdrs.RETRY_AFTER: "5"})

    return handle


def _zone(context: ApiContext, linked: LinkedQuestion) -> tzinfo:
    return context.options.tenant_timezones.get(linked.asked.tenant, context.options.timezone)


ROUTES: Routes = (
    OpenRoute("GET", PATH, "The page on which a recipient answers a question; opening it changes nothing", show, HTML),
    OpenRoute("POST", PATH, "The answer of a recipient by a link", take, HTML),
)  # fmt: skip
