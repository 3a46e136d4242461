"""The page on which a recipient chooses channels and language, and leaves: GET and HEAD show it, a POST changes it.

A POST of a mail program with `List-Unsubscribe=One-Click` (RFC 8058) switches off the channel of the link.
"""

from collections.abc import Mapping
from urllib.parse import parse_qs

from aiohttp import web
from aiohttp.typedefs import Handler
from msgspec.structs import replace

from core.directory.preferences import LinkedPerson
from core.errors import Invalid
from delivery.api.pages import HTML
from delivery.api.recipient_pages.devices import devices_of, subscribing_channel
from delivery.api.recipient_pages.linked_page import FORM_LIMIT, page_handler
from delivery.api.recipient_pages.preferences_page import OwnDevices, outage_page, page_of, refused_page
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
    return await _page(context, await context.services.core.preferences.open(token))


async def _changed(request: web.Request, context: ApiContext, token: str) -> str:
    preferences = context.services.core.preferences
    body = await receive(request, FORM_LIMIT, context.options.body_timeout)
    if _ONE_CLICK in body:  # as a form or as multipart
        linked = await preferences.open(token)
        return await _page(context, await preferences.change(token, (), (linked.channel,)), "left")
    given = parse_qs(body.decode(errors="replace"))
    wanted, offered = given.get("channel", []), given.get("offered", [])
    linked = await preferences.open(token)
    if device := given.get("device", [""])[0]:
        return await _page(context, await _without_device(context, linked, device), "device_removed")
    zone = _zone_of(context, linked.tenant)
    try:
        hours = _hours({name: values[0] for name, values in given.items()}, zone)
        linked = await preferences.change(token, wanted, offered, given.get("locale", [""])[0], hours)
    except Invalid:  # only the hours may be malformed
        return await _page(context, linked, "times")
    return await _page(context, linked, "saved" if wanted else "left")


async def _without_device(context: ApiContext, linked: LinkedPerson, address: str) -> LinkedPerson:
    """Remove a device of the person; return the person. Another's device stays."""
    channel, _ = await subscribing_channel(context)
    kept = [one for one in linked.user.contacts.get(channel, ()) if one != address]
    if len(kept) == len(linked.user.contacts.get(channel, ())):
        return linked
    await context.services.core.subscriptions.remove(linked.tenant, channel, address)
    contacts = {**linked.user.contacts, channel: kept}
    return linked._replace(user=replace(linked.user, contacts={name: some for name, some in contacts.items() if some}))


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


async def _page(context: ApiContext, linked: LinkedPerson, done: str = "") -> str:
    quiet_hours = context.services.core.sending.quiet_hours(linked.tenant)
    channel, display = await subscribing_channel(context)
    names = await devices_of(context, linked, channel)
    devices = OwnDevices(channel, "" if linked.user.blocked else display.subscribe_key, names)
    return page_of(linked, quiet_hours, _zone_of(context, linked.tenant), devices, done)


def _zone_of(context: ApiContext, tenant: str) -> str:
    return str(context.options.tenant_timezones.get(tenant, context.options.timezone))


ROUTES: Routes = (
    OpenRoute("GET", PATH, "The page on which a recipient chooses what it receives; opening it changes nothing", show,
              HTML),
    OpenRoute("POST", PATH, "The choice of a recipient by a link, also with one click (RFC 8058)", change, HTML),
)  # fmt: skip
