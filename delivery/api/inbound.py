"""Receives messages of people: a gateway's SMS (Kannel's get-url) and VK's callback API. Each becomes an update in the
queue.

There is no API key: the secret is in the address (SMS) or in the body (VK), and compared in constant time. A repeat of
the same message is put once. A 503 makes the provider repeat it.
"""

import codecs
import logging
from collections.abc import Sequence
from functools import partial
from hashlib import blake2b
from typing import Annotated, Any
from urllib.parse import parse_qsl

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler
from msgspec import Meta, Struct, field

from core.model.contacts.phone_numbers import e164
from couriers import sms, vk
from couriers.channel import receiving
from delivery.http.context import ApiContext
from delivery.http.input.decoding import QueryReader, parse
from delivery.http.input.receiving import receive
from delivery.http.options import Options
from delivery.http.responses.problems import invalid_field
from delivery.http.route import OpenRoute, Routes
from delivery.http.secrets import check_secret


class InboundVkEvent(Struct, frozen=True):
    """An event of VK's callback API. VK sends further fields, which are those of the event's type."""

    type: Annotated[str, Meta(max_length=256)]
    secret: Annotated[str, Meta(max_length=1024, description="ADA_INBOUND_VK_SECRET")] = ""


class InboundUpdate(Struct, frozen=True):
    """An update of a webhook. Its fields are those of the provider."""


class InboundSmsQuery(Struct, frozen=True):
    """An SMS that a gateway has received. Gateways add parameters of their own, so unknown ones are ignored."""

    secret: Annotated[str, Meta(min_length=1, max_length=1024, description="ADA_INBOUND_SMS_SECRET")]
    sender: Annotated[str, Meta(min_length=1, max_length=256, description="the number that wrote")] = field(name="from")
    text: Annotated[str, Meta(max_length=2**16)] = ""
    to: Annotated[str, Meta(max_length=256, description="the number that was written to")] = ""
    time: Annotated[str, Meta(max_length=64)] = ""
    id: Annotated[str, Meta(max_length=256, description="the gateway's id: a repeat has the same")] = ""
    smsc: Annotated[str, Meta(max_length=256)] = ""
    charset: Annotated[str, Meta(max_length=64, description="of the parameters")] = "UTF-8"


log = logging.getLogger(__name__)
FORM_LIMIT = 2**17
EVENT_LIMIT = 2**18
"""Bytes."""
TEXT_TYPE = "text/plain"
_SHORTEST_NUMBER = 8
"""Digits. A shorter one is a service; an answer to it could begin an endless exchange."""
_sms_query = QueryReader(InboundSmsQuery)
Pairs = Sequence[tuple[str, str]]


def receive_sms(context: ApiContext) -> Handler:
    """Return the handler of incoming SMS. The response is empty: Kannel would send its text back."""

    async def handle(request: web.Request) -> web.Response:
        pairs = await _pairs(request, context.options)
        check_secret(dict(pairs).get("secret", ""), context.options.inbound.sms_secret)
        received = sms_of(_sms_query.read(pairs))
        if received:
            await context.services.ingress[sms.CHANNEL].put(received)
        return web.Response(content_type=TEXT_TYPE)

    return handle


def sms_of(query: InboundSmsQuery) -> dict[str, str] | None:
    """Return the SMS for `couriers.sms`; None if the sender is no telephone, or the number that was written to, so
    that nothing answers itself.
    """
    number = _number(query.sender)
    if number is None or number == _number(query.to):
        return None
    return {"id": _sms_name(query, number), "number": number, "text": query.text}


def _number(written: str) -> str | None:
    """Return a number in E.164; gateways leave out the plus."""
    digits = written.strip()
    if not digits.isdecimal():
        return e164(digits)
    return e164(digits) or (e164(f"+{digits}") if len(digits) >= _SHORTEST_NUMBER else None)


