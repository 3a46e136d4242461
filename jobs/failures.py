"""Why an iteration failed, as its user may read it, and what follows: another try, the next iteration, or the end of
the job. Pure.

The text of an exception may hold what the user must not see: the address of a call with its token, a row of a table. So
only errors that are written for people are shown with their text; of all others their name and the line of the job that
was carried out. The log of the process has the whole text, for the operator.

The number of failures in a row is in the record of the job, so that neither a sleep nor a crash forgets it.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, auto
from pathlib import Path
from traceback import extract_tb

from core.errors import AdaError, StoreError
from core.jobs.record import JobRecord, schedule_of, zone_of
from core.model.clock import Backoff, from_ms, to_ms
from core.sentence import Sentence, Text, sentence
from jobs.job import Job
from jobs.signals import Blocked, RollBack, Unclear

OWN_FOLDERS = (str(Path(__file__).parent), str(Path(__file__).parents[1] / "core"))


def reason_for_user(fault: BaseException) -> Text:
    """Return the reason of a fault, for example `the iteration took longer than 1:00:00`, or `KeyError in hunting.py,
    line 12`.
    """
    if isinstance(fault, AdaError) and not isinstance(fault, StoreError):
        said = fault.args[0] if fault.args else ""
        return said if isinstance(said, Sentence) else str(fault) or type(fault).__name__
    what = str(fault) if isinstance(fault, Blocked) else type(fault).__name__
    frames = [frame for frame in extract_tb(fault.__traceback__) if not frame.filename.startswith(OWN_FOLDERS)]
    in_job = [frame for frame in frames if frame.filename == frames[0].filename]
    if not in_job:
        return what
    return sentence("job_error", error=what, file=Path(in_job[-1].filename).name, line=in_job[-1].lineno or 0)


def reason_for_operator(fault: BaseException) -> str:
    """Return the name of the error and its text, if it can be read: that of a foreign error may itself raise."""
    name = type(fault).__name__
    try:
        return f"{name}: {fault}" if str(fault) else name
    except Exception:  # noqa: BLE001 - foreign code
        return name


BACKOFF = Backoff(timedelta(seconds=2), timedelta(hours=1))

MOST = 40
"""Failures in a row, about a day, after which a job without a period has failed."""

LEAST = 5
"""So often an iteration is tried before the next one takes its place."""

REPORTED_AFTER = timedelta(days=1)
"""The user of a job that goes on is notified once when its failures in a row have lasted so long."""


class AfterFailure(Enum):
    """The consequence of a failure. `NEXT`: the iteration is given up, and the next one begins when it is due."""

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
