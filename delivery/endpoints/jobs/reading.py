"""Reads what requests about jobs have in common."""

from typing import Any

from core.errors import Forbidden
from core.jobs import Actor, JobId
from core.jobs.listing import Wanted
from delivery.endpoints.directory.reading import optional
from delivery.http.context import Request
from delivery.schemas.jobs import JobFilter


def actor(request: Request[Any, Any], by: str) -> Actor:
    """Return the actor of a request. Raises Forbidden ADMIN_NEEDED."""
    found = Actor(by)
    if found is Actor.ADMIN and not request.key.permits("admin"):
        raise Forbidden("ADMIN_NEEDED", "To act as an administrator the key needs the scope admin.")
    return found


def job_id(request: Request[Any, Any]) -> JobId:
    """Read the id of a job. Raises NotFound JOB_NOT_FOUND."""
    return JobId.parse(request.tenant, request.http.match_info["job_id"])


def wanted_by(given: JobFilter) -> Wanted:
    """Return which jobs a client selects."""
    texts = optional(given.q) or "", optional(given.reason) or ""
    return Wanted(optional(given.state), optional(given.kind) or "", *texts)
