"""The long-running jobs of users: start, list, change, signal, pause, resume, stop, and follow the live log of one."""

import re
from collections.abc import AsyncGenerator
from datetime import time, timedelta
from typing import Annotated, Literal

from aiohttp import web
from msgspec import UNSET, Meta, Struct, UnsetType

from core.errors import Forbidden, Invalid
from core.jobs import Actor, DailyWindow, JobId, Schedule
from core.jobs.states import JobState
from core.jobs.views import BEGIN, JobView, LogLine, Wanted, view_of
from core.model.field_types import IdField, ShortText, whole
from core.model.json_form import JsonObject, JsonValue
from delivery.api.deliveries.tracking import forced_end
from delivery.http.context import ApiRequest, Request, Response, encode, next_page_link
from delivery.http.fields import Limit, RequestModel, Time, optional
from delivery.http.responses import sse
from delivery.http.responses.problems import invalid_field
from delivery.http.route import NEW_OBJECT, NEXT_PAGE, NoParameters, PlainRequest, Repeats, Route, Routes

Kind = Annotated[str, Meta(pattern=whole("[a-z][a-z0-9_-]{0,63}"))]
By = Literal["user", "admin"]
JobCursor = Annotated[str, Meta(pattern=whole(r"[0-9]{0,15}"), extra={"pattern": "CURSOR_MALFORMED"})]


class JobFilter(RequestModel, frozen=True):
    """Selects the jobs that match every given field."""

    state: JobState | UnsetType = UNSET
    kind: Kind | UnsetType = UNSET
    q: Annotated[str, Meta(max_length=200, description="a text of the parameters or the own state")] | UnsetType = UNSET
    reason: (
        Annotated[str, Meta(max_length=200, description="a text of why it does not run, for example of its failure")]
        | UnsetType
    ) = UNSET


def actor(request: ApiRequest, by: str) -> Actor:
    """Return the actor of a request. Raises Forbidden ADMIN_NEEDED."""
    found = Actor(by)
    if found is Actor.ADMIN and not request.key.permits("admin"):
        raise Forbidden("ADMIN_NEEDED", "To act as an administrator the key needs the scope admin.")
    return found


def job_id(request: ApiRequest) -> JobId:
    """Read the id of a job. Raises NotFound JOB_NOT_FOUND."""
    return JobId.parse(request.tenant, request.part("job_id"))


def wanted_by(given: JobFilter) -> Wanted:
    """Return which jobs a client selects."""
    texts = optional(given.q) or "", optional(given.reason) or ""
    return Wanted(optional(given.state), optional(given.kind) or "", *texts)


Parameters = Annotated[
    JsonObject, Meta(description="what the job works with; at most 64 KiB; absent: as before, or none")
]
TimeZone = Annotated[
    str, Meta(max_length=64, description="the user's, for example Europe/Moscow; absent: as before, or UTC")
]
WallTime = Annotated[str, Meta(pattern=whole("([01][0-9]|2[0-3]):[0-5][0-9]"), description="for example 09:00")]


class JobSchedule(RequestModel, frozen=True):
    """The begin of iterations, in place of the schedule of the kind. `seconds`: the period; `cron`: five fields, on the
    wall clock of the user; neither: once. `begin`, `end`: the daily window.
    """

    seconds: Annotated[float, Meta(ge=1, le=31622400)] | UnsetType = UNSET
    cron: Annotated[str, Meta(min_length=9, max_length=200)] | UnsetType = UNSET
    begin: WallTime | UnsetType = UNSET
    end: WallTime | UnsetType = UNSET


class JobRequest(RequestModel, frozen=True):
    """A job to start: of a user, of a kind that a process of this installation runs. `admin` needs the scope admin; a
    job that an administrator has paused, and its user then stopped, is started by an administrator only.
    """

    kind: Kind
    user: IdField
    key: Annotated[str, Meta(pattern=whole("[A-Za-z0-9_-]{1,64}"))] | UnsetType = UNSET
    parameters: Parameters | UnsetType = UNSET
    timezone: TimeZone | UnsetType = UNSET
    schedule: JobSchedule | UnsetType = UNSET
    at: Time | UnsetType = UNSET
    by: By = "user"


class JobChange(RequestModel, frozen=True):
    """The author of a change; `admin` needs the scope admin. A user cannot end a pause of an administrator."""

    by: By = "user"
    reason: ShortText = ""


class JobStop(JobChange, frozen=True):
    """The end of a job. `abandon`: at once; what its iteration has done is not taken back by compensations."""

    abandon: bool = False


class JobParameters(RequestModel, frozen=True):
    """A change of parameters. Of `parameters`, `null` removes one, and those that are not named stay."""

    parameters: Parameters | UnsetType = UNSET
    timezone: TimeZone | UnsetType = UNSET
    schedule: JobSchedule | UnsetType = UNSET
    by: By = "user"


class JobSignal(RequestModel, frozen=True):
    """A signal for a job. `id`: a repetition with it within a day does nothing. `data`: at most 64 KiB."""

    name: Annotated[str, Meta(min_length=1, max_length=200)]
    data: JsonValue = None
    id: Annotated[str, Meta(max_length=200)] = ""
    by: By = "user"


class JobQuery(JobFilter, frozen=True):
    """The filter and the page of a list of jobs. A filtered page may be shorter than `limit`."""

    cursor: JobCursor | UnsetType = UNSET
    limit: Limit | UnsetType = UNSET


class JobPage(Struct):
    """A page of jobs. `counts`: how many jobs of the tenant have each state. `next`: the cursor of the next page."""

    jobs: list[JobView]
    counts: dict[JobState, int]
    next: str | None


