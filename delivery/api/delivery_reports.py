"""Delivery reports of SMS gateways. Kannel calls the address that it got with the message, by GET; what the
provider of a profile calls is read as the profile says.

A report has no API key. The opaque token in its address is the secret; core checks it.
"""

from typing import Annotated
from urllib.parse import parse_qsl

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler
from msgspec import UNSET, Meta, Struct, UnsetType

from core.errors import NotFound
from core.model.field_types import INT64
from core.model.json_form import Json
from core.model.states import Status
from couriers.sms import CHANNEL
from couriers.sms.profile import Profile, read_reports
from delivery.http.context import ApiContext, Response
from delivery.http.input.decoding import QueryReader, parse
from delivery.http.input.receiving import receive
from delivery.http.options import Options, check_secret
from delivery.http.responses.problems import invalid_field
from delivery.http.route import OpenRoute, Routes


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
TEXT_TYPE = "text/plain"
FORM_LIMIT = 2**14
"""Bytes."""
_query = QueryReader(DeliveryReportQuery)


def receive_sms(context: ApiContext) -> Handler:
    """Return the handler of SMS delivery reports. A report may be repeated any number of times."""

    async def handle(request: web.Request) -> web.Response:
        report = _query.read(await _pairs(request, context.options))
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
    fields: dict[str, Json] = dict(await _pairs(request, options))
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
)  # fmt: skip
