"""Reads what requests about jobs have in common."""

from typing import Any

from core.errors import Forbidden
from core.jobs import Actor, JobId
from delivery.http.context import Request


def actor(request: Request[Any, Any], by: str) -> Actor:
    """Return the actor of a request. Raises Forbidden ADMIN_NEEDED."""
    found = Actor(by)
    if found is Actor.ADMIN and not request.key.permits("admin"):
        raise Forbidden("ADMIN_NEEDED", "To act as an administrator the key needs the scope admin.")
    return found


def job_id(request: Request[Any, Any]) -> JobId:
    """Read the id of a job. Raises NotFound JOB_NOT_FOUND."""
    return JobId.parse(request.tenant, request.http.match_info["job_id"])
