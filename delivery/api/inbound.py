"""Receives what providers post: what a person writes, and delivery reports of SMS.

What a person writes comes by a callback, such as a gateway's SMS, or by a webhook, and becomes an update in the queue.
A mail that answers a message of Ada is posted by a mail server or a provider as it was transferred. Kannel calls the
address that it got with the message, by GET; what the provider of a profile calls is read as the profile says.

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
from msgspec import UNSET, Meta, Struct, UnsetType

from core.errors import NotFound
from core.model.field_types import INT64
from core.model.json_form import Json
from core.model.states import Status
from core.threads.mailed_replies import MailedReplies, MailResult
from couriers.channel import Callback, mailed_channel, receiving
from couriers.sms import CHANNEL
from couriers.sms.profile import Profile, read_reports
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


class DeliveryReportQuery(Struct, frozen=True):
    """The delivery report of a gateway. Gateways add parameters of their own, so unknown ones are ignored."""

    token: Annotated[str, Meta(min_length=1, max_length=1024)]
    status: Annotated[
        int,
        Meta(
            ge=0,
            le=INT64 - 1,
            description="bits: 1 delivered, 2 failed, 4 buffered, 8 accepted, 16 rejected",
            extra_json_schema={"not": {"multipleOf": 32}},
        ),
    ]
    id: Annotated[str, Meta(max_length=256)] | UnsetType = UNSET


class ProfileReportQuery(Struct, frozen=True):
    """The address of an SMS provider's reports. The other fields are those that its profile names."""

    token: Annotated[str, Meta(max_length=1024, description="of the message, if it names its own address")] = ""
    secret: Annotated[str, Meta(max_length=1024, description="ADA_INBOUND_SMS_SECRET, if it does not")] = ""


class DeliveryReportResponse(Struct):
    """The effect of a delivery report; a repeat or a late report changes nothing."""

    changed: bool


# Kannel's dlr-mask, user guide 3.6.3. A report may have several bits; the first one here decides.
STATUS_BITS = (
    (1, Status.DELIVERED),
    (2, Status.FAILED),
    (16, Status.FAILED),  # rejected by the SMSC
    (8, Status.SENT),  # accepted by the SMSC
    (4, Status.SENT),  # buffered in the SMSC
)
REPORT_LIMIT = 2**14
"""Bytes."""
_report_query = QueryReader(DeliveryReportQuery)


def receive_sms(context: ApiContext) -> Handler:
    """Return the handler of SMS delivery reports. A report may be repeated any number of times."""

    async def handle(request: web.Request) -> web.Response:
        report = _report_query.read(await _pairs(request, REPORT_LIMIT, context.options))
        status = status_of(report.status)
        changed = await context.services.core.deliveries.record_report(report.token, status, report.id or "")
        return Response(DeliveryReportResponse(changed)).encode()

    return handle


def receive_by_profile(context: ApiContext) -> Handler:
    """Return the handler of reports of an SMS provider, read as its profile says. What has no meaning there is
    acknowledged.
    """

    async def handle(request: web.Request) -> web.Response:
        profile = context.options.sms_profile
        if profile is None or profile.reports is None or request.match_info["profile"] != profile.name:
            raise NotFound("PROFILE_NOT_SET_UP", "ADA_SMS_PROFILE is not this one.")
        if profile.reports.by == "id":
            check_secret(request.query.get("secret"), context.options.inbound.secrets.get(CHANNEL, ""))
        for reference, state in read_reports(profile.reports, await _fields(request, context.options)):
            if state:
                await _record(context, request, profile, reference, Status(state))
        return web.Response(text=profile.reports.reply or "ok", content_type=TEXT_TYPE)

    return handle


async def _record(context: ApiContext, request: web.Request, profile: Profile, reference: str, status: Status) -> None:
    """Record a delivery report. Raises NotFound, so that a report that came before its message was noted is repeated;
    Forbidden.
    """
    deliveries = context.services.core.deliveries
    if profile.reports is not None and profile.reports.by == "token":
        await deliveries.record_report(request.query.get("token", ""), status, reference)
    else:
        await deliveries.record_report_by_reference(CHANNEL, profile.name, reference, status)


async def _fields(request: web.Request, options: Options) -> dict[str, Json]:
    """Return the parameters of the address and those of the body: a form or a JSON object."""
    fields: dict[str, Json] = dict(await _pairs(request, REPORT_LIMIT, options))
    if request.method == hdrs.METH_POST and request.content_type == "application/json":
        body = parse(await receive(request, REPORT_LIMIT, options.body_timeout))
        fields |= body if isinstance(body, dict) else {}
    return fields


def status_of(bits: int) -> Status:
    """Return the status that a report means. Raises `InvalidFields` REPORT_MALFORMED."""
    for bit, status in STATUS_BITS:
        if bits & bit:
            return status
    raise invalid_field("status", "REPORT_MALFORMED", "The status has none of the bits 1, 2, 4, 8, 16.")


ROUTES: Routes = (
    OpenRoute("GET", "/v1/receipts/sms", "A delivery report of an SMS gateway; its token is the secret", receive_sms,
              DeliveryReportResponse, DeliveryReportQuery, acts=True),
    OpenRoute("POST", "/v1/receipts/sms", "The same as a form", receive_sms, DeliveryReportResponse,
              DeliveryReportQuery),
    OpenRoute("GET", "/v1/receipts/sms/{profile}",
              "A delivery report of an SMS provider; a token or a secret is in it", receive_by_profile, TEXT_TYPE,
              ProfileReportQuery, acts=True),
    OpenRoute("POST", "/v1/receipts/sms/{profile}", "The same as a form or as JSON", receive_by_profile, TEXT_TYPE,
              ProfileReportQuery),
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
