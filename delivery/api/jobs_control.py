"""Control of jobs by people: changes all jobs of a filter, as many as were counted; shows and mends the steps, items
and effects of one.
"""

from collections.abc import Sequence
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from core.jobs import JobId
from core.jobs.bulk import BulkJobs, Change, JobChanges, JobCount
from core.jobs.queries import ask
from core.jobs.steps import StepView, UnitOutcome, UnitStatus, UnitView, point_of
from core.jobs.views import JobView, view_of
from core.model.field_types import ShortText, whole
from core.model.json_form import JsonObject, JsonValue
from delivery.api.jobs import By, JobCursor, JobFilter, actor, job_id, wanted_by
from delivery.http.context import ApiRequest, Request, Response, next_page_link
from delivery.http.fields import Limit, RequestModel, optional
from delivery.http.route import NEXT_PAGE, NoParameters, Repeats, Route, Routes


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


async def count_jobs(request: Request[None, JobFilter]) -> Response:
    return Response(await BulkJobs(request.services.core.jobs, request.tenant, wanted_by(request.query)).count())


async def pause_jobs(request: Request[JobsPause, NoParameters]) -> Response:
    jobs, by, reason = request.services.core.jobs, actor(request, request.body.by), request.body.reason
    return await _change(request, request.body, lambda job: jobs.pause(job, by, reason))


async def resume_jobs(request: Request[JobsChange, NoParameters]) -> Response:
    """Let paused jobs go on."""
    jobs, by = request.services.core.jobs, actor(request, request.body.by)
    return await _change(request, request.body, lambda job: jobs.resume(job, by))


async def stop_jobs(request: Request[JobsStop, NoParameters]) -> Response:
    body, jobs, by = request.body, request.services.core.jobs, actor(request, request.body.by)
    return await _change(request, request.body, lambda job: jobs.stop(job, by, body.reason, abandon=body.abandon))


async def signal_jobs(request: Request[JobsSignal, NoParameters]) -> Response:
    body, jobs, by = request.body, request.services.core.jobs, actor(request, request.body.by)
    return await _change(request, body, lambda job: jobs.signal(job, body.name, body.data, signal_id=body.id, by=by))


async def reset_jobs(request: Request[JobsReset, NoParameters]) -> Response:
    """Repeat the iterations of jobs from a step."""
    jobs, by = request.services.core.jobs, actor(request, request.body.by)
    point = point_of(request.body.from_, again=request.body.again)
    return await _change(request, request.body, lambda job: jobs.reset(job, point, by))


async def resolve_jobs(request: Request[JobsResolution, NoParameters]) -> Response:
    """Record what became of all that is unknown."""
    body, units, by = request.body, request.services.core.jobs.units, actor(request, request.body.by)

    async def resolved(job: JobId) -> bool:
        return await units.resolve_all(job, body.unit, body.outcome, body.result, by) > 0

    return await _change(request, request.body, resolved)


async def _change(request: ApiRequest, body: JobsChange, change: Change) -> Response:
    selected = BulkJobs(request.services.core.jobs, request.tenant, wanted_by(body.filter))
    return Response(await selected.change(change, body.before, body.expected, optional(body.cursor) or ""))


UnitId = Annotated[str, Meta(min_length=1, max_length=2000, description="as in the list, for example effect:apply 7")]


class UnitQuery(RequestModel, frozen=True):
    """The filter and the page of a list of units. A page may be shorter or longer than `limit`."""

    status: UnitStatus | UnsetType = UNSET
    cursor: Annotated[str, Meta(pattern=whole("[0-9]{1,18}"))] | UnsetType = UNSET
    limit: Limit | UnsetType = UNSET


class UnitPage(Struct):
    """A page of units and effects, in no order. `next`: the cursor of the next page."""

    units: list[UnitView]
    next: str | None


class UnitResolution(RequestModel, frozen=True):
    """The outcome of a unit or an effect whose own is not known. `result`: the value that a done effect returns."""

    unit: UnitId
    outcome: UnitOutcome
    result: JsonValue = None
    by: By = "user"


class UnitReset(RequestModel, frozen=True):
    """A unit or an effect to be done again."""

    unit: UnitId
    by: By = "user"


class StepQuery(RequestModel, frozen=True):
    """The page of a list of steps."""

    cursor: Annotated[str, Meta(pattern=whole("[0-9]{1,18}"))] | UnsetType = UNSET
    limit: Limit | UnsetType = UNSET


class StepPage(Struct):
    """A page of what an iteration has stored, in the order in which it was stored first. `next`: the cursor of the next
    page.
    """

    steps: list[StepView]
    next: str | None


class JobQuestion(RequestModel, frozen=True):
    """The parameters of a query, by their names."""

    parameters: Annotated[JsonObject, Meta(description="at most 64 KiB")] | UnsetType = UNSET


class JobAnswer(Struct):
    """The result of the query."""

    answer: JsonValue


class JobReset(RequestModel, frozen=True, rename={"from_": "from"}):
    """The step from which an iteration is repeated: a step by its name, or what the list of steps shows. `again`: also
    the effects and items from there on are done again, otherwise they keep their results. `dry_run`: nothing changes.
    """

    from_: Annotated[str, Meta(min_length=1, max_length=2000, description="for example search, or effect:apply 7")]
    again: bool = False
    dry_run: bool = False
    by: By = "user"


