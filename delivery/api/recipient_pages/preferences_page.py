"""The page on which a recipient chooses channels and language, and leaves, in Russian or English: GET and HEAD show it,
a POST changes it. Everything from outside is escaped.

A POST of a mail program with `List-Unsubscribe=One-Click` (RFC 8058) switches off the channel of the link.
"""

import re
from collections.abc import Mapping
from html import escape
from typing import NamedTuple
from urllib.parse import parse_qs

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler
from msgspec.structs import replace

from core.directory.preferences import LinkedPerson
from core.errors import Invalid, Refused
from core.model.contacts.addresses import channel_title
from core.model.hours import QuietHours, read_hours
from core.model.people import User
from core.sentence import language_of, say
from delivery.api.pages import HTML
from delivery.api.recipient_pages.devices import devices_of, subscribing_channel
from delivery.api.recipient_pages.linked_page import (
    DEVICES_SCRIPT,
    FORM_LIMIT,
    NAME,
    POST,
    filled,
    page_handler,
    short_name,
)
from delivery.http.context import ApiContext
from delivery.http.receiving import receive
from delivery.http.route import OpenRoute, Routes

_LANGUAGES = {"ru": "Русский", "en": "English"}
_REFUSALS = {
    "PREFERENCES_TOKEN_WRONG": "token_wrong",
    "PREFERENCES_UNKNOWN": "unknown",
    "RATE_EXCEEDED": "rate_exceeded",
}

PATH = "/p/{token}"
_ONE_CLICK = b"One-Click"


class OwnDevices(NamedTuple):
    """The devices on which a person gets notifications. `channel`: of their contacts; `key`: with which a browser
    subscribes; both "" if the installation sends none. `names`: by address.
    """

    channel: str = ""
    key: str = ""
    names: Mapping[str, str] = {}


def page_of(
    linked: LinkedPerson, quiet: QuietHours | None, zone: str, devices: OwnDevices, locale: str, done: str = ""
) -> str:
    """Return the page of a person. `quiet`: the quiet hours of its tenant, None if there are none. `done`: `saved`,
    `left`, `device_removed`, or `times` if nothing was saved because a time is missing.
    """
    user = linked.user
    name = short_name(user, "preferences_number", locale)
    parts = [
        f"<h1>{_said('title', locale)}</h1>",
        f'<p class="quiet">{_said("as", locale, name=NAME).replace(NAME, name)}</p>',
        f'<p class="{"bad" if done == "times" else "good"}" role="status">{_said(done, locale)}</p>' if done else "",
        f"<p>{_said('blocked', locale)}</p>" if user.blocked else "",
        _form(user, locale, zone, devices),
        _notes(locale, quiet, zone),
        _devices(locale, devices),
    ]
    return filled(locale, say("preferences_title", locale), parts)


def refused_page(refusal: Refused, languages: str) -> str:
    """Return the page that says why a link does not work. `languages`: Accept-Language."""
    return _sentence(_REFUSALS.get(refusal.code, "outage"), languages)


def outage_page(languages: str) -> str:
    return _sentence("outage", languages)


def _sentence(name: str, languages: str) -> str:
    locale = language_of(languages)
    parts = [f"<h1>{_said('title', locale)}</h1>", f"<p>{_said(name, locale)}</p>"]
    return filled(locale, say("preferences_title", locale), parts)


def _said(text: str, locale: str, **values: object) -> str:
    """Return a text of the page as HTML."""
    return escape(say(f"preferences_{text}", locale, **values))


def _form(user: User, locale: str, zone: str, devices: OwnDevices) -> str:
    if not user.contacts:
        return f"<p>{_said('none', locale)}</p>"
    offered = "".join(f'<input type="hidden" name="offered" value="{escape(one)}">' for one in user.contacts)
    channels = "\n".join(_channel(user, one, locale, devices) for one in user.contacts)
    languages = "\n".join(_language(one, is_chosen=one == user.locale) for one in _LANGUAGES)
    choice = (
        f"{offered}<fieldset><legend>{_said('channels', locale)}</legend>\n{channels}\n</fieldset>\n"
        f"<fieldset><legend>{_said('when', locale)}</legend>\n{_times(user, locale, zone)}\n</fieldset>\n"
        f"<fieldset><legend>{_said('language', locale)}</legend>\n{languages}\n</fieldset>\n"
        f"<button>{_said('save', locale)}</button>"
    )
    leave = f'{offered}<button class="plain">{_said("leave", locale)}</button>'
    wants_some = set(user.contacts) - set(user.opt_out)
    return POST.format(choice) + (POST.format(leave) if wants_some else "")


def _channel(user: User, channel: str, locale: str, devices: OwnDevices) -> str:
    title = channel_title(channel, locale)
    shown = [devices.names.get(one) or _masked(one) for one in user.contacts[channel]]
    addresses = ", ".join(shown if channel == devices.channel else map(_masked, user.contacts[channel]))
    checked = "" if channel in user.opt_out else " checked"
    button = f'<input type="checkbox" name="channel" value="{escape(channel)}"{checked}>'
    return f'<label>{button}<span>{escape(title)} <span class="quiet">{escape(addresses)}</span></span></label>'


