"""The long-running jobs of users: start, list, pause, resume, stop, and the live log."""

import re
from collections.abc import AsyncGenerator
from datetime import time, timedelta

from aiohttp import web

from core.errors import Invalid
from core.jobs import Actor, DailyWindow, JobId, Schedule
from core.jobs.job_log import BEGIN, LogLine
from core.jobs.views import view_of
from delivery.endpoints.directory.reading import optional
from delivery.endpoints.jobs.reading import actor, job_id, wanted_by
from delivery.endpoints.sending.tracking import forced_end
from delivery.http.context import Request, Response, next_page_link
from delivery.http.input.timestamps import read_time
from delivery.http.responses import sse
from delivery.http.responses.problems import invalid_field
from delivery.http.route import NoParameters
from delivery.schemas import jobs as schemas
from delivery.schemas import responses

PlainRequest = Request[None, NoParameters]
ChangeRequest = Request[schemas.JobChange | None, NoParameters]

_PAGE = 100
_LINE = re.compile(r"[0-9]{1,15}")


async def start(request: Request[schemas.JobRequest, NoParameters]) -> Response:
    """Start a job, or start it again after it was stopped or has failed."""
    body = request.body
    started = JobId(request.tenant, body.kind, str(body.user), optional(body.key) or "")
    given, zone, at = optional(body.parameters), optional(body.timezone), optional(body.at)
    job = await request.services.core.jobs.start(
        started,
        given,
        zone,
        actor(request, body.by),
        at=read_time(at, "at", request.options.max_days_ahead) if at else None,
        schedule=_schedule(optional(body.schedule)),
    )
    return Response(view_of(job), 201, {"Location": f"/v1/jobs/{job.id.name}"})


async def change(request: Request[schemas.JobParameters, NoParameters]) -> Response:
    """Change parameters, time zone and schedule of a job."""
    body, by = request.body, actor(request, request.body.by)
    zone, schedule = optional(body.timezone), _schedule(optional(body.schedule))
    jobs = request.services.core.jobs
    changes = optional(body.parameters) or {}
    return Response(view_of(await jobs.change(job_id(request), changes, by, timezone=zone, schedule=schedule)))


async def signal(request: Request[schemas.JobSignal, NoParameters]) -> Response:
    """Send a signal to a job."""
    body, by = request.body, actor(request, request.body.by)
    await request.services.core.jobs.signal(job_id(request), body.name, body.data, signal_id=body.id, by=by)
    return Response(None, 204)


async def list_page(request: Request[None, schemas.JobQuery]) -> Response:
    """Return one page of jobs."""
    query, jobs = request.query, request.services.core.jobs
    wanted, cursor = wanted_by(query), optional(query.cursor) or ""
    found, cursor = await jobs.list(request.tenant, wanted, cursor, query.limit or _PAGE)
    counts = await jobs.storage.counts(request.tenant)
    page = schemas.JobPage([view_of(job) for job in found], counts, cursor or None)
    return Response(page, headers=next_page_link(request.http, page.next))


async def show(request: PlainRequest) -> Response:
    """Show one job."""
    return Response(view_of(await request.services.core.jobs.find(job_id(request))))


async def pause(request: ChangeRequest) -> Response:
    """Pause a job; the unit in hand is finished."""
    reason = request.body.reason if request.body else ""
    return Response(view_of(await request.services.core.jobs.pause(job_id(request), _actor_of(request), reason)))


async def resume(request: ChangeRequest) -> Response:
    """Let a paused job go on where it was."""
    return Response(view_of(await request.services.core.jobs.resume(job_id(request), _actor_of(request))))


async def stop(request: Request[schemas.JobStop | None, NoParameters]) -> Response:
    """End a job, after its compensations; it can be started again."""
    body, jobs = request.body or schemas.JobStop(), request.services.core.jobs
    by = actor(request, body.by)
    return Response(view_of(await jobs.stop(job_id(request), by, body.reason, abandon=body.abandon)))


async def follow_log(request: Request[None, schemas.LogQuery]) -> web.StreamResponse:
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
    return sse.encode_event(line.id, "line", responses.encode({"at": line.at, "text": line.text}))


def _after(request: Request[None, schemas.LogQuery]) -> str:
    """Return the line after which the stream begins. Raises `InvalidFields`."""
    given = request.http.headers.get("Last-Event-ID")
    if given is None:
        return optional(request.query.after) or BEGIN
    if not _LINE.fullmatch(given):
        detail = "Last-Event-ID must be the id of a line of this log."
        raise invalid_field("Last-Event-ID", "LAST_EVENT_ID_MALFORMED", detail)
    return given


def _actor_of(request: ChangeRequest) -> Actor:
    return actor(request, request.body.by if request.body else "user")


def _schedule(given: schemas.JobSchedule | None) -> Schedule | None:
    """Return the schedule of a request. Raises Invalid CRON_MALFORMED, WINDOW_EMPTY, SCHEDULE_AMBIGUOUS."""
    if given is None:
        return None
    begin, end = optional(given.begin), optional(given.end)
    if (begin is None) != (end is None):
        raise Invalid("SCHEDULE_AMBIGUOUS", "A daily window has a `begin` and an `end`.", "schedule")
    window = DailyWindow(time.fromisoformat(begin), time.fromisoformat(end)) if begin and end else None
    seconds = optional(given.seconds)
    return Schedule(timedelta(seconds=seconds) if seconds else None, window, optional(given.cron) or "")