class JobResetResult(Struct):
    """The job, and of its iteration what was dropped and what has stayed, of each the first 1000; in a dry run, what
    would be.
    """

    job: JobView
    dropped: Sequence[StepView]
    kept: Sequence[StepView]


_PAGE = 100


async def list_steps(request: Request[None, StepQuery]) -> Response:
    """Return one page of what the iteration has stored, in its order."""
    query, jobs = request.query, request.services.core.jobs
    job = await jobs.find(job_id(request))
    steps, cursor = await jobs.steps.page(job.id, optional(query.cursor) or "", query.limit or _PAGE)
    page = StepPage(steps, cursor or None)
    return Response(page, headers=next_page_link(request.http, page.next))


async def reset_job(request: Request[JobReset, NoParameters]) -> Response:
    """Repeat an iteration from one of its steps, or return what that would do."""
    body, jobs = request.body, request.services.core.jobs
    job, point = await jobs.find(job_id(request)), point_of(body.from_, again=body.again)
    plan = await jobs.steps.plan(job.id, point)
    if not body.dry_run:
        job = await jobs.reset(job.id, point, actor(request, body.by))
    return Response(JobResetResult(view_of(job), plan.dropped, plan.kept))


async def ask_job(request: Request[JobQuestion | None, NoParameters]) -> Response:
    core, name = request.services.core, request.part("name")
    parameters = (optional(request.body.parameters) if request.body else None) or {}
    return Response(JobAnswer(await ask(core.client, core.jobs, job_id(request), name, parameters)))


async def list_units(request: Request[None, UnitQuery]) -> Response:
    """Return one page of what is recorded of a job's items and effects."""
    query, jobs = request.query, request.services.core.jobs
    job = await jobs.find(job_id(request))
    units, cursor = await jobs.units.page(
        job.id, optional(query.status), optional(query.cursor) or "", query.limit or _PAGE
    )
    page = UnitPage(units, cursor or None)
    return Response(page, headers=next_page_link(request.http, page.next))


async def resolve_unit(request: Request[UnitResolution, NoParameters]) -> Response:
    """Record what became of something unknown; the job goes on with that."""
    body, jobs = request.body, request.services.core.jobs
    job = await jobs.find(job_id(request))
    await jobs.units.resolve(job.id, body.unit, body.outcome, body.result, actor(request, body.by))
    return Response(None, 204)


async def reset_unit(request: Request[UnitReset, NoParameters]) -> Response:
    """Forget a unit or an effect, so that it is done again."""
    jobs = request.services.core.jobs
    job = await jobs.find(job_id(request))
    await jobs.units.reset(job.id, request.body.unit, actor(request, request.body.by))
    return Response(None, 204)


ROUTES: Routes = (
    Route("GET", "/v1/jobs:count", "Count the jobs of a filter, up to 10,000", "read", count_jobs, 200, JobCount,
          query=JobFilter),
    Route("POST", "/v1/jobs:pause", "Pause all jobs of a filter", "manage", pause_jobs, 200, JobChanges, body=JobsPause,
          repeats=Repeats.STORED),
    Route("POST", "/v1/jobs:resume", "Let all paused jobs of a filter go on", "manage", resume_jobs, 200, JobChanges,
          body=JobsChange, repeats=Repeats.STORED),
    Route("POST", "/v1/jobs:stop", "End all jobs of a filter", "manage", stop_jobs, 200, JobChanges, body=JobsStop,
          repeats=Repeats.STORED),
    Route("POST", "/v1/jobs:signal", "Send a signal to all jobs of a filter", "manage", signal_jobs, 200, JobChanges,
          body=JobsSignal, repeats=Repeats.STORED),
    Route("POST", "/v1/jobs:reset", "Repeat the iterations of all jobs of a filter from a step", "manage", reset_jobs,
          200, JobChanges, body=JobsReset, repeats=Repeats.STORED),
    Route("POST", "/v1/jobs:resolve", "Say what became of what is unknown in all jobs of a filter", "manage",
          resolve_jobs, 200, JobChanges, body=JobsResolution, repeats=Repeats.STORED),
    Route("GET", "/v1/jobs/{job_id}/steps", "List what the iteration has stored, in its order", "read", list_steps,
          200, StepPage, query=StepQuery, headers=NEXT_PAGE),
    Route("POST", "/v1/jobs/{job_id}:reset", "Repeat an iteration from one of its steps", "manage", reset_job, 200,
          JobResetResult, body=JobReset, repeats=Repeats.STORED),
    Route("POST", "/v1/jobs/{job_id}/queries/{name}", "Ask a job something; it changes nothing", "read", ask_job, 200,
          JobAnswer, body=JobQuestion, body_is_optional=True),
    Route("GET", "/v1/jobs/{job_id}/units", "List what became of a job's items and effects", "read", list_units, 200,
          UnitPage, query=UnitQuery, headers=NEXT_PAGE),
    Route("POST", "/v1/jobs/{job_id}/units:resolve", "Say what became of something unknown", "manage", resolve_unit,
          204, body=UnitResolution, repeats=Repeats.STORED),
    Route("POST", "/v1/jobs/{job_id}/units:reset", "Do a unit or an effect again", "manage", reset_unit, 204,
          body=UnitReset, repeats=Repeats.STORED),
)  # fmt: skip
