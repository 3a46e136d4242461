"""The record of a job after a change. Pure."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from core.errors import Conflict
from core.jobs.kinds import JobKind
from core.jobs.record import JobRecord, Parent, in_window, line_of, zone_of
from core.jobs.schedule import Schedule, StoredSchedule
from core.jobs.states import Actor, JobState, may_override
from core.jobs.steps import NULL
from core.model.clock import to_ms

PERSON_DELETED = "the person was deleted"
"""The reason for which the jobs of a deleted person are stopped."""


def started(
    record: JobRecord,
    now: datetime,
    kind: JobKind,
    parameters: Mapping[str, Any] | None,
    timezone: str | None,
    at: datetime | None,
    schedule: Schedule | None,
    parent: Parent | None,
) -> JobRecord:
    """Return the record of a job that is started; what is None stays as it was."""
    zone = timezone or record.timezone
    own_schedule = StoredSchedule.of(schedule) if schedule else record.schedule
    follows = own_schedule.schedule if own_schedule else kind.schedule
    due = to_ms(follows.in_window(at, zone_of(zone)) if at else follows.first(now, zone_of(zone)))
    return JobRecord(
        record.state,
        parameters=record.parameters if parameters is None else dict(parameters),
        timezone=zone,
        reason=kind.waiting,
        generation=record.generation,
        iteration=record.iteration,
        anchor=due,
        due=due,
        created=record.created or to_ms(now),
        own=record.own,
        schedule=own_schedule,
        parent=parent,
    )


def ended(record: JobRecord, now: datetime, by: Actor, reason: str, result: msgspec.Raw) -> JobRecord:
    """Return the record of a job that ends. A pause of a higher actor than `by` stays: only that one starts the job
    again.
    """
    after = replace(record, result=result, begun=False, suspended=False, waits_for=[], resume_at=0, failures=0)
    if record.paused_by and not may_override(by, record.paused_by):
        return after
    return replace(after, paused_by=None, reason=line_of(reason), service="")


def stopped(
    record: JobRecord, now: datetime, by: Actor, reason: str, *, abandon: bool, keeps_failed: bool
) -> JobRecord:
    """Return the record of a job that a person stops; its compensations begin now, if it has any to call and is not
    abandoned. Raises Conflict JOB_IN_OTHER_STATE.
    """
    if keeps_failed and record.state is JobState.FAILED:
        raise Conflict("JOB_IN_OTHER_STATE", "The job has failed.")
    after = ended(record, now, by, reason, NULL)
    return replace(after, begun=True, due=to_ms(now)) if record.takes_back and not abandon else after


def taken_back(record: JobRecord, now: datetime) -> JobRecord:
    """Return the record of a job whose compensations have ended. The job of a deleted person loses its parameters."""
    return replace(record, begun=False, parameters={} if record.reason == PERSON_DELETED else record.parameters)


def repeated(record: JobRecord, now: datetime, kind: Schedule | None) -> JobRecord:
    """Return the record of a job whose iteration goes on from an earlier step, at once if its window is open. It has
    the version of the code with which it has begun. A pause stays.
    """
    if record.state is not JobState.PAUSED:
        record = replace(record, paused_by=None, reason="", service="")
    repeating = replace(record, begun=True, suspended=False, waits_for=[], result=NULL, failures=0)
    return replace(repeating, due=to_ms(in_window(kind, now, record)))
