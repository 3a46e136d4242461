"""Changes all jobs of a filter: as many as were counted."""

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from core.jobs import JobId
from core.jobs.bulk import BulkJobs, Change, JobChanges, JobCount
from core.jobs.steps import point_of
from core.jobs.units import UnitOutcome
from core.model.field_types import ShortText
from core.model.json_form import JsonValue
from delivery.api.jobs import By, JobCursor, JobFilter, actor, wanted_by
from delivery.http.context import ApiRequest, Request, Response
from delivery.http.fields import RequestModel
from delivery.http.input.reading import optional
from delivery.http.route import NoParameters, Repeats, Route, Routes


class JobsChange(RequestModel, frozen=True, kw_only=True):
    """Changes jobs: those of the filter that have not changed since `before` (Unix ms), at most `expected`.
    `cursor`: where the call before has stopped. `admin` needs the scope admin.
    """

    filter: JobFilter
    before: Annotated[int, Meta(ge=0, le=2**52)]
    expected: Annotated[int, Meta(ge=1, le=2**40)]
    cursor: JobCursor | UnsetType = UNSET
    by: By = "user"


class JobsPause(JobsChange, frozen=True, kw_only=True):
    """Jobs to pause. `reason`: shown to the user."""

    reason: ShortText = ""


class JobsStop(JobsPause, frozen=True, kw_only=True):
    """Jobs to stop. `abandon`: at once; what their iterations have done is not taken back by compensations."""

    abandon: bool = False


class JobsReset(JobsChange, frozen=True, kw_only=True, rename={"from_": "from"}):
    """Jobs whose iteration is repeated from a step. `again`: also effects and items from there on are done again."""

    from_: Annotated[str, Meta(min_length=1, max_length=2000, description="for example search, or effect:apply 7")]
    again: bool = False


class JobsResolution(JobsChange, frozen=True, kw_only=True):
    """The outcome of everything unknown whose id begins with `unit`. `result`: the value that a done effect returns."""

    unit: Annotated[str, Meta(min_length=1, max_length=2000, description="for example effect:apply")]
    outcome: UnitOutcome
    result: JsonValue = None


class JobsSignal(JobsChange, frozen=True, kw_only=True):
    """A signal for each of the jobs. `id`: a repetition with it within a day does nothing. `data`: at most 64 KiB."""

    name: Annotated[str, Meta(min_length=1, max_length=200)]
    data: JsonValue = None
    id: Annotated[str, Meta(max_length=200)] = ""


async def count(request: Request[None, JobFilter]) -> Response:
    """Count the jobs of a filter."""
    return Response(await BulkJobs(request.services.core.jobs, request.tenant, wanted_by(request.query)).count())


async def pause(request: Request[JobsPause, NoParameters]) -> Response:
    """Pause jobs."""
    jobs, by, reason = request.services.core.jobs, actor(request, request.body.by), request.body.reason
    return await _change(request, request.body, lambda job: jobs.pause(job, by, reason))


async def resume(request: Request[JobsChange, NoParameters]) -> Response:
    """Let paused jobs go on."""
    jobs, by = request.services.core.jobs, actor(request, request.body.by)
    return await _change(request, request.body, lambda job: jobs.resume(job, by))


async def stop(request: Request[JobsStop, NoParameters]) -> Response:
    """End jobs."""
    body, jobs, by = request.body, request.services.core.jobs, actor(request, request.body.by)
    return await _change(request, request.body, lambda job: jobs.stop(job, by, body.reason, abandon=body.abandon))


async def signal(request: Request[JobsSignal, NoParameters]) -> Response:
    """Send a signal to jobs."""
    body, jobs, by = request.body, request.services.core.jobs, actor(request, request.body.by)
    return await _change(request, body, lambda job: jobs.signal(job, body.name, body.data, signal_id=body.id, by=by))


async def reset(request: Request[JobsReset, NoParameters]) -> Response:
    """Repeat the iterations of jobs from a step."""
    jobs, by = request.services.core.jobs, actor(request, request.body.by)
    point = point_of(request.body.from_, again=request.body.again)
    return await _change(request, request.body, lambda job: jobs.reset(job, point, by))


async def resolve(request: Request[JobsResolution, NoParameters]) -> Response:
    """Record what became of all that is unknown."""
    body, units, by = request.body, request.services.core.jobs.units, actor(request, request.body.by)

    async def resolved(job: JobId) -> bool:
        return await units.resolve_all(job, body.unit, body.outcome, body.result, by) > 0

    return await _change(request, request.body, resolved)


async def _change(request: ApiRequest, body: JobsChange, change: Change) -> Response:
    selected = BulkJobs(request.services.core.jobs, request.tenant, wanted_by(body.filter))
    return Response(await selected.change(change, body.before, body.expected, optional(body.cursor) or ""))


ROUTES: Routes = (
    Route("GET", "/v1/jobs:count", "Count the jobs of a filter, up to 10,000", "read", count, 200, JobCount,
          query=JobFilter),
    Route("POST", "/v1/jobs:pause", "Pause all jobs of a filter", "manage", pause, 200, JobChanges, body=JobsPause,
          repeats=Repeats.STORED),
    Route("POST", "/v1/jobs:resume", "Let all paused jobs of a filter go on", "manage", resume, 200, JobChanges,
          body=JobsChange, repeats=Repeats.STORED),
    Route("POST", "/v1/jobs:stop", "End all jobs of a filter", "manage", stop, 200, JobChanges, body=JobsStop,
          repeats=Repeats.STORED),
    Route("POST", "/v1/jobs:signal", "Send a signal to all jobs of a filter", "manage", signal, 200, JobChanges,
          body=JobsSignal, repeats=Repeats.STORED),
    Route("POST", "/v1/jobs:reset", "Repeat the iterations of all jobs of a filter from a step", "manage", reset, 200,
          JobChanges, body=JobsReset, repeats=Repeats.STORED),
    Route("POST", "/v1/jobs:resolve", "Say what became of what is unknown in all jobs of a filter", "manage", resolve,
          200, JobChanges, body=JobsResolution, repeats=Repeats.STORED),
)  # fmt: skip
