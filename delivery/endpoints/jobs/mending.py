"""Looks into a job and mends it: its steps, items and effects; resets."""

from core.jobs.mending.queries import ask
from core.jobs.mending.steps import point_of
from core.jobs.views import view_of
from delivery.endpoints.directory.reading import optional
from delivery.endpoints.jobs.reading import actor, job_id
from delivery.http.context import Request, Response, next_page_link
from delivery.http.route import NoParameters
from delivery.schemas import jobs as schemas

_PAGE = 100


async def list_steps(request: Request[None, schemas.StepQuery]) -> Response:
    """Return one page of what the iteration has stored, in its order."""
    query, jobs = request.query, request.services.core.jobs
    job = await jobs.find(job_id(request))
    steps, cursor = await jobs.steps.page(job.id, optional(query.cursor) or "", query.limit or _PAGE)
    page = schemas.StepPage(steps, cursor or None)
    return Response(page, headers=next_page_link(request.http, page.next))


async def reset(request: Request[schemas.JobReset, NoParameters]) -> Response:
    """Repeat an iteration from one of its steps, or return what that would do."""
    body, jobs = request.body, request.services.core.jobs
    job, point = await jobs.find(job_id(request)), point_of(body.from_, again=body.again)
    plan = await jobs.steps.plan(job.id, point)
    if not body.dry_run:
        job = await jobs.reset(job.id, point, actor(request, body.by))
    return Response(schemas.JobResetResult(view_of(job), plan.dropped, plan.kept))


async def ask_job(request: Request[schemas.JobQuestion | None, NoParameters]) -> Response:
    """Return what a job answers to a query."""
    core, name = request.services.core, request.http.match_info["name"]
    parameters = (optional(request.body.parameters) if request.body else None) or {}
    return Response(schemas.JobAnswer(await ask(core.client, core.jobs, job_id(request), name, parameters)))


async def list_units(request: Request[None, schemas.UnitQuery]) -> Response:
    """Return one page of what is recorded of a job's items and effects."""
    query, jobs = request.query, request.services.core.jobs
    job = await jobs.find(job_id(request))
    units, cursor = await jobs.units.page(
        job.id, optional(query.status), optional(query.cursor) or "", query.limit or _PAGE
    )
    page = schemas.UnitPage(units, cursor or None)
    return Response(page, headers=next_page_link(request.http, page.next))


async def resolve_unit(request: Request[schemas.UnitResolution, NoParameters]) -> Response:
    """Record what became of something unknown; the job goes on with that."""
    body, jobs = request.body, request.services.core.jobs
    job = await jobs.find(job_id(request))
    await jobs.units.resolve(job.id, body.unit, body.outcome, body.result, actor(request, body.by))
    return Response(None, 204)


async def reset_unit(request: Request[schemas.UnitReset, NoParameters]) -> Response:
    """Forget a unit or an effect, so that it is done again."""
    jobs = request.services.core.jobs
    job = await jobs.find(job_id(request))
    await jobs.units.reset(job.id, request.body.unit, actor(request, request.body.by))
    return Response(None, 204)
