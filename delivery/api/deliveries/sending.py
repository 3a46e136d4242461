"""Sends one delivery: reserves its key, enqueues it."""

from core.model.people import canonical_id
from core.model.text.characters import refusal
from delivery.api.deliveries.delivery_request import (
    DeliveryAccepted,
    DeliveryRequest,
    HistoryKeyRequest,
    HistoryKeyResponse,
    SenderRequest,
)
from delivery.http.context import Request, Response
from delivery.http.idempotency import REPLAYED_HEADERS
from delivery.http.rate_limit import quota_headers
from delivery.http.responses.problems import invalid_field
from delivery.http.route import NoParameters, People, Repeats, Route, Routes


async def reserve(request: Request[HistoryKeyRequest, NoParameters]) -> Response:
    """Return a history key for a later delivery."""
    check_sender(request.body.sender)
    request.check_own(request.body.sender.id, "sender.id")
    key = await request.services.core.deliveries.reserve(
        request.tenant, canonical_id(request.body.sender.id), request.body.lane or ""
    )
    return Response(HistoryKeyResponse.of(key), 201)


def check_sender(sender: SenderRequest) -> None:
    """Check the id of a sender. Raises `InvalidFields` NOT_PRINTABLE: the id becomes a part of the key."""
    if isinstance(sender.id, str) and (refused := refusal(sender.id)):
        raise invalid_field("sender.id", "NOT_PRINTABLE", refused)


async def enqueue(request: Request[DeliveryRequest, NoParameters]) -> Response:
    """Accept one delivery."""
    order = request.body.order(request.tenant, request.options.max_days_ahead)
    accepted = await request.services.core.sending.send(order, request.caller, request.repeat)
    request.context.metrics.accepted.inc()
    body = DeliveryAccepted.of(accepted)
    replayed = REPLAYED_HEADERS if accepted.repeated else {}
    quota = quota_headers(accepted.quota) if accepted.quota else {}
    return Response(body, 202, {"Location": f"/v1/deliveries/{body.id}", **replayed, **quota})


ACCEPTED_HEADERS = {
    "Location": "The address of the delivery.",
    "RateLimit": "What is left of the sender's quota, if it has one.",
    "RateLimit-Policy": "The sender's quota.",
}

ROUTES: Routes = (
    Route("POST", "/v1/history-keys", "Reserve a history key for a later delivery", "send", reserve, 201,
          HistoryKeyResponse, body=HistoryKeyRequest, repeats=Repeats.STORED, people=People.OWN),
    Route("POST", "/v1/deliveries", "Send one text to many recipients, now or at a set time", "send", enqueue, 202,
          DeliveryAccepted, body=DeliveryRequest, repeats=Repeats.OWN, headers=ACCEPTED_HEADERS, people=People.OWN),
)  # fmt: skip
