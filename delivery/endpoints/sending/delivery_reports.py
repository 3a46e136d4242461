"""Delivery reports of SMS gateways. Kannel calls the address that it got with the message, by GET.

A report has no API key. The opaque token in its address is the secret; core checks it.
"""

from urllib.parse import parse_qsl

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler

from core.model.states import Status
from delivery.http.context import Context, Response
from delivery.http.decoding import QueryReader
from delivery.http.options import Options
from delivery.http.receiving import receive
from delivery.http.responses.problems import invalid_field
from delivery.schemas import requests, responses

# Kannel's dlr-mask, user guide 3.6.3. A report may have several bits; the first one here decides.
STATUS_BITS = (
    (1, Status.DELIVERED),
    (2, Status.FAILED),
    (16, Status.FAILED),  # rejected by the SMSC
    (8, Status.SENT),  # accepted by the SMSC
    (4, Status.SENT),  # buffered in the SMSC
)

FORM_LIMIT = 2**14
"""Bytes."""

_query = QueryReader(requests.DeliveryReportQuery)


def receive_sms(context: Context) -> Handler:
    """Return the handler of SMS delivery reports. A report may be repeated any number of times."""

    async def handle(request: web.Request) -> web.Response:
        report = _query.read(await _pairs(request, context.options))
        status = status_of(report.status)
        changed = await context.services.core.deliveries.record_report(report.token, status, report.id or "")
        return Response(responses.DeliveryReportResponse(changed)).encode()

    return handle


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
