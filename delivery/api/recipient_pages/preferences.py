"""The page on which a recipient chooses channels and language, and leaves: GET and HEAD show it, a POST changes it.

A POST of a mail program with `List-Unsubscribe=One-Click` (RFC 8058) switches off the channel of the link.
"""

from collections.abc import Mapping
from urllib.parse import parse_qs

from aiohttp import web
from aiohttp.typedefs import Handler

from core.directory.preferences import LinkedPerson
from core.errors import Invalid
from delivery.api.pages import HTML
from delivery.api.recipient_pages.linked_page import FORM_LIMIT, page_handler
from delivery.api.recipient_pages.preferences_page import outage_page, page_of, refused_page
from delivery.http.context import ApiContext
from delivery.http.input.receiving import receive
from delivery.http.route import OpenRoute, Routes

PATH = "/p/{token}"
_ONE_CLICK = b"One-Click"


def show(context: ApiContext) -> Handler:
    """Return the handler that shows the page."""
    return page_handler(context, _shown, refused_page, outage_page)


def change(context: ApiContext) -> Handler:
    """Return the handler that keeps what the person has chosen."""
    return page_handler(context, _changed, refused_page, outage_page)


async def _shown(_: web.Request, context: ApiContext, token: str) -> str:
    return _page(context, await context.services.core.preferences.open(token))


async def _changed(request: web.Request, context: ApiContext, token: str) -> str:
    preferences = context.services.core.preferences
    body = await receive(request, FORM_LIMIT, context.options.body_timeout)
    if _ONE_CLICK in body:  # as a form or as multipart
        linked = await preferences.open(token)
        return _page(context, await preferences.change(token, (), (linked.channel,)), "left")
    given = parse_qs(body.decode(errors="replace"))
    wanted, offered = given.get("channel", []), given.get("offered", [])
    linked = await preferences.open(token)
    zone = _zone_of(context, linked.tenant)
    try:
        hours = _hours({name: values[0] for name, values in given.items()}, zone)
        linked = await preferences.change(token, wanted, offered, given.get("locale", [""])[0], hours)
    except Invalid:  # only the hours may be malformed
        return _page(context, linked, "times")
    return _page(context, linked, "saved" if wanted else "left")


def _hours(given: Mapping[str, str], zone: str) -> str | None:
    """Return the hours that a form has, as a person keeps them; None if it says nothing about them."""
    match given.get("when"):
        case "any_time":
            return ""
        case "window":
            return f"{given.get('begin', '')}-{given.get('end', '')} {zone}"
        case "daily":
            return f"{given.get('at', '')}-{given.get('at', '')} {zone}"
    return None


def _page(context: ApiContext, linked: LinkedPerson, done: str = "") -> str:
    quiet_hours = context.services.core.sending.quiet_hours(linked.tenant)
    return page_of(linked, quiet_hours, _zone_of(context, linked.tenant), done)


def _zone_of(context: ApiContext, tenant: str) -> str:
    return str(context.options.tenant_timezones.get(tenant, context.options.timezone))


ROUTES: Routes = (
    OpenRoute("GET", PATH, "The page on which a recipient chooses what it receives; opening it changes nothing", show,
              HTML),
    OpenRoute("POST", PATH, "The choice of a recipient by a link, also with one click (RFC 8058)", change, HTML),
)  # fmt: skip