ChangeRequest = Request[JobChange | None, NoParameters]
_PAGE = 100


async def start(request: Request[JobRequest, NoParameters]) -> Response:
    """Start a job, or start it again after it was stopped or has failed."""
    body = request.body
    started = JobId(request.tenant, body.kind, str(body.user), optional(body.key) or "")
    given, zone, at = optional(body.parameters), optional(body.timezone), optional(body.at)
    job = await request.services.core.jobs.start(
        started,
        given,
        zone,
        actor(request, body.by),
        at=request.time(at, "at"),
        schedule=_schedule(optional(body.schedule)),
    )
    return Response(view_of(job), 201, {"Location": f"/v1/jobs/{job.id.name}"})


async def change(request: Request[JobParameters, NoParameters]) -> Response:
    """Change parameters, time zone and schedule of a job."""
    body, by = request.body, actor(request, request.body.by)
    zone, schedule = optional(body.timezone), _schedule(optional(body.schedule))
    jobs = request.services.core.jobs
    changes = optional(body.parameters) or {}
    return Response(view_of(await jobs.change(job_id(request), changes, by, timezone=zone, schedule=schedule)))


async def signal(request: Request[JobSignal, NoParameters]) -> Response:
    body, by = request.body, actor(request, request.body.by)
    await request.services.core.jobs.signal(job_id(request), body.name, body.data, signal_id=body.id, by=by)
    return Response(None, 204)


async def list_page(request: Request[None, JobQuery]) -> Response:
    query, jobs = request.query, request.services.core.jobs
    wanted, cursor = wanted_by(query), optional(query.cursor) or ""
    found, cursor = await jobs.list(request.tenant, wanted, cursor, query.limit or _PAGE)
    counts = await jobs.storage.counts(request.tenant)
    page = JobPage([view_of(job) for job in found], counts, cursor or None)
    return Response(page, headers=next_page_link(request.http, page.next))


async def show(request: PlainRequest) -> Response:
    return Response(view_of(await request.services.core.jobs.find(job_id(request))))


async def pause(request: ChangeRequest) -> Response:
    """Pause a job; the unit in hand is finished."""
    reason = request.body.reason if request.body else ""
    return Response(view_of(await request.services.core.jobs.pause(job_id(request), _actor_of(request), reason)))


async def resume(request: ChangeRequest) -> Response:
    """Let a paused job go on where it was."""
    return Response(view_of(await request.services.core.jobs.resume(job_id(request), _actor_of(request))))


async def stop(request: Request[JobStop | None, NoParameters]) -> Response:
    """End a job, after its compensations; it can be started again."""
    body, jobs = request.body or JobStop(), request.services.core.jobs
    by = actor(request, body.by)
    return Response(view_of(await jobs.stop(job_id(request), by, body.reason, abandon=body.abandon)))


def _actor_of(request: ChangeRequest) -> Actor:
    return actor(request, request.body.by if request.body else "user")


def _schedule(given: JobSchedule | None) -> Schedule | None:
    """Return the schedule of a request. Raises Invalid CRON_MALFORMED, WINDOW_EMPTY, SCHEDULE_AMBIGUOUS."""
    if given is None:
        return None
    begin, end = optional(given.begin), optional(given.end)
    if (begin is None) != (end is None):
        raise Invalid("SCHEDULE_AMBIGUOUS", "A daily window has a `begin` and an `end`.", "schedule")
    window = DailyWindow(time.fromisoformat(begin), time.fromisoformat(end)) if begin and end else None
    seconds = optional(given.seconds)
    return Schedule(timedelta(seconds=seconds) if seconds else None, window, optional(given.cron) or "")


class LogQuery(RequestModel, frozen=True):
    """`after`: the number of the last line that the client has seen; Last-Event-ID wins."""

    after: Annotated[str, Meta(pattern=whole("[0-9]{1,15}"))] | UnsetType = UNSET


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
    Route("POST", "/v1/jobs", "Start a long-running job of a user", "manage", start, 201, JobView, body=JobRequest,
          repeats=Repeats.STORED, headers=NEW_OBJECT),
    Route("GET", "/v1/jobs", "List jobs, and how many have each state", "read", list_page, 200, JobPage,
          query=JobQuery, headers=NEXT_PAGE),
    Route("GET", "/v1/jobs/{job_id}", "Show one job", "read", show, 200, JobView),
    Route("PATCH", "/v1/jobs/{job_id}", "Change parameters, zone or schedule of a job, for its next iteration",
          "manage", change, 200, JobView, body=JobParameters, repeats=Repeats.STORED),
    Route("POST", "/v1/jobs/{job_id}:signal", "Send a signal to a job", "manage", signal, 204, body=JobSignal,
          repeats=Repeats.STORED),
    Route("POST", "/v1/jobs/{job_id}:pause", "Pause a job; the unit in hand is finished", "manage", pause, 200,
          JobView, body=JobChange, body_is_optional=True, repeats=Repeats.STORED),
    Route("POST", "/v1/jobs/{job_id}:resume", "Let a paused job go on where it was", "manage", resume, 200, JobView,
          body=JobChange, body_is_optional=True, repeats=Repeats.STORED),
    Route("POST", "/v1/jobs/{job_id}:stop", "End a job; it can be started again", "manage", stop, 200, JobView,
          body=JobStop, body_is_optional=True, repeats=Repeats.STORED),
    Route("GET", "/v1/jobs/{job_id}/log", "The live log of a job; Last-Event-ID resumes it", "read", follow_log, 200,
          sse.CONTENT_TYPE, query=LogQuery),
)  # fmt: skip
