"""What follows after a failure of an iteration: another try, the next iteration, or the end of the job. Pure.

The number of failures in a row is in the record of the job, so that neither a sleep nor a crash forgets it.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, auto

from core.jobs.record import JobRecord, schedule_of, zone_of
from core.model.backoff import Backoff
from core.model.clock import from_ms, to_ms
from jobs.job import Job
from jobs.signals import RollBack, Unclear

BACKOFF = Backoff(timedelta(seconds=2), timedelta(hours=1))

MOST = 40
"""Failures in a row, about a day, after which a job without a period has failed."""

LEAST = 5
"""So often an iteration is tried before the next one takes its place."""

REPORTED_AFTER = timedelta(days=1)
"""The user of a job that goes on is notified once when its failures in a row have lasted so long."""


class AfterFailure(Enum):
    """What follows. `NEXT`: the iteration is given up, and the next one begins when it is due."""

    AGAIN = auto()
    NEXT = auto()
    FAILED = auto()


@dataclass(frozen=True, slots=True)
class Failure:
    """`number`: how many failures in a row this one makes. `at`: of the next try, or of the next iteration. `reports`:
    whether the user is notified now that the job keeps failing; `report_at`: as in the record of the job from now on.
    """

    fault: BaseException
    number: int
    at: datetime
    verdict: AfterFailure
    reports: bool = False
    report_at: int = 0


def failure_of(kind: type[Job], record: JobRecord, fault: BaseException, now: datetime) -> Failure:
    """Return what follows after a failure of `run`."""
    number, schedule, zone = (
        record.failures + 1,
        schedule_of(record, kind.schedule) or kind.schedule,
        zone_of(record.timezone),
    )
    again = schedule.in_window(now + BACKOFF.pause(number), zone)
    most = most_of(kind, is_once=schedule.is_once)
    if isinstance(fault, Unclear):  # only a person can end that
        most = min(most or LEAST, LEAST)
    if isinstance(fault, RollBack) or (most and number >= most):
        return Failure(fault, number, now, AfterFailure.FAILED)
    if schedule.is_once and not kind.most_failures:  # it ends in about a day, and that is reported
        return Failure(fault, number, again, AfterFailure.AGAIN)
    report_at = record.report_at if record.failures else to_ms(now + REPORTED_AFTER)
    reports = 0 < report_at <= to_ms(now)
    report = (reports, 0 if reports else report_at)
    if not schedule.is_once and number >= LEAST:
        following = schedule.next(from_ms(record.anchor), from_ms(record.last_run), now, zone)
        if again >= following:
            return Failure(fault, number, following, AfterFailure.NEXT, *report)
    return Failure(fault, number, again, AfterFailure.AGAIN, *report)


def failure_of_compensation(kind: type[Job], record: JobRecord, fault: BaseException, now: datetime) -> Failure:
    """Return what follows after a failure while what was done is taken back: the job never goes on without that."""
    number = record.failures + 1
    is_last = isinstance(fault, RollBack) or number >= (kind.most_failures or MOST + LEAST)
    return Failure(fault, number, now + BACKOFF.pause(number), AfterFailure.FAILED if is_last else AfterFailure.AGAIN)


def most_of(kind: type[Job], *, is_once: bool) -> int | None:
    """Return after how many failures in a row the job has failed; None: it goes on with its next iteration."""
    return kind.most_failures or (MOST if is_once else None)
