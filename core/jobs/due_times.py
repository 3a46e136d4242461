"""When a job goes on by its own schedule or that of its kind, in its time zone. Pure."""

from datetime import datetime

from msgspec.structs import replace

from core.jobs.record import JobRecord, zone_of
from core.jobs.schedule import Schedule
from core.model.clock import from_ms, to_ms


def schedule_of(record: JobRecord, kind: Schedule | None) -> Schedule | None:
    """Return the schedule of a job. `kind`: that of its kind, None if that is gone."""
    return record.schedule.schedule if record.schedule else kind


def in_window(kind: Schedule | None, at: datetime, record: JobRecord) -> datetime:
    """Return `at`, or when the window of the job opens after it. `kind`: the schedule of its kind, None if that is
    gone.
    """
    schedule = schedule_of(record, kind)
    return schedule.in_window(at, zone_of(record.timezone)) if schedule else at


def due_again(record: JobRecord, kind: Schedule | None, now: datetime) -> JobRecord:
    """Return the record with the next iteration by its new schedule and zone; one that has begun stays as it is."""
    schedule = schedule_of(record, kind)
    if record.begun or schedule is None or not record.last_run:
        return record
    begun = from_ms(record.last_run)
    due = to_ms(schedule.next(begun, begun, now, zone_of(record.timezone)))
    return replace(record, anchor=record.last_run, due=due)
