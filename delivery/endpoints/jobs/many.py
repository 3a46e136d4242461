"""Changes all jobs of a filter: as many as were counted."""

from typing import Any

from core.jobs import JobId
from core.jobs.mending.bulk import BulkJobs, Change
from core.jobs.mending.steps import point_of
from delivery.endpoints.directory.reading import optional
from delivery.endpoints.jobs.reading import actor, wanted_by
from delivery.http.context import Request, Response
from delivery.http.route import NoParameters
from delivery.schemas import jobs as schemas


async def count(request: Request[None, schemas.JobFilter]) -> Response:
    """Count the jobs of a filter."""
    return Response(await BulkJobs(request.services.core.jobs, request.tenant, wanted_by(request.query)).count())


async def pause(request: Request[schemas.JobsPause, NoParameters]) -> Response:
    """Pause jobs."""
    jobs, by, reason = request.services.core.jobs, actor(request, request.body.by), request.body.reason
    return await _change(request, lambda job: jobs.pause(job, by, reason))


async def resume(request: Request[schemas.JobsChange, NoParameters]) -> Response:
    """Let paused jobs go on."""
    jobs, by = request.services.core.jobs, actor(request, request.body.by)
    return await _change(request, lambda job: jobs.resume(job, by))


async def stop(request: Request[schemas.JobsStop, NoParameters]) -> Response:
    """End jobs."""
    body, jobs, by = request.body, request.services.core.jobs, actor(request, request.body.by)
    return await _change(request, lambda job: jobs.stop(job, by, body.reason, abandon=body.abandon))


async def reset(request: Request[schemas.JobsReset, NoParameters]) -> Response:
    """Repeat the iterations of jobs from a step."""
    jobs, by = request.services.core.jobs, actor(request, request.body.by)
    point = point_of(request.body.from_, again=request.body.again)
    return await _change(request, lambda job: jobs.reset(job, point, by))


async def resolve(request: Request[schemas.JobsResolution, NoParameters]) -> Response:
    """Record what became of all that is unknown."""
    body, units, by = request.body, request.services.core.jobs.units, actor(request, request.body.by)

    async def resolved(job: JobId) -> bool:
        return await units.resolve_all(job, body.unit, body.outcome, body.result, by) > 0

    return await _change(request, resolved)


async def _change(request: Request[Any, NoParameters], change: Change) -> Response:
    body: schemas.JobsChange = request.body
    selected = BulkJobs(request.services.core.jobs, request.tenant, wanted_by(body.filter))
    return Response(await selected.change(change, body.before, body.expected, optional(body.cursor) or ""))
