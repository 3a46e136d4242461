"""Waiting for what becomes of a delivery: the tracker's one answer, and the stream of all changes (SSE)."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine
from typing import Any, TypeVar

from aiohttp import hdrs, web
from msgspec import UnsetType

from core.errors import Refused
from core.model.history import Change
from core.model.history_key import HistoryKey
from delivery.http.context import Call, Desk, Reply, existing_key
from delivery.http.problems import fault
from delivery.http.route import Nothing
from delivery.schemas import requests as schemas
from delivery.schemas import responses as answers
from delivery.schemas.responses import encode

CONTENT_TYPE = "text/event-stream"
_HEADERS = {
    hdrs.CONTENT_TYPE: CONTENT_TYPE,
    hdrs.CACHE_CONTROL: "no-store",
    "X-Accel-Buffering": "no",  # nginx would hold events back
}
T = TypeVar("T")

BEAT = b": still here\n\n"


async def track(call: Call[schemas.Tracking, Nothing]) -> Reply:
    """Wait until so many channels have reported, or all have, or the time is over."""
    asked = call.body
    key = existing_key(asked.history_key)
    timeout = 10.0 if isinstance(asked.timeout, UnsetType) else asked.timeout
    waiting = call.services.tracker.wait(key, call.tenant, asked.touch_count or 1, timeout)
    history, timed_out = await _unless_closing(waiting, call.desk)
    return Reply(answers.Tracked(answers.HistoryTold.of(history) if history else None, timed_out))


async def _unless_closing(waiting: Coroutine[Any, Any, T], desk: Desk) -> T:
    """What is waited for. Raises `Refused` SHUTTING_DOWN as soon as the process is asked to end."""
    wait, closing = asyncio.ensure_future(waiting), asyncio.ensure_future(desk.closing.wait())
    try:
        await asyncio.wait({wait, closing}, return_when=asyncio.FIRST_COMPLETED)
        if wait.done():
            return wait.result()
        raise Refused("SHUTTING_DOWN", "This process is ending; ask again.")
    finally:
        await _end(wait, closing)


async def _end(*waits: asyncio.Future[Any]) -> None:
    for wait in waits:
        wait.cancel()
    await asyncio.gather(*waits, return_exceptions=True)


async def follow(call: Call[None, schemas.Following]) -> web.StreamResponse:
    """Tell every change after the one that the caller has seen; end after the last."""
    key, after = call.history_key, last_seen(call)
    await call.services.tracker.wait(key, call.tenant, 0, 0)  # an unknown key is refused before the stream begins
    response = web.StreamResponse(headers=_HEADERS)
    await response.prepare(call.request)
    call.desk.metrics.streams += 1
    try:
        await _stream(_changes(call, key, after), call.desk, response)
    finally:
        call.desk.metrics.streams -= 1
    return response


def last_seen(call: Call[None, schemas.Following]) -> int:
    """The version after which the stream goes on: Last-Event-ID, else `after`, else from the start."""
    told = call.request.headers.get("Last-Event-ID")
    if told is None:
        return call.query.after or 0
    if not (told.isascii() and told.isdigit() and len(told) < 19):
        raise fault("Last-Event-ID", "LAST_EVENT_ID_MALFORMED", "Last-Event-ID is the id of an event of this stream.")
    return int(told)


async def _changes(call: Call[None, schemas.Following], key: HistoryKey, after: int) -> AsyncGenerator[Change, None]:
    """Every change, from a delivery that may not be there yet: its key is enough to attach to it (D-16)."""
    tracker = call.services.tracker
    while (await tracker.wait(key, call.tenant, 0, 10))[0] is None:
        pass
    async for change in tracker.follow(key, call.tenant, after):
        yield change


async def _stream(changes: AsyncGenerator[Change, None], desk: Desk, response: web.StreamResponse) -> None:
    async for change in _with_beats(changes, desk):
        await response.write(BEAT if change is None else event(change))


def event(change: Change) -> bytes:
    """One event. Its id is the version, which is where a lost stream resumes."""
    data = encode(answers.of_change(change))
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (change.version, _name(change).encode(), data)


def _name(change: Change) -> str:
    if change.outcome is not None:
        return "outcome"
    return "state" if change.state in ("scheduled", "released") else "finished"


async def _with_beats(changes: AsyncGenerator[Change, None], desk: Desk) -> AsyncIterator[Change | None]:
    """The changes, and None whenever there was none for a while; ends when they do, or when the process does."""
    ending = asyncio.ensure_future(desk.closing.wait())
    upcoming = asyncio.ensure_future(anext(changes, None))
    try:
        while not ending.done():
            await asyncio.wait(
                {upcoming, ending}, timeout=desk.options.heartbeat.total_seconds(), return_when=asyncio.FIRST_COMPLETED
            )
            if not upcoming.done():
                yield None
                continue
            change = upcoming.result()
            if change is None:
                return
            yield change
            upcoming = asyncio.ensure_future(anext(changes, None))
    finally:
        await _end(upcoming, ending)
        await changes.aclose()
