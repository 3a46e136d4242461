"""Notifications on the devices of a recipient: its page's script subscribes this browser, the service worker shows what
comes, reports that it was shown, and answers by the buttons.

    the page (devices.js) ──POST /p/<token>/devices──▶ a link to the person ──POST──▶ a contact of the person
    a push service ──▶ worker.js ──▶ a notification ──POST /v1/receipts/web-push──▶ `delivered`

Worker and page of a message stand in a folder of their own, so that the worker controls no other page. Neither knows a
secret: what they show comes with the message.
"""

import time
from html import escape
from typing import Annotated

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler
from msgspec import Meta, Struct

from core.directory.preferences import LinkedPerson, check_subscription
from core.errors import NotFound, Refused
from core.model.contacts.subscription import Subscription
from core.model.content import Display
from core.model.field_types import whole
from core.model.states import Status
from core.sentence import LANGUAGES, language_of, say
from delivery.api.pages import HTML, read_page
from delivery.api.recipient_pages.linked_page import (
    HEADERS,
    NAME,
    POST,
    filled,
    new_limiter,
    page_handler,
    policy_with,
    short_name,
)
from delivery.http.context import ApiContext, Response
from delivery.http.decoding import JSON_TYPES, BodyReader, QueryReader, check_content_type
from delivery.http.rate_limit import RateLimiter
from delivery.http.receiving import receive
from delivery.http.route import OpenRoute, Routes

PATH = "/p/{token}/devices"
LINK_PATH = "/p/device/{token}"
_LINK_RATE, _LINK_BURST = 1 / 60, 3
"""Links of one person, per second and at once."""
_LIMIT = 4096
"""Bytes of a subscription."""
_SCRIPT_TYPE = "text/javascript"
_WORKER = read_page(__package__, "worker.js")
_MESSAGE_SCRIPT = f"<script>{read_page(__package__, 'message.js')}</script>"
_BROWSERS = {"Edg": "Edge", "OPR": "Opera", "YaBrowser": "Яндекс", "Firefox": "Firefox", "Chrome": "Chrome",
             "Safari": "Safari"}  # fmt: skip
_SYSTEMS = {"Android": "Android", "iPhone": "iPhone", "iPad": "iPad", "Windows": "Windows", "Mac OS X": "macOS",
            "Linux": "Linux"}  # fmt: skip

Base64Url = Annotated[str, Meta(max_length=128, pattern=whole("[A-Za-z0-9_-]+=*"))]


class SubscriptionKeys(Struct, frozen=True):
    """The public key and the secret of a browser."""

    p256dh: Base64Url
    auth: Base64Url


class BrowserSubscription(Struct, frozen=True):
    """A subscription as `PushSubscription.toJSON()` returns it. Browsers add fields of their own."""

    endpoint: Annotated[str, Meta(max_length=1024)]
    keys: SubscriptionKeys

    def of_device(self, device: str) -> Subscription:
        return Subscription(self.endpoint, self.keys.p256dh, self.keys.auth, device, int(time.time() * 1000))


class NewSubscription(BrowserSubscription, frozen=True):
    """A new subscription. `replaces`: the one before of the same browser, if its push service has changed it."""

    replaces: BrowserSubscription | None = None


class SubscribedDevice(Struct):
    """A device that gets notifications. `device`: its browser and system."""

    device: str


class ShownReportQuery(Struct, frozen=True):
    """The token is that of the message."""

    token: Annotated[str, Meta(min_length=1, max_length=1024)]


class ShownReport(Struct):
    """The effect of a report; a repeat changes nothing."""

    changed: bool


_query = QueryReader(ShownReportQuery)


async def subscribing_channel(context: ApiContext) -> tuple[str, Display]:
    """Return the channel to which browsers subscribe, and its key; "" if there is none."""
    views = await context.services.core.channels.views()
    return next(
        ((one.name, one.display) for one in views if one.display and one.display.subscribe_key), ("", Display())
    )


