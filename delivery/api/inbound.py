"""Receives what providers post: what a person writes, and delivery reports.

What a person writes comes by a callback, such as a gateway's SMS, or by a webhook, and becomes an update in the queue.
A mail that answers a message of Ada is posted by a mail server or a provider as it was transferred. A delivery report
comes to the address that the provider got with the message, or to one that is set in its account.

There is no API key: the secret is in the address, the body or a header, and compared in constant time; of a report it
is an opaque token, which core checks. A repeat of the same message is put once, and that of a report changes nothing. A
503 makes the provider repeat it.
"""

import codecs
import io
import logging
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from typing import Annotated
from urllib.parse import parse_qsl

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler
from msgspec import Meta, Struct

from core.model.json_form import Json
from core.threads.mailed_replies import MailedReplies, MailResult
from couriers.channel import Callback, Channel, ReportCallback, channels, mailed_channel, receiving
from delivery.http.context import ApiContext, Response
from delivery.http.decoding import QueryReader, check_content_type, parse
from delivery.http.options import MiB, Options, check_secret
from delivery.http.receiving import receive, receive_file
from delivery.http.responses.problems import invalid_field
from delivery.http.route import OpenRoute, Routes


class InboundUpdate(Struct, frozen=True):
    """An update of a webhook. Its fields are those of the provider."""


log = logging.getLogger(__name__)
FORM_LIMIT = 2**17
EVENT_LIMIT = 2**18
"""Bytes."""
TEXT_TYPE = "text/plain"
Pairs = Sequence[tuple[str, str]]


def receive_form(channel: str, callback: Callback, context: ApiContext) -> Handler:
    """Return the handler of a callback whose fields are parameters of the address, or a form."""
    module, secret = import_module(callback.module), context.options.inbound.secrets.get(channel, "")
    reader = QueryReader(module.Fields)

    async def handle(request: web.Request) -> web.Response:
        pairs = await _pairs(request, FORM_LIMIT, context.options)
        check_secret(dict(pairs).get("secret", ""), secret)
        update = module.update_of(reader.read(pairs))
        if update is not None:
            await context.services.ingress[channel].put(update)
        return web.Response(text=module.ANSWER, content_type=TEXT_TYPE)

    return handle


async def _pairs(request: web.Request, limit: int, options: Options) -> Pairs:
    """Return the parameters of the address and, with POST, of the form, read in the charset that one of them names."""
    raw = request.rel_url.raw_query_string
    if request.method == hdrs.METH_POST and request.content_type == "application/x-www-form-urlencoded":
        form = await receive(request, limit, options.body_timeout)
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


def receive_event(channel: str, callback: Callback, context: ApiContext) -> Handler:
    """Return the handler of a callback that is a JSON object. What is no event is answered by the confirmation of the
    settings: the provider asks whose address this is.
    """
    module, inbound = import_module(callback.module), context.options.inbound
    secret, confirmation = inbound.secrets.get(channel, ""), inbound.confirmations.get(channel, "")

    async def handle(request: web.Request) -> web.Response:
        posted = await _event(request, context.options)
        check_secret(posted.get("secret"), secret)
        update = module.update_of(posted)
        if update is None:
            return web.Response(text=confirmation, content_type=TEXT_TYPE)
        await context.services.ingress[channel].put(update)
        return web.Response(text=module.ANSWER, content_type=TEXT_TYPE)

    return handle


def receive_updates(channel: str, context: ApiContext) -> Handler:
    """Return the handler of a channel's webhook. An update that is no event is acknowledged, so that it is not
    repeated.
    """
    webhook = receiving()[channel].webhook
    assert webhook
    secret = context.options.inbound.secrets.get(channel, "")

    async def handle(request: web.Request) -> web.Response:
        check_secret(request.headers.get(webhook.header), secret)
        update = await _event(request, context.options)
        if not await context.services.ingress[channel].put(update):
            log.info("%s: an update is ignored: it is no message or press of a person: %.80r", channel, list(update))
        return web.Response(text="ok", content_type=TEXT_TYPE)

    return handle


async def _event(request: web.Request, options: Options) -> dict[str, Json]:
    event = parse(await receive(request, EVENT_LIMIT, options.body_timeout))
    if not isinstance(event, dict):
        raise invalid_field("", "WRONG_TYPE", "An event is a JSON object.")
    return event


def _callbacks(channel: str, callback: Callback) -> Routes:
    fields, path, title = import_module(callback.module).Fields, callback.path, callback.title
    if not callback.is_form:
        handler = partial(receive_event, channel, callback)
        return [OpenRoute("POST", path, f"{title}; its secret is in the body", handler, TEXT_TYPE, body=fields)]
    handler, summary = partial(receive_form, channel, callback), f"{title}; its secret is in the address"
    return [
        OpenRoute("GET", path, summary, handler, TEXT_TYPE, fields, acts=True),
        OpenRoute("POST", path, "The same as a form", handler, TEXT_TYPE, fields),
    ]


