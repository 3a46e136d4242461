"""Deliveries: reserve a key, enqueue, show, list, reschedule, cancel, retry."""

from datetime import datetime

from msgspec import UNSET, UnsetType

from core.deliveries.histories.sent_message import SentMessage
from core.model.people import canonical_id, id_text
from core.model.states import Status
from core.model.text.characters import nfc, refusal
from delivery.endpoints.sending.order_validation import ValidationContext, make_order
from delivery.http.context import Request, Response, next_page_link
from delivery.http.idempotency import REPLAYED_HEADERS
from delivery.http.input.timestamps import read_time
from delivery.http.rate_limit import quota_headers
from delivery.http.responses.problems import invalid_field
from delivery.http.route import NoParameters
from delivery.schemas import requests, responses


async def reserve(request: Request[requests.HistoryKeyRequest, NoParameters]) -> Response:
    """Return a history key for a later delivery."""
    check_sender(request.body.sender)
    request.check_own(request.body.sender.id, "sender.id")
    key = await request.services.core.deliveries.reserve(
        request.tenant, canonical_id(request.body.sender.id), request.body.lane or ""
    )
    return Response(responses.HistoryKeyResponse.of(key), 201)


def check_sender(sender: requests.Sender) -> None:
    """Check the id of a sender. Raises `InvalidFields` NOT_PRINTABLE: the id becomes a part of the key."""
    if isinstance(sender.id, str) and (refused := refusal(sender.id)):
        raise invalid_field("sender.id", "NOT_PRINTABLE", refused)


async def enqueue(request: Request[requests.DeliveryRequest, NoParameters]) -> Response:
    """Accept one delivery."""
    order = make_order(request.body, await ValidationContext.of(request))
    accepted = await request.services.core.sending.send(order, request.caller, request.repeat)
    request.context.metrics.accepted.inc()
    body = responses.Accepted.of(accepted)
    replayed = REPLAYED_HEADERS if accepted.repeated else {}
    quota = quota_headers(accepted.quota) if accepted.quota else {}
    return Response(body, 202, {"Location": f"/v1/deliveries/{body.id}", **replayed, **quota})


async def show(request: Request[None, requests.HistoryQuery]) -> Response:
    """Return the history, with one page of its recipients."""
    query = request.query
    history = await request.services.core.deliveries.read(
        request.history_key, request.tenant, query.cursor or None, query.limit or 100
    )
    return Response(responses.HistoryResponse.of(history), headers=next_page_link(request.http, history.next))


async def list_page(request: Request[None, requests.DeliveryQuery]) -> Response:
    """Return one page of deliveries, newest first."""
    query = request.query
    person = request.identity.person
    if person and query.sender:
        request.check_own(query.sender, "sender")
    histories, cursor = await request.services.core.deliveries.list(
        request.tenant,
        sender=id_text(person.id) if person else nfc(query.sender or "") or None,
        tag=nfc(query.tag) if query.tag else None,
        state=query.state or None,
        verdict=query.verdict or None,
        text=query.text or None,
        since=_time(request, "since"),
        until=_time(request, "until"),
        message=SentMessage(*query.message.split(":", 2)) if query.message else None,
        cursor=query.cursor or None,
        limit=query.limit or 100,
    )
    return Response(responses.DeliveryPage.of(histories, cursor), headers=next_page_link(request.http, cursor))


def _time(request: Request[None, requests.DeliveryQuery], name: str) -> datetime | None:
    given = getattr(request.query, name)
    return read_time(given, name, request.options.max_days_ahead) if given else None


async def reschedule(request: Request[requests.RescheduleRequest, NoParameters]) -> Response:
    """Move a scheduled delivery to another time."""
    deliver_at = read_time(request.body.deliver_at, "deliver_at", request.options.max_days_ahead)
    accepted = await request.services.core.sending.reschedule(
        request.history_key,
        request.caller,
        deliver_at,
        urgent=request.body.urgent is True,
        far=request.body.far is True,
    )
    return Response(responses.Accepted.of(accepted))


async def cancel(request: Request[None, requests.CancelQuery]) -> Response:
    """Cancel a delivery, for all recipients or the given ones."""
    recipients = list(map(nfc, request.query.recipient or ()))
    cancelled = await request.services.core.deliveries.cancel(request.history_key, request.tenant, recipients)
    return Response(responses.Cancelled.of(cancelled))


async def cancel_by(request: Request[requests.CancellationRequest, NoParameters]) -> Response:
    """Cancel all deliveries that have something in common."""
    field, value = _single_field(request.body)
    cancelled = await request.services.core.deliveries.cancel_by(request.tenant, field, value)
    return Response(responses.CancelledMany(cancelled))


def _single_field(body: requests.CancellationRequest) -> tuple[str, str]:
    names = body.__struct_fields__
    given = {name: getattr(body, name) for name in names if getattr(body, name) is not UNSET}
    if len(given) != 1:
        raise invalid_field("", "ONE_FIELD_WANTED", f"Exactly one of {', '.join(names)} is required.")
    name, value = given.popitem()
    return name, nfc(str(value))


async def retry(request: Request[requests.RetryRequest | None, NoParameters]) -> Response:
    """Retry failed or unknown outcomes, in the same history."""
    given = request.body.statuses if request.body else UNSET
    statuses = [Status.FAILED, Status.UNKNOWN] if isinstance(given, UnsetType) else [Status(one) for one in given]
    queued = await request.services.core.sending.retry(
        request.history_key,
        request.caller,
        list(dict.fromkeys(statuses)),
        [id_text(one) for one in request.body.recipients or ()] if request.body else (),
        urgent=request.body is not None and request.body.urgent is True,
    )
    return Response(responses.Retried(queued), 202)


async def show_quota(request: Request[None, requests.QuotaQuery]) -> Response:
    """Return how much of its quota a sender has used."""
    query = request.query
    request.check_own(query.sender, "sender")
    return Response(
        responses.QuotaResponse.of(
            await request.services.core.sending.quota(request.tenant, query.sender, query.role or None)
        )
    )


async def list_recipients(request: Request[None, requests.RecipientQuery]) -> Response:
    """Return one page of a delivery's recipients, those not reached first."""
    query = request.query
    page = await request.services.core.deliveries.recipients.page(
        request.history_key, request.tenant, query.wanted(), query.cursor or None, query.limit or 100
    )
    return Response(responses.RecipientPage.of(page), headers=next_page_link(request.http, page.next))


async def show_reasons(request: Request[None, NoParameters]) -> Response:
    """Return why people were not reached, and how many."""
    reasons = await request.services.core.deliveries.recipients.reasons(request.history_key, request.tenant)
    return Response(responses.Reasons(sum(reasons.values()), dict(reasons)))
