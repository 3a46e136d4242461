"""Tracking a delivery: one wait for reported channels, and the stream of all changes (server-sent events)."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable
from contextlib import suppress
from typing import Annotated, Literal, TypeVar

from aiohttp import web
from msgspec import UNSET, Meta, Struct, UnsetType

from core.errors import Refused, StoreUnavailable
from core.model import history
from core.model.clock import write_optional_time
from core.model.field_types import INT64
from core.model.history import HistoryChange
from core.model.history_key import HistoryKey, Id
from core.model.states import DeliveryState
from delivery.api.deliveries.histories import HistoryResponse, OutcomeView, quiet_hours_of
from delivery.api.deliveries.questions import AnswerView
from delivery.http.authentication import is_still_known
from delivery.http.context import ApiContext, ApiRequest, Request, Response, encode
from delivery.http.fields import RequestModel
from delivery.http.responses import sse
from delivery.http.responses.problems import invalid_field
from delivery.http.route import NoParameters, People, Route, Routes

HistoryKeyText = Annotated[
    str, Meta(min_length=1, max_length=512, description="a history key, or the id of a delivery")
]
Seconds = Annotated[float, Meta(ge=0, le=10, extra_json_schema={"default": 10})]


class TrackRequest(RequestModel, frozen=True):
    """The wait ends when `touch_count` channels have reported, or after `timeout` seconds."""

    history_key: HistoryKeyText
    touch_count: Annotated[int, Meta(ge=1, le=16, extra_json_schema={"default": 1})] | UnsetType = UNSET
    timeout: Seconds | UnsetType = UNSET


class EventsQuery(RequestModel, frozen=True):
    """`after`: the version after which a stream resumes, for clients that cannot send Last-Event-ID. `answers`: whether
    it goes on after the end of the delivery, until its question is closed.
    """

    answers: Literal["yes", "no"] | UnsetType = UNSET
    after: Annotated[int, Meta(ge=0, le=INT64 - 1, extra_json_schema={"default": 0})] | UnsetType = UNSET


class TrackResponse(Struct):
    """The history at the end of the wait. `history` is null while the key has no delivery."""

    history: HistoryResponse | None
    timed_out: bool


class OutcomeChanged(Struct):
    """Event of a stream: the outcome for one recipient in one channel changed. `reminder`: of which reminder, from 1;
    absent for the first sending.
    """

    version: int
    state: DeliveryState
    recipient: Id
    channel: str
    outcome: OutcomeView
    reminder: int | UnsetType = UNSET


class StateChanged(Struct):
    """Event of a stream: the delivery has a new time (`state`), or has ended (`finished`)."""

    version: int
    state: DeliveryState
    deliver_at: str | None


class AnswerChanged(Struct):
    """Event of a stream: a recipient has answered the question of the delivery (`answer`)."""

    version: int
    recipient: Id
    answer: AnswerView


class ClosingChanged(Struct):
    """Event of a stream: the question of the delivery was closed (`closed`)."""

    version: int
    closed_at: str | None


def change_data(change: history.HistoryChange) -> OutcomeChanged | StateChanged | AnswerChanged | ClosingChanged:
    if change.answer is not None and change.recipient is not None:
        return AnswerChanged(change.version, change.recipient, AnswerView.of_row(change.answer, None))
    if change.closed_at is not None:
        return ClosingChanged(change.version, write_optional_time(change.closed_at))
    if change.recipient is None or change.channel is None or change.outcome is None:
        return StateChanged(change.version, change.state, write_optional_time(change.deliver_at))
    outcome = OutcomeView.of(change.outcome)
    reminder = change.reminder or UNSET
    return OutcomeChanged(change.version, change.state, change.recipient, change.channel, outcome, reminder)


T = TypeVar("T")
EventsRequest = Request[None, EventsQuery]
_POLL = 10.0
"""Seconds between two checks for a delivery that does not exist yet."""
_KEY_CHECK = 0.3
"""Seconds between two checks whether the key or the session of a stream still exists. With the cache of keys, less than
a second."""


async def track(request: Request[TrackRequest, NoParameters]) -> Response:
    """Wait until `touch_count` channels, or all, have reported, or the timeout is over."""
    body = request.body
    key = request.own_history_key(body.history_key)
    timeout = 10.0 if isinstance(body.timeout, UnsetType) else body.timeout
    waiting = request.services.core.tracker.wait(key, request.tenant, body.touch_count or 1, timeout)
    history, timed_out = await _unless_closing(waiting, request.context)
    shown = HistoryResponse.of(history, quiet_hours_of(request)) if history else None
    return Response(TrackResponse(shown, timed_out))


async def _unless_closing(waiting: Awaitable[T], context: ApiContext) -> T:
    """Return the result of `waiting`. Raises `Refused` SHUTTING_DOWN as soon as the process is asked to end."""
    wait, closing = asyncio.ensure_future(waiting), asyncio.ensure_future(context.closing.wait())
    try:
        await asyncio.wait({wait, closing}, return_when=asyncio.FIRST_COMPLETED)
        if wait.done():
            return wait.result()
        raise Refused("SHUTTING_DOWN", "This process is shutting down; repeat the request.")
    finally:
        await sse.cancel_and_join(wait, closing)


async def follow(request: EventsRequest) -> web.StreamResponse:
    """Stream every change after the one that the client has seen; end after the last."""
    key, after = request.history_key, last_event_id(request)
    await request.services.core.tracker.wait(
        key, request.tenant, 0, 0
    )  # refuses an unknown key before the stream begins
    response = web.StreamResponse(headers=sse.HEADERS)
    await response.prepare(request.http)
    with request.context.metrics.streams.track_inprogress():
        await _stream(_changes(request, key, after), request, response)
    return response


def last_event_id(request: EventsRequest) -> int:
    """Return the version after which the stream resumes: Last-Event-ID, else `after`, else 0. Raises
    `InvalidFields`."""
    given = request.http.headers.get("Last-Event-ID")
    if given is None:
        return request.query.after or 0
    if not (given.isascii() and given.isdigit() and len(given) < 19):
        raise invalid_field(
            "Last-Event-ID", "LAST_EVENT_ID_MALFORMED", "Last-Event-ID must be the id of an event of this stream."
        )
    return int(given)


async def _changes(request: EventsRequest, key: HistoryKey, after: int) -> AsyncGenerator[HistoryChange, None]:
    """Emit every change. The delivery need not exist yet: its key is enough to follow it (D-16)."""
    tracker = request.services.core.tracker
    while (await tracker.wait(key, request.tenant, 0, _POLL))[0] is None:
        pass
    async for change in tracker.follow(key, request.tenant, after, answers=request.query.answers == "yes"):
        yield change


async def _stream(
    changes: AsyncGenerator[HistoryChange, None], request: EventsRequest, response: web.StreamResponse
) -> None:
    async for change in sse.with_heartbeats(changes, request.options.heartbeat, forced_end(request)):
        await response.write(sse.HEARTBEAT if change is None else event(change))


async def forced_end(request: ApiRequest) -> None:
    """Return when the process ends, or the key or the session of the stream."""
    closing = request.context.closing
    while not closing.is_set():
        with suppress(StoreUnavailable):  # a key stays valid while the store is away
            if not await is_still_known(request.http, request.context):
                return
        with suppress(TimeoutError):
            async with asyncio.timeout(_KEY_CHECK):
                await closing.wait()


def event(change: HistoryChange) -> bytes:
    """Return one event. Its id is the version, from which a lost stream resumes."""
    return sse.encode_event(change.version, _event_name(change), encode(change_data(change)))


def _event_name(change: HistoryChange) -> str:
    if change.outcome is not None:
        return "outcome"
    if change.answer is not None:
        return "answer"
    if change.closed_at is not None:
        return "closed"
    return "state" if change.state in ("scheduled", "released") else "finished"


ROUTES: Routes = (
    Route("GET", "/v1/deliveries/{id}/events", "A live stream of every change; Last-Event-ID resumes it", "read",
          follow, 200, sse.CONTENT_TYPE, query=EventsQuery, people=People.OWN),
    Route("POST", "/v1/track", "Wait until a number of channels have reported", "read", track, 200, TrackResponse,
          body=TrackRequest, people=People.OWN),
)  # fmt: skip
