"""Delivery reports of SMS gateways. Kannel calls the address that it got with the message, by GET; what the
provider of a profile calls is read as the profile says.

A report has no API key. The opaque token in its address is the secret; core checks it.
"""

from typing import Any
from urllib.parse import parse_qsl

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler

from core.errors import NotFound
from core.model.states import Status
from couriers.sms.profile import Profile, read_reports
from delivery.http.context import Context, Response
from delivery.http.input.decoding import QueryReader, parse
from delivery.http.input.receiving import receive
from delivery.http.options import Options
from delivery.http.responses.problems import invalid_field
from delivery.http.secrets import check_secret
from delivery.schemas import inbound

# Kannel's dlr-mask, user guide 3.6.3. A report may have several bits; the first one here decides.
STATUS_BITS = (
    (1, Status.DELIVERED),
    (2, Status.FAILED),
    (16, Status.FAILED),  # rejected by the SMSC
    (8, Status.SENT),  # accepted by the SMSC
    (4, Status.SENT),  # buffered in the SMSC
)

TEXT_TYPE = "text/plain"
FORM_LIMIT = 2**14
"""Bytes."""

_query = QueryReader(inbound.DeliveryReportQuery)


def receive_sms(context: Context) -> Handler:
    """Return the handler of SMS delivery reports. A report may be repeated any number of times."""

    async def handle(request: web.Request) -> web.Response:
        report = _query.read(await _pairs(request, context.options))
        status = status_of(report.status)
        changed = await context.services.core.deliveries.record_report(report.token, status, report.id or "")
        return Response(inbound.DeliveryReportResponse(changed)).encode()

    return handle


def receive_by_profile(context: Context) -> Handler:
    """Return the handler of reports of an SMS provider, read as its profile says. What has no meaning there is
    acknowledged.
    """

    async def handle(request: web.Request) -> web.Response:
        profile = context.options.sms_profile
        if profile is None or profile.reports is None or request.match_info["profile"] != profile.name:
            raise NotFound("PROFILE_NOT_SET_UP", "ADA_SMS_PROFILE is not this one.")
        if profile.reports.by == "id":
            check_secret(request.query.get("secret"), context.options.inbound.sms_secret)
        for reference, state in read_reports(profile.reports, await _fields(request, context.options)):
            if state:
                await _record(context, request, profile, reference, Status(state))
        return web.Response(text=profile.reports.reply or "ok", content_type=TEXT_TYPE)

    return handle


async def _record(context: Context, request: web.Request, profile: Profile, reference: str, status: Status) -> None:
    """Record a delivery report. Raises NotFound, so that a report that came before its message was noted is repeated;
    Forbidden.
    """
    deliveries = context.services.core.deliveries
    if profile.reports is not None and profile.reports.by == "token":
        await deliveries.record_report(request.query.get("token", ""), status, reference)
    else:
        await deliveries.record_report_by_reference("sms", profile.name, reference, status)


async def _fields(request: web.Request, options: Options) -> dict[str, Any]:
    """Return the parameters of the address and those of the body: a form or a JSON object."""
    fields: dict[str, Any] = dict(await _pairs(request, options))
    if request.method == hdrs.METH_POST and request.content_type == "application/json":
        body = parse(await receive(request, FORM_LIMIT, options.body_timeout))
        fields |= body if isinstance(body, dict) else {}
    return fields


async def _pairs(request: web.Request, options: Options) -> list[tuple[str, str]]:
    """Return the parameters of the address and, with POST, of the form. There is no API key, so nothing is unpacked."""
    pairs = list(request.rel_url.query.items())
    if request.method == hdrs.METH_POST and request.content_type == "application/x-www-form-urlencoded":
        form = await receive(request, FORM_LIMIT, options.body_timeout)
        pairs += parse_qsl(form.decode(errors="replace"), keep_blank_values=True)
    return pairs


def status_of(bits: int) -> Status:
    """Return the status that a report means. Raises `InvalidFields` REPORT_MALFORMED."""
    for bit, status in STATUS_BITS:
        if bits & bit:
            return status
    raise invalid_field("status", "REPORT_MALFORMED", "The status has none of the bits 1, 2, 4, 8, 16.")
