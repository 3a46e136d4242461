"""What follows after a failure of an iteration: another try, the next iteration, or the end of the job. Pure.

The number of failures in a row is in the record of the job, so that neither a sleep nor a crash forgets it.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, auto

from core.jobs.due_times import schedule_of
from core.jobs.record import JobRecord, zone_of
from core.model.backoff import Backoff
from core.model.clock import from_ms
from jobs.job import Job
from jobs.signals import RollBack, Unclear

BACKOFF = Backoff(timedelta(seconds=2), timedelta(hours=1))

MOST = 40
"""Failures in a row, about a day, after which a job without a period has failed."""

LEAST = 5
"""So often an iteration is tried before the next one takes its place."""


class Verdict(Enum):
    """What follows. `NEXT`: the iteration is given up, and the next one begins when it is due."""

    AGAIN = auto()
    NEXT = auto()
    FAILED = auto()


@dataclass(frozen=True, slots=True)
class Failure:
    """`number`: how many failures in a row this one makes. `at`: of the next try, or of the next iteration."""

    fault: BaseException
    number: int
    at: datetime
    verdict: Verdict


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
        return Failure(fault, number, now, Verdict.FAILED)
    if not schedule.is_once and number >= LEAST:
        following = schedule.next(from_ms(record.anchor), from_ms(record.last_run), now, zone)
        if again >= following:
            return Failure(fault, number, following, Verdict.NEXT)
    return Failure(fault, number, again, Verdict.AGAIN)


def failure_of_compensation(kind: type[Job], record: JobRecord, fault: BaseException, now: datetime) -> Failure:
    """Return what follows after a failure while what was done is taken back: the job never goes on without that."""
    number = record.failures + 1
    is_last = isinstance(fault, RollBack) or number >= (kind.most_failures or MOST + LEAST)
    return Failure(fault, number, now + BACKOFF.pause(number), Verdict.FAILED if is_last else Verdict.AGAIN)


def most_of(kind: type[Job], *, is_once: bool) -> int | None:
    """Return after how many failures in a row the job has failed; None: it goes on with its next iteration."""
    return kind.most_failures or (MOST if is_once else None)
