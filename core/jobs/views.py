"""A job as HTTP and the command line show it."""

from datetime import datetime
from typing import Any

from msgspec import Struct

from core.jobs.record import StoredJob
from core.jobs.states import Actor, JobState
from core.model.clock import from_ms


class JobView(Struct, frozen=True, omit_defaults=True):
    """`id`: `KIND.USER`. `paused_by`, `reason`: why it does not run. `resumes_at`: when its pause ends by itself.
    `next_run`: when its next iteration is due; `iterations`: how many have ended.
    """

    id: str
    kind: str
    user: str
    state: JobState
    iterations: int
    created_at: datetime
    changed_at: datetime
    timezone: str
    parameters: dict[str, Any]
    paused_by: Actor | None = None
    reason: str | None = None
    resumes_at: datetime | None = None
    next_run: datetime | None = None
    last_run: datetime | None = None


def view_of(job: StoredJob) -> JobView:
    record = job.record
    runs = record.state is JobState.RUNNING
    return JobView(
        job.id.name,
        job.id.kind,
        job.id.user,
        record.state,
        record.iteration,
        from_ms(record.created),
        from_ms(record.changed or record.created),
        record.timezone,
        record.parameters,
        paused_by=record.paused_by,
        reason=record.reason or None,
        resumes_at=_time(record.resume_at),
        next_run=_time(record.due) if runs else None,
        last_run=_time(record.last_run),
    )


def _time(ms: int) -> datetime | None:
    return from_ms(ms) if ms else None
