"""Common parts of the pages behind links: handlers whose refusals are pages, too, and the frame of a page. A page works
without scripts; only notifications need one.

There is no API key and no cookie: the token in the address is the secret, and a form of another site does not know it.
GET and HEAD change nothing: scanners of mail and previews of messengers open links, too. A page sends no referrer, and
is neither stored nor indexed.
"""

import logging
import time
from collections.abc import Awaitable, Callable
from html import escape
from string import Template
from typing import Protocol

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler

from core.errors import Refused, StoreError
from core.model.history_key import Id
from core.model.people import id_text
from core.sentence import say
from delivery.api.pages import HTML, content_security_policy, read_page
from delivery.http.context import ApiContext
from delivery.http.rate_limit import RateLimiter
from delivery.http.responses.problems import problem_of_refusal

log = logging.getLogger(__name__)

FORM_LIMIT = 4096
"""Bytes."""
NAME = "\0"
"""Stands for the name of the person in a text that is not yet HTML."""
FORMS = "'self'"
"""Where forms of the pages may go."""
POST = '<form method="post">{}</form>'
_RATE, _BURST = 0.5, 30
"""Requests of one link, per second and at once."""
_LONGEST_TOKEN = 64
"""Characters that distinguish links."""
_PAGE = read_page(__package__, "page.html")
HEADERS = {
    hdrs.CONTENT_TYPE: HTML,
    hdrs.CACHE_CONTROL: "no-store",
    hdrs.CONTENT_SECURITY_POLICY: content_security_policy(_PAGE, form_action=FORMS),
    hdrs.X_CONTENT_TYPE_OPTIONS: "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Robots-Tag": "noindex",
}

DEVICES_SCRIPT = f"<script>{read_page(__package__, 'devices.js')}</script>"
"""Of a page on which notifications can be switched on."""


def policy_with(script: str) -> str:
    """Return the policy of a page with this script and no other, from which a service worker comes, too."""
    return f"{content_security_policy(_PAGE + script, form_action=FORMS)}; worker-src 'self'"


_DEVICES_POLICY = policy_with(DEVICES_SCRIPT)

Respond = Callable[[web.Request, ApiContext, str], Awaitable[str]]


class Named(Protocol):
    """A person with an id, and perhaps a name."""

    @property
    def id(self) -> Id: ...
    @property
    def name(self) -> str | None: ...


def page_handler(
    context: ApiContext, respond: Respond, refused: Callable[[Refused, str], str], outage: Callable[[str], str]
) -> Handler:
    """Return the handler of a page. `respond` gets the token and returns the page; `refused` and `outage` return the
    page for a refusal and for a store that is away, in the language of Accept-Language.
    """
    check_rate = new_limiter()

    async def handle(request: web.Request) -> web.Response:
        token, languages = request.match_info["token"], request.headers.get(hdrs.ACCEPT_LANGUAGE, "")
        headers = dict(HEADERS)
        try:
            check_rate(token)
            text = await respond(request, context, token)
            if DEVICES_SCRIPT in text:
                headers[hdrs.CONTENT_SECURITY_POLICY] = _DEVICES_POLICY
            return web.Response(text=text, headers=headers)
        except Refused as refusal:
            problem = problem_of_refusal(refusal)
            return web.Response(text=refused(refusal, languages), status=problem.status, headers=headers)
        except StoreError as fault:
            log.warning("a page behind a link has to wait: %s", fault)
            return web.Response(text=outage(languages), status=503, headers={**headers, hdrs.RETRY_AFTER: "5"})

    return handle


def new_limiter() -> Callable[[str], None]:
    """Return what counts the requests of each link by its token. It raises RateExceeded."""
    limiter = RateLimiter(_RATE, _BURST)
    return lambda token: limiter.check(token[:_LONGEST_TOKEN], time.monotonic())


def filled(locale: str, title: str, parts: list[str]) -> str:
    """Return a page. `parts`: of its body, as HTML; empty ones are left out."""
    return Template(_PAGE).substitute(language=locale, title=escape(title), body="\n".join(filter(None, parts)))


def short_name(person: Named, number: str, locale: str) -> str:
    """Return the first word of the name and the initials of the others, for the end of a sentence, with its full stop,
    as HTML: a link can be forwarded. `number`: the code of the text for a person without a name.
    """
    first, *others = (person.name or "").split() or [""]
    name = (
        " ".join([first, *(f"{one[0]}." for one in others[:2])])
        if first
        else say(number, locale, id=id_text(person.id))
    )
    return f"<b>{escape(name if name.endswith('.') else f'{name}.')}</b>"