def _sms_name(query: InboundSmsQuery, number: str) -> str:
    """Return what a repeat has in common with the first: the gateway's id, or else sender, receiver, time and text."""
    parts = (query.smsc, query.id) if query.id else (number, query.to, query.time, query.text)
    return blake2b("\n".join(parts).encode(errors="replace"), digest_size=16).hexdigest()


async def _pairs(request: web.Request, options: Options) -> Pairs:
    """Return the parameters of the address and, with POST, of the form, read in the charset that one of them names."""
    raw = request.rel_url.raw_query_string
    if request.method == hdrs.METH_POST and request.content_type == "application/x-www-form-urlencoded":
        form = await receive(request, FORM_LIMIT, options.body_timeout)
        raw = f"{raw}&{form.decode('latin-1')}"
    pairs = parse_qsl(raw, keep_blank_values=True, encoding="latin-1")
    charset = next((value for name, value in pairs if name == "charset"), "utf-8")
    return [(name, _decoded(value, charset if name == "text" else "utf-8")) for name, value in pairs]


def _decoded(value: str, charset: str) -> str:
    """Return a value whose characters are bytes. Kannel names UTF-16BE what was sent as UCS-2, and other names mean
    UTF-8."""
    try:
        name = codecs.lookup(charset).name
    except (LookupError, ValueError):
        name = "utf-8"
    encoded = value.encode("latin-1", errors="replace")
    return encoded.decode(name if name in _CHARSETS else "utf-8", errors="replace").replace("\0", "")


_CHARSETS = frozenset({"utf-8", "utf-16-be", "cp1251", "cp1252", "koi8-r", "iso8859-1", "iso8859-5", "iso8859-15"})


def receive_vk(context: ApiContext) -> Handler:
    """Return the handler of VK's callback API. It confirms the address, and answers `ok` to each event that was
    stored."""

    async def handle(request: web.Request) -> web.Response:
        event = await _event(request, context.options)
        check_secret(event.get("secret"), context.options.inbound.vk_secret)
        if event.get("type") == "confirmation":
            return web.Response(text=context.options.inbound.vk_confirmation, content_type=TEXT_TYPE)
        await context.services.ingress[vk.CHANNEL].put(event)
        return web.Response(text="ok", content_type=TEXT_TYPE)

    return handle


def receive_updates(channel: str, context: ApiContext) -> Handler:
    """Return the handler of a channel's webhook. An update that is no event is acknowledged, so that it is not
    repeated.
    """
    webhook = receiving()[channel].webhook
    assert webhook
    secret = context.options.inbound.webhook_secrets.get(channel, "")

    async def handle(request: web.Request) -> web.Response:
        check_secret(request.headers.get(webhook.header), secret)
        update = await _event(request, context.options)
        if not await context.services.ingress[channel].put(update):
            log.info("%s: an update is ignored: it is no message or press of a person: %.80r", channel, list(update))
        return web.Response(text="ok", content_type=TEXT_TYPE)

    return handle


async def _event(request: web.Request, options: Options) -> dict[str, Any]:
    event = parse(await receive(request, EVENT_LIMIT, options.body_timeout))
    if not isinstance(event, dict):
        raise invalid_field("", "WRONG_TYPE", "An event is a JSON object.")
    return event


ROUTES: Routes = (
    OpenRoute("GET", "/v1/inbound/sms", "An SMS that a gateway has received; its secret is in the address",
              receive_sms, TEXT_TYPE, InboundSmsQuery, acts=True),
    OpenRoute("POST", "/v1/inbound/sms", "The same as a form", receive_sms, TEXT_TYPE, InboundSmsQuery),
    OpenRoute("POST", "/v1/inbound/vk", "An event of VK's callback API; its secret is in the body", receive_vk,
              TEXT_TYPE, body=InboundVkEvent),
    *(OpenRoute("POST", one.webhook.path, f"{one.webhook.title}; its secret is in a header",
                partial(receive_updates, channel), TEXT_TYPE, body=InboundUpdate)
      for channel, one in receiving().items() if one.webhook),
)  # fmt: skip
