"""Parts that requests about jobs have in common."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from core.errors import Forbidden
from core.jobs import Actor, JobId
from core.jobs.states import JobState
from core.jobs.views import Wanted
from delivery.http.context import Request
from delivery.http.fields import RequestModel
from delivery.http.input.reading import optional

Kind = Annotated[str, Meta(pattern="^[a-z][a-z0-9_-]{0,63}$")]
By = Literal["user", "admin"]
JobCursor = Annotated[str, Meta(pattern=r"^[0-9]{0,15}$", extra={"pattern": "CURSOR_MALFORMED"})]


class JobFilter(RequestModel, frozen=True):
    """Which jobs: all that match what is given."""

    state: JobState | UnsetType = UNSET
    kind: Kind | UnsetType = UNSET
    q: Annotated[str, Meta(max_length=200, description="a text of the parameters or the own state")] | UnsetType = UNSET
    reason: (
        Annotated[str, Meta(max_length=200, description="a text of why it does not run, for example of its failure")]
        | UnsetType
    ) = UNSET


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