MAIL_TYPE = "message/rfc822"
MAIL_LIMIT = 20 * MiB


class InboundMailQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """The address to which mails are posted."""

    secret: Annotated[str, Meta(min_length=1, max_length=1024, description="ADA_INBOUND_MAIL_SECRET")]


class InboundMailResponse(Struct):
    """The result of a mail. `automatic`: a machine has written it, so it is not passed on; `empty`: it has no new
    words and no files.
    """

    result: MailResult


_query = QueryReader(InboundMailQuery)


def receive_mail(context: ApiContext) -> Handler:
    options, services = context.options, context.services
    mailbox, core, channel = options.inbound.mailbox, services.core, mailed_channel()
    replies = MailedReplies(
        *(core.store, core.client, core.directory, services.uploads, channel, mailbox), context.metrics.count_mail
    )

    async def handle(request: web.Request) -> web.Response:
        given = _query.read(list(request.rel_url.query.items()))
        check_secret(given.secret, options.inbound.secrets.get(channel, "") if mailbox else "")
        check_content_type(request, frozenset({MAIL_TYPE}))
        raw = io.BytesIO()
        await receive_file(request, MAIL_LIMIT, options.body_timeout, raw)
        result = await replies.take(raw.getvalue())
        return Response(InboundMailResponse(result)).encode()

    return handle


class DeliveryReportResponse(Struct):
    """The effect of a delivery report; a repeat or a late report changes nothing."""

    changed: bool


REPORT_LIMIT = 2**14
"""Bytes."""


def receive_reports(channel: str, way: ReportCallback, context: ApiContext) -> Handler:
    """Return the handler of delivery reports, which may be repeated any number of times. One that came before its
    message was noted is refused, so that it is repeated.
    """
    module, inbound, deliveries = import_module(way.module), context.options.inbound, context.services.core.deliveries
    reader, secret = QueryReader(module.Fields), inbound.secrets.get(channel, "")
    profile = module.open_profile(inbound.profiles.get(channel, "")) if way.profile else None

    async def handle(request: web.Request) -> web.Response:
        address = {**request.query, **request.match_info}
        pairs = await _pairs(request, REPORT_LIMIT, context.options)
        if profile is None:
            read = module.read_reports(reader.read(pairs), address)
        else:
            read = profile.read_reports({**dict(pairs), **await _posted_object(request, context.options)}, address)
        if read.account:
            check_secret(address.get("secret"), secret)
        changed = False
        for status, reference, token in read.reports:
            if read.account:
                changed |= await deliveries.record_report_by_reference(channel, read.account, reference, status)
            else:
                changed |= await deliveries.record_report(token, status, reference)
        if way.profile:
            return web.Response(text=read.answer, content_type=TEXT_TYPE)
        return Response(DeliveryReportResponse(changed)).encode()

    return handle


async def _posted_object(request: web.Request, options: Options) -> dict[str, Json]:
    """Return the fields of a body that is a JSON object."""
    if request.method != hdrs.METH_POST or request.content_type != "application/json":
        return {}
    body = parse(await receive(request, REPORT_LIMIT, options.body_timeout))
    return body if isinstance(body, dict) else {}


def _report_routes(channel: Channel, way: ReportCallback) -> Routes:
    fields, handler = import_module(way.module).Fields, partial(receive_reports, channel.name, way)
    path = f"{channel.report_path}/{{profile}}" if way.profile else channel.report_path
    response = TEXT_TYPE if way.profile else DeliveryReportResponse
    proof = "a token or a secret is in it" if way.secret else "its token is the secret"
    form = "The same as a form or as JSON" if way.profile else "The same as a form"
    return [
        OpenRoute("GET", path, f"{way.title}; {proof}", handler, response, fields, acts=True),
        OpenRoute("POST", path, form, handler, response, fields),
    ]


ROUTES: Routes = (
    *(route for one in channels().values() for way in one.reports for route in _report_routes(one, way)),
    *(
        route
        for is_form in (True, False)
        for channel, one in receiving().items()
        if one.callback and one.callback.is_form is is_form
        for route in _callbacks(channel, one.callback)
    ),
    *(
        OpenRoute("POST", one.webhook.path, f"{one.webhook.title}; its secret is in a header",
                  partial(receive_updates, channel), TEXT_TYPE, body=InboundUpdate)
        for channel, one in receiving().items()
        if one.webhook
    ),
    OpenRoute("POST", "/v1/inbound/mail", "A mail that answers a message; its secret is in the address", receive_mail,
              InboundMailResponse, InboundMailQuery, upload=MAIL_TYPE),
)  # fmt: skip