async def devices_of(context: ApiContext, linked: LinkedPerson, channel: str) -> dict[str, str]:
    """Return address → device of the subscriptions of a person."""
    addresses = linked.user.contacts.get(channel, ())
    found = await context.services.core.subscriptions.find(linked.tenant, channel, addresses)
    return {address: one.device for address, one in zip(addresses, found, strict=True) if one}


def subscribe(context: ApiContext) -> Handler:
    """Return the handler that sends the person a link by which this browser is added. One that was added already is
    noted anew, also with another subscription, if it proves that it had the one before.
    """
    reader, check_rate = BodyReader(NewSubscription), new_limiter()
    of_person = RateLimiter(_LINK_RATE, _LINK_BURST)

    async def handle(request: web.Request) -> web.Response:
        token = request.match_info["token"]
        check_rate(token)
        linked = await context.services.core.preferences.open(token)
        channel, display = await subscribing_channel(context)
        if not channel or linked.user.blocked:
            raise NotFound("NOTIFICATIONS_NOT_OFFERED", "This installation sends no notifications to browsers.")
        check_content_type(request, JSON_TYPES)
        given = await reader.read(await receive(request, _LIMIT, context.options.body_timeout))
        device = device_of(request.headers.get(hdrs.USER_AGENT, ""))
        made = given.of_device(device)
        check_subscription(made, display.push_service)
        if made.address in linked.user.contacts.get(channel, ()) or _is_renewed(linked, channel, given):
            await context.services.core.subscriptions.add(linked.tenant, linked.user.id, channel, made)
            if _is_renewed(linked, channel, given) and made.address != linked.address:
                await context.services.core.subscriptions.remove(linked.tenant, channel, linked.address)
            return Response(SubscribedDevice(device), status=201).encode()
        of_person.check(f"{linked.tenant}:{linked.user.id}", time.monotonic())
        await context.services.core.device_links.send(linked, channel, made, f"{_origin(context, request)}/p/device/")
        return Response(SubscribedDevice(device), status=202).encode()

    return handle


def _is_renewed(linked: LinkedPerson, channel: str, given: NewSubscription) -> bool:
    """Return whether the page was opened by a notification to the subscription that is replaced. Its keys prove that
    it is the same browser: the address of the contact is a digest of them.
    """
    before = given.replaces
    return before is not None and linked.channel == channel and before.of_device("").address == linked.address


def _origin(context: ApiContext, request: web.Request) -> str:
    return context.options.public_url.rstrip("/") or str(request.url.origin())


def ask(context: ApiContext) -> Handler:
    """Return the handler of the page that asks whether a browser is to get notifications."""
    return page_handler(context, _asked, _refused, _outage)


def confirm(context: ApiContext) -> Handler:
    """Return the handler that switches them on."""
    return page_handler(context, _confirmed, _refused, _outage)


async def _asked(request: web.Request, context: ApiContext, secret: str) -> str:
    device = await context.services.core.device_links.open(secret)
    user = await context.services.core.directory.users.find(device.tenant, device.person)
    locale = language_of(user.locale, request.headers.get(hdrs.ACCEPT_LANGUAGE))
    name = short_name(user, "preferences_number", locale)
    question = say("device_link_question", locale, device=device.subscription.device)
    return _page(
        locale,
        f"<p>{escape(question)}</p>",
        f'<p class="quiet">{escape(say("device_link_as", locale, name=NAME)).replace(NAME, name)}</p>',
        POST.format(f"<button>{escape(say('device_link_on', locale))}</button>"),
    )


async def _confirmed(request: web.Request, context: ApiContext, secret: str) -> str:
    device, user = await context.services.core.device_links.use(secret)
    locale = language_of(user.locale, request.headers.get(hdrs.ACCEPT_LANGUAGE))
    done = say("device_link_done", locale, device=device.subscription.device)
    return _page(locale, f'<p class="good" role="status">{escape(done)}</p>')


