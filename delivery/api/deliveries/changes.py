"""Changes of deliveries: reschedule, cancel, retry."""

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from core.model.delivery import DeliveryCancelled
from core.model.field_types import IdField, Name, ShortText
from core.model.history_key import Id
from core.model.people import id_text
from core.model.states import Status
from core.model.text.characters import nfc
from delivery.api.deliveries.sending import DeliveryAccepted, Far, Urgent
from delivery.http.context import AnyRequest, Request, Response
from delivery.http.fields import RequestModel, Time, read_time
from delivery.http.responses.problems import invalid_field
from delivery.http.route import NoParameters, People, Repeats, Route, Routes


class RescheduleRequest(RequestModel, frozen=True):
    """The new time."""

    deliver_at: Time
    urgent: Urgent | UnsetType = UNSET
    far: Far | UnsetType = UNSET


class RetryRequest(RequestModel, frozen=True):
    """The statuses of the outcomes to retry; default: both. `recipients`: by id or address; default: all."""

    recipients: Annotated[list[IdField], Meta(min_length=1, max_length=10_000)] | UnsetType = UNSET
    statuses: Annotated[list[Literal["failed", "unknown"]], Meta(min_length=1, max_length=2)] | UnsetType = UNSET
    urgent: Urgent | UnsetType = UNSET


class CancellationRequest(RequestModel, frozen=True):
    """Exactly one field: what the deliveries to cancel have in common."""

    sender: IdField | UnsetType = UNSET
    user: IdField | UnsetType = UNSET
    lane: Name | UnsetType = UNSET
    kind_prefix: ShortText | UnsetType = UNSET
    tag: ShortText | UnsetType = UNSET


class CancelQuery(RequestModel, frozen=True):
    """The recipients to cancel, each by its id or an address such as `sms:+79990000001`; default: all."""

    recipient: Annotated[list[Name], Meta(max_length=10_000)] | UnsetType = UNSET


class CancelledMany(Struct):
    """The number of deliveries that this request cancelled. If a request was cut off, a repeat cancels the rest and
    counts only that.
    """

    cancelled: int


class Retried(Struct):
    """The number of queued retries: pairs of recipient and channel."""

    queued: int


async def reschedule(request: Request[RescheduleRequest, NoParameters]) -> Response:
    """Move a scheduled delivery to another time."""
    deliver_at = read_time(request.body.deliver_at, "deliver_at", request.options.max_days_ahead)
    accepted = await request.services.core.sending.reschedule(
        request.history_key,
        request.caller,
        deliver_at,
        urgent=request.body.urgent is True,
        far=request.body.far is True,
    )
    return Response(DeliveryAccepted.of(accepted))


async def cancel(request: Request[None, CancelQuery]) -> Response:
    """Cancel a delivery, for all recipients or the given ones."""
    recipients = await _own_ids(request, request.query.recipient or ())
    cancelled = await request.services.core.deliveries.cancel(request.history_key, request.tenant, recipients)
    return Response(cancelled)


async def _own_ids(request: AnyRequest, given: Sequence[Id]) -> Sequence[str]:
    """Return the ids of recipients, of people in place of their external ids."""
    owns = await request.services.core.directory.users.own_ids(request.tenant, given)
    return [owns.get(one, one) for one in map(id_text, given)]


async def cancel_by(request: Request[CancellationRequest, NoParameters]) -> Response:
    """Cancel all deliveries that have something in common."""
    field, value = _single_field(request.body)
    cancelled = await request.services.core.deliveries.cancel_by(request.tenant, field, value)
    return Response(CancelledMany(cancelled))


def _single_field(body: CancellationRequest) -> tuple[str, str]:
    names = body.__struct_fields__
    given = {name: getattr(body, name) for name in names if getattr(body, name) is not UNSET}
    if len(given) != 1:
        raise invalid_field("", "ONE_FIELD_WANTED", f"Exactly one of {', '.join(names)} is required.")
    name, value = given.popitem()
    return name, nfc(str(value))


async def retry(request: Request[RetryRequest | None, NoParameters]) -> Response:
    """Retry failed or unknown outcomes, in the same history."""
    given = request.body.statuses if request.body else UNSET
    statuses = [Status.FAILED, Status.UNKNOWN] if isinstance(given, UnsetType) else [Status(one) for one in given]
    queued = await request.services.core.sending.retry(
        request.history_key,
        request.caller,
        list(dict.fromkeys(statuses)),
        await _own_ids(request, request.body.recipients or ()) if request.body else (),
        urgent=request.body is not None and request.body.urgent is True,
    )
    return Response(Retried(queued), 202)


ROUTES: Routes = (
    Route("PATCH", "/v1/deliveries/{id}", "Move a scheduled delivery to another time", "send", reschedule, 200,
          DeliveryAccepted, body=RescheduleRequest, repeats=Repeats.STORED, people=People.OWN),
    Route("DELETE", "/v1/deliveries/{id}", "Cancel a delivery, for all recipients or the given ones", "send", cancel,
          200, DeliveryCancelled, query=CancelQuery, repeats=Repeats.STORED, people=People.OWN),
    Route("POST", "/v1/deliveries/{id}/retry", "Retry failed or unknown outcomes", "send", retry, 202, Retried,
          body=RetryRequest, body_is_optional=True, repeats=Repeats.STORED, people=People.OWN),
    Route("POST", "/v1/cancellations", "Cancel all deliveries that have something in common", "send", cancel_by, 200,
          CancelledMany, body=CancellationRequest, repeats=Repeats.STORED),
)  # fmt: skip
