"""Deliveries: taken, shown, moved, cancelled, tried again."""

from datetime import datetime

from msgspec import UNSET, UnsetType

from core.model.states import Status
from delivery.endpoints.order_validation import Terms, make_order
from delivery.http.context import Call, Reply, next_page
from delivery.http.problems import fault
from delivery.http.route import Nothing
from delivery.http.timestamps import read_time
from delivery.schemas import requests as schemas
from delivery.schemas import responses as answers


async def reserve(call: Call[schemas.KeyRequest, Nothing]) -> Reply:
    """A key before there is a delivery."""
    check_sender(call.body.sender)
    key = await call.services.deliveries.reserve(call.tenant, call.body.sender.id)
    return Reply(answers.HistoryKeyGiven.of(key), 201)


def check_sender(sender: schemas.Sender) -> None:
    """Raises `Faulty` NOT_PRINTABLE: the id becomes a part of the key."""
    if isinstance(sender.id, str) and not sender.id.isprintable():
        raise fault("sender.id", "NOT_PRINTABLE", "Only printable characters are allowed.")


async def enqueue(call: Call[schemas.Delivery, Nothing]) -> Reply:
    """Take one delivery."""
    channels = call.services.channels
    register = channels.recall() or await channels.read()
    order = make_order(call.body, Terms(call.tenant, register.names, call.desk.options))
    accepted = await call.services.deliveries.enqueue(order, call.repeat)
    call.desk.metrics.accepted += 1
    answer = answers.Accepted.of(accepted)
    headers = {"Location": f"/v1/deliveries/{answer.id}"}
    if accepted.repeated:
        headers["Idempotency-Replayed"] = "true"
    return Reply(answer, 202, headers)


async def show(call: Call[None, schemas.Page]) -> Reply:
    """The history, with one page of its recipients."""
    limit = call.query.limit or 100
    history = await call.services.deliveries.read(call.history_key, call.tenant, call.query.cursor or None, limit)
    return Reply(answers.HistoryTold.of(history), headers=next_page(call.request, history.next))


async def listing(call: Call[None, schemas.Listing]) -> Reply:
    """Deliveries, newest first."""
    asked = call.query
    histories, cursor = await call.services.deliveries.list(
        call.tenant,
        sender=asked.sender or None,
        state=asked.state or None,
        since=_since(call),
        cursor=asked.cursor or None,
        limit=asked.limit or 100,
    )
    return Reply(answers.Deliveries.of(histories, cursor), headers=next_page(call.request, cursor))


def _since(call: Call[None, schemas.Listing]) -> datetime | None:
    since = call.query.since
    return read_time(since, "since", call.desk.options.furthest) if since else None


async def reschedule(call: Call[schemas.Rescheduling, Nothing]) -> Reply:
    """Move it to another time."""
    deliver_at = read_time(call.body.deliver_at, "deliver_at", call.desk.options.furthest)
    accepted = await call.services.deliveries.reschedule(call.history_key, call.tenant, deliver_at)
    return Reply(answers.Accepted.of(accepted))


async def cancel(call: Call[None, schemas.Chosen]) -> Reply:
    """Cancel it, whole or for chosen recipients."""
    cancelled = await call.services.deliveries.cancel(call.history_key, call.tenant, call.query.recipient or ())
    return Reply(answers.Cancelled.of(cancelled))


async def cancel_by(call: Call[schemas.Cancellation, Nothing]) -> Reply:
    """Cancel whatever has something in common."""
    field, value = _one_of(call.body)
    return Reply(answers.CancelledMany(await call.services.deliveries.cancel_by(call.tenant, field, value)))


def _one_of(body: schemas.Cancellation) -> tuple[str, str]:
    names = body.__struct_fields__
    given = {name: getattr(body, name) for name in names if getattr(body, name) is not UNSET}
    if len(given) != 1:
        raise fault("", "ONE_FIELD_WANTED", f"Exactly one of {', '.join(names)} is wanted.")
    name, value = given.popitem()
    return name, str(value)


async def retry(call: Call[schemas.Retrying | None, Nothing]) -> Reply:
    """A new attempt, in the same history, for what failed or is unknown."""
    told = call.body.statuses if call.body else UNSET
    statuses = [Status.FAILED, Status.UNKNOWN] if isinstance(told, UnsetType) else [Status(one) for one in told]
    queued = await call.services.deliveries.retry(call.history_key, call.tenant, list(dict.fromkeys(statuses)))
    return Reply(answers.Retried(queued), 202)