def _devices(locale: str, devices: OwnDevices) -> str:
    """Return the list of devices, and what switches notifications on here. Without the script nothing of that."""
    if not devices.key:
        return ""
    rows = "\n".join(_device(address, name, locale) for address, name in devices.names.items())
    words = " ".join(
        f'data-{one}="{_said(f"devices_{one}", locale)}"'
        for one in ("denied", "failed", "iphone", "sent", "unsupported")
    )
    return (
        f'<section id="devices" {words}>\n<h2>{_said("devices", locale)}</h2>\n'
        f'<p class="quiet">{_said("devices_hint", locale)}</p>\n'
        f"{f'<ul>{rows}</ul>' if rows else ''}"
        '<p class="bad" role="status" hidden></p>\n'
        f'<button type="button" class="plain" data-key="{devices.key}" hidden>{_said("devices_on", locale)}</button>\n'
        f"</section>\n{DEVICES_SCRIPT}"
    )


def _device(address: str, name: str, locale: str) -> str:
    button = f'<button class="plain" name="device" value="{escape(address)}">{_said("devices_remove", locale)}</button>'
    shown = escape(name or _said("devices_unnamed", locale))
    return "<li>" + POST.format(f"<span>{shown}</span>{button}") + "</li>"


def _times(user: User, locale: str, zone: str) -> str:
    hours = read_hours(user.hours)
    when = "any_time"
    if hours:
        when = "daily" if hours.is_daily else "window"
    begin, end = (f"{hours.begin:%H:%M}", f"{hours.end:%H:%M}") if hours else ("", "")
    is_window = when == "window"
    values = {"begin": begin if is_window else "08:00", "end": end if is_window else "22:00"}
    values["at"] = begin if when == "daily" else "18:00"
    rows = [_time_choice(one, values, locale, is_chosen=one == when) for one in ("any_time", "window", "daily")]
    note = _said("zone", locale, zone=hours.zone if hours else zone)
    return "\n".join([*rows, f'<p class="quiet">{_said("apart", locale)} {note}</p>'])


def _time_choice(when: str, values: Mapping[str, str], locale: str, *, is_chosen: bool) -> str:
    """Return a choice with its inputs for times, each named by the whole sentence."""
    sentence = _said(when, locale, **{name: f"[{name}]" for name in values})
    label = re.sub(r"\[\w+\]", "…", sentence)
    for name, value in values.items():
        time = f'<input type="time" name="{name}" value="{value}" aria-label="{label} ({name})" required>'
        sentence = sentence.replace(f"[{name}]", time)
    checked = " checked" if is_chosen else ""
    return f'<label><input type="radio" name="when" value="{when}"{checked}><span>{sentence}</span></label>'


def _language(locale: str, *, is_chosen: bool) -> str:
    checked = " checked" if is_chosen else ""
    button = f'<input type="radio" name="locale" value="{locale}"{checked}>'
    return f'<label lang="{locale}">{button}{_LANGUAGES[locale]}</label>'


def _masked(address: str) -> str:
    """Return what a person recognises of its address: a link can be forwarded."""
    name, at, domain = address.rpartition("@")
    return f"{name[:2]}…@{domain}" if at and name else f"…{address[-4:]}"


def _notes(locale: str, quiet: QuietHours | None, zone: str) -> str:
    times = {"begin": f"{quiet.begin:%H:%M}", "end": f"{quiet.end:%H:%M}"} if quiet else {}
    hours = _said("quiet", locale, **times, zone=zone) if quiet else ""
    return "".join(f'<p class="quiet">{one}</p>' for one in (hours, _said("always", locale)) if one)


def show(context: ApiContext) -> Handler:
    """Return the handler that shows the page."""
    return page_handler(context, _shown, refused_page, outage_page)


def change(context: ApiContext) -> Handler:
    """Return the handler that keeps what the person has chosen."""
    return page_handler(context, _changed, refused_page, outage_page)


async def _shown(request: web.Request, context: ApiContext, token: str) -> str:
    return await _page(request, context, await context.services.core.preferences.open(token))


async def _changed(request: web.Request, context: ApiContext, token: str) -> str:
    preferences = context.services.core.preferences
    body = await receive(request, FORM_LIMIT, context.options.body_timeout)
    if _ONE_CLICK in body:  # as a form or as multipart
        linked = await preferences.open(token)
        return await _page(request, context, await preferences.change(token, (), (linked.channel,)), "left")
    given = parse_qs(body.decode(errors="replace"))
    wanted, offered = given.get("channel", []), given.get("offered", [])
    linked = await preferences.open(token)
    if device := given.get("device", [""])[0]:
        return await _page(request, context, await _without_device(context, linked, device), "device_removed")
    zone = _zone_of(context, linked.tenant)
    try:
        hours = _hours({name: values[0] for name, values in given.items()}, zone)
        linked = await preferences.change(token, wanted, offered, given.get("locale", [""])[0], hours)
    except Invalid:  # only the hours may be malformed
        return await _page(request, context, linked, "times")
    return await _page(request, context, linked, "saved" if wanted else "left")


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


async def _page(request: web.Request, context: ApiContext, linked: LinkedPerson, done: str = "") -> str:
    quiet_hours = context.services.core.sending.quiet_hours(linked.tenant)
    channel, display = await subscribing_channel(context)
    names = await devices_of(context, linked, channel)
    devices = OwnDevices(channel, "" if linked.user.blocked else display.subscribe_key, names)
    locale = language_of(linked.user.locale, request.headers.get(hdrs.ACCEPT_LANGUAGE))
    return page_of(linked, quiet_hours, _zone_of(context, linked.tenant), devices, locale, done)


def _zone_of(context: ApiContext, tenant: str) -> str:
    return str(context.options.timezone_of(tenant))


ROUTES: Routes = (
    OpenRoute("GET", PATH, "The page on which a recipient chooses what it receives; opening it changes nothing", show,
              HTML),
    OpenRoute("POST", PATH, "The choice of a recipient by a link, also with one click (RFC 8058)", change, HTML),
)  # fmt: skip
