"""Delivery reports that SMS gateways bring. Kannel calls the address it was given with the message, by GET.

They carry no API key: the opaque token in the address is the secret, and the services checks it.
"""

from collections.abc import Awaitable, Callable

from aiohttp import hdrs, web

from core.model.states import Status
from delivery.http.context import Desk
from delivery.http.decoding import QueryReader
from delivery.http.problems import fault
from delivery.schemas import requests as schemas
from delivery.schemas import responses as answers
from delivery.schemas.responses import encode

# Kannel's dlr-mask, user guide 3.6.3. A report may have several bits; the weightiest counts.
BITS = (
    (1, Status.DELIVERED),
    (2, Status.FAILED),
    (16, Status.FAILED),  # rejected by the SMSC
    (8, Status.SENT),  # accepted by the SMSC
    (4, Status.SENT),  # waiting in the SMSC
)

_query = QueryReader(schemas.Report)


def receive_sms(desk: Desk) -> Callable[[web.Request], Awaitable[web.Response]]:
    """The handler of reports. The same report may come any number of times."""

    async def receiving(request: web.Request) -> web.Response:
        report = _query.read(await _pairs(request))
        changed = await desk.services.deliveries.receive(report.token, status_of(report.status), report.id or "")
        return web.Response(body=encode(answers.Reported(changed)), headers={hdrs.CONTENT_TYPE: "application/json"})

    return receiving


async def _pairs(request: web.Request) -> list[tuple[str, str]]:
    """Parameters of the address and, with POST, of the form."""
    pairs = list(request.rel_url.query.items())
    if request.method == hdrs.METH_POST:
        pairs += [(name, value) for name, value in (await request.post()).items() if isinstance(value, str)]
    return pairs


def status_of(bits: int) -> Status:
    """What a report says. Raises `Faulty` REPORT_MALFORMED."""
    for bit, status in BITS:
        if bits & bit:
            return status
    raise fault("status", "REPORT_MALFORMED", "The status has none of the bits 1, 2, 4, 8, 16.")