def _refused(refusal: Refused, languages: str) -> str:
    locale = language_of(languages)
    known = refusal.code in ("LINK_USED", "LIMIT_REACHED")
    return (
        _page(locale, f"<p>{escape(say(f'device_link_{refusal.code.lower()}', locale))}</p>")
        if known
        else _outage(languages)
    )


def _outage(languages: str) -> str:
    locale = language_of(languages)
    return _page(locale, f"<p>{escape(say('preferences_outage', locale))}</p>")


def _page(locale: str, *parts: str) -> str:
    title = say("preferences_devices", locale)
    return filled(locale, title, [f"<h1>{escape(title)}</h1>", *parts])


def device_of(agent: str) -> str:
    """Return how a person recognises its device: "Firefox, Android" for what the browser says of itself."""
    browser = next((name for mark, name in _BROWSERS.items() if mark in agent), "")
    system = next((name for mark, name in _SYSTEMS.items() if mark in agent), "")
    return ", ".join(filter(None, (browser, system))) or "Web"


def report_shown(context: ApiContext) -> Handler:
    """Return the handler of the reports that a notification was shown."""

    async def handle(request: web.Request) -> web.Response:
        report = _query.read(list(request.rel_url.query.items()))
        changed = await context.services.core.deliveries.record_report(report.token, Status.DELIVERED, "")
        return Response(ShownReport(changed)).encode()

    return handle


def serve_worker(context: ApiContext) -> Handler:
    """Return the service worker. It may connect to this host only."""
    headers = {
        hdrs.CONTENT_TYPE: f"{_SCRIPT_TYPE}; charset=utf-8",
        hdrs.CACHE_CONTROL: "no-cache",
        hdrs.CONTENT_SECURITY_POLICY: "default-src 'none'; connect-src 'self'",
        hdrs.X_CONTENT_TYPE_OPTIONS: "nosniff",
    }

    async def handle(request: web.Request) -> web.Response:
        return web.Response(body=_WORKER.encode(), headers=headers)

    return handle


def serve_message(context: ApiContext) -> Handler:
    """Return the page of a notification, which the worker fills: the server does not know it any more."""
    pages = {language: _message_page(language) for language in LANGUAGES}
    headers = {**HEADERS, hdrs.CONTENT_SECURITY_POLICY: policy_with(_MESSAGE_SCRIPT)}

    async def handle(request: web.Request) -> web.Response:
        language = language_of(request.headers.get(hdrs.ACCEPT_LANGUAGE))
        return web.Response(text=pages[language], headers=headers)

    return handle


def _message_page(language: str) -> str:
    title, gone, settings = (say(f"notification_{one}", language) for one in ("title", "gone", "settings"))
    parts = [
        f'<h1 id="title">{escape(title)}</h1>',
        '<p class="text" id="text" hidden></p><div id="actions"></div>',
        f'<p class="quiet" id="gone" hidden>{escape(gone)}</p>',
        f'<p class="quiet"><a id="settings" hidden>{escape(settings)}</a></p>',
        _MESSAGE_SCRIPT,
    ]
    return filled(language, title, parts)


ROUTES: Routes = (
    OpenRoute("GET", LINK_PATH, "The page that asks whether a browser is to get notifications", ask, HTML),
    OpenRoute("POST", LINK_PATH, "Switch them on; the token, which went to the person, is the secret", confirm, HTML),
    OpenRoute("POST", PATH, "Switch notifications on in a recipient's browser; the token of its page is the secret",
              subscribe, SubscribedDevice, body=NewSubscription, status=202),
    OpenRoute("POST", "/v1/receipts/web-push", "A notification was shown; its token is the secret", report_shown,
              ShownReport, ShownReportQuery),
    OpenRoute("GET", "/push/worker.js", "The service worker that shows notifications", serve_worker, _SCRIPT_TYPE),
    OpenRoute("GET", "/push/message", "The page of a notification", serve_message, HTML),
)  # fmt: skip
