"""The live log of a job."""

import re
from collections.abc import AsyncGenerator
from typing import Annotated

from aiohttp import web
from msgspec import UNSET, Meta, UnsetType

from core.jobs.job_log import BEGIN, LogLine
from delivery.api.deliveries.tracking import forced_end
from delivery.api.jobs.reading import job_id
from delivery.http.context import Request, encode
from delivery.http.fields import RequestModel
from delivery.http.input.reading import optional
from delivery.http.responses import sse
from delivery.http.responses.problems import invalid_field
from delivery.http.route import Route, Routes


class LogQuery(RequestModel, frozen=True):
    """`after`: the number of the last line that the client has seen; Last-Event-ID wins."""

    after: Annotated[str, Meta(pattern="^[0-9]{1,15}$")] | UnsetType = UNSET


_LINE = re.compile(r"[0-9]{1,15}")


async def follow_log(request: Request[None, LogQuery]) -> web.StreamResponse:
    """Stream the log after the line that the client has seen, and every new line, until the client leaves."""
    job, after = await request.services.core.jobs.find(job_id(request)), _after(request)
    response = web.StreamResponse(headers=sse.HEADERS)
    await response.prepare(request.http)
    lines: AsyncGenerator[LogLine, None] = request.services.core.jobs.log.follow(job.id, after)
    with request.context.metrics.streams.track_inprogress():
        async for line in sse.with_heartbeats(lines, request.options.heartbeat, forced_end(request)):
            await response.write(sse.HEARTBEAT if line is None else _event(line))
    return response


def _event(line: LogLine) -> bytes:
    return sse.encode_event(line.id, "line", encode({"at": line.at, "text": line.text}))


def _after(request: Request[None, LogQuery]) -> str:
    """Return the line after which the stream begins. Raises `InvalidFields`."""
    given = request.http.headers.get("Last-Event-ID")
    if given is None:
        return optional(request.query.after) or BEGIN
    if not _LINE.fullmatch(given):
        detail = "Last-Event-ID must be the id of a line of this log."
        raise invalid_field("Last-Event-ID", "LAST_EVENT_ID_MALFORMED", detail)
    return given


ROUTES: Routes = (
    Route("GET", "/v1/jobs/{job_id}/log", "The live log of a job; Last-Event-ID resumes it", "read", follow_log, 200,
          sse.CONTENT_TYPE, query=LogQuery),
)  # fmt: skip
