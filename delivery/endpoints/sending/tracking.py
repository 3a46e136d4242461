"""Tracking a delivery: one wait for reported channels, and the stream of all changes (server-sent events)."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from aiohttp import web
from msgspec import UnsetType

from core.errors import Refused, StoreUnavailable
from core.model.history import Change
from core.model.history_key import HistoryKey
from delivery.http.authentication import is_still_known
from delivery.http.context import Context, Request, Response
from delivery.http.responses import sse
from delivery.http.responses.problems import invalid_field
from delivery.http.route import NoParameters
from delivery.schemas import requests, responses

T = TypeVar("T")
EventsRequest = Request[None, requests.EventsQuery]

_POLL = 10.0
"""Seconds between two checks for a delivery that does not exist yet."""

_KEY_CHECK = 0.3
"""Seconds between two checks whether the key or the session of a stream still exists. With the cache of keys, less than
a second."""


async def track(request: Request[requests.TrackRequest, NoParameters]) -> Response:
    """Wait until `touch_count` channels, or all, have reported, or the timeout is over."""
    body = request.body
    key = request.own_history_key(body.history_key)
    timeout = 10.0 if isinstance(body.timeout, UnsetType) else body.timeout
    waiting = request.services.core.tracker.wait(key, request.tenant, body.touch_count or 1, timeout)
    history, timed_out = await _unless_closing(waiting, request.context)
    return Response(responses.TrackResponse(responses.HistoryResponse.of(history) if history else None, timed_out))


async def _unless_closing(waiting: Coroutine[Any, Any, T], context: Context) -> T:
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


async def _changes(request: EventsRequest, key: HistoryKey, after: int) -> AsyncGenerator[Change, None]:
    """Emit every change. The delivery need not exist yet: its key is enough to follow it (D-16)."""
    tracker = request.services.core.tracker
    while (await tracker.wait(key, request.tenant, 0, _POLL))[0] is None:
        pass
    async for change in tracker.follow(key, request.tenant, after):
        yield change


async def _stream(changes: AsyncGenerator[Change, None], request: EventsRequest, response: web.StreamResponse) -> None:
    async for change in sse.with_heartbeats(changes, request.options.heartbeat, forced_end(request)):
        await response.write(sse.HEARTBEAT if change is None else event(change))


async def forced_end(request: Request[Any, Any]) -> None:
    """Return when the process ends, or the key or the session of the stream."""
    closing = request.context.closing
    while not closing.is_set():
        with suppress(StoreUnavailable):  # a key stays valid while the store is away
            if not await is_still_known(request.http, request.context):
                return
        with suppress(TimeoutError):
            async with asyncio.timeout(_KEY_CHECK):
                await closing.wait()


def event(change: Change) -> bytes:
    """Return one event. Its id is the version, from which a lost stream resumes."""
    return sse.encode_event(change.version, _event_name(change), responses.encode(responses.change_data(change)))


def _event_name(change: Change) -> str:
    if change.outcome is not None:
        return "outcome"
    return "state" if change.state in ("scheduled", "released") else "finished"
