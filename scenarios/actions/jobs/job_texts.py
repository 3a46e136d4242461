"""Texts about jobs in a message: HTML. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from html import escape

from core.errors import Refused
from core.jobs import JobState, StoredJob
from core.jobs.job_log import LogLine
from core.jobs.record import zone_of
from core.jobs.views import view_of
from scenarios.placeholders.values import as_text

NOTHING_TODAY = "Nothing was done today."
NO_JOBS = "There are no such jobs."
_LONGEST_RESULT = 1000
NOT_STARTED = "This job was not started yet."


def status(job: StoredJob) -> str:
    """Return one job: its state, why, and when it goes on, in the user's time zone."""
    view = view_of(job)
    lines = [
        f"<b>{escape(view.kind)}</b>: {_state(job)}",
        escape(view.reason or ""),
        *(f"{escape(name)}: {escape(str(value))}" for name, value in sorted(view.parameters.items())),
        f"Iterations: {view.iterations}",
        f"Result: {escape(as_text(view.result)[:_LONGEST_RESULT])}" if view.result is not None else "",
        _at("Next iteration", view.next_run, job),
        _at("Resumes", view.resumes_at, job),
    ]
    return "\n".join(line for line in lines if line)


def refusal(refused: Refused) -> str:
    """Return why an operation is refused."""
    return NOT_STARTED if refused.code == "JOB_NOT_FOUND" else refused.detail


def listed(jobs: Iterable[StoredJob], more: bool) -> str:
    """Return one line for each job, its user first."""
    lines = [f"<code>{escape(job.id.user)}</code> {escape(job.id.kind)}: {_line(job)}" for job in jobs]
    return "\n".join([*(lines or [NO_JOBS]), *(["…"] if more else [])])


def statistics(counts: Mapping[JobState, int]) -> str:
    """Return how many jobs have each state."""
    return "\n".join(f"{state}: {count}" for state, count in counts.items())


def today(job: StoredJob, lines: Sequence[LogLine], now: datetime) -> str:
    """Return what the log has of this day of the user."""
    zone = zone_of(job.record.timezone)
    times = [(line.at.astimezone(zone), line.text) for line in lines]
    found = [f"{at:%H:%M} {escape(text)}" for at, text in times if at.date() == now.astimezone(zone).date()]
    return "\n".join(found) or NOTHING_TODAY


def _line(job: StoredJob) -> str:
    return f"{_state(job)}{f', {escape(job.record.reason)}' if job.record.reason else ''}"


def _state(job: StoredJob) -> str:
    by = job.record.paused_by
    name = str(by).replace("_", "-")
    if job.record.state is JobState.PAUSED:
        return f"paused by {name}"
    return f"{job.record.state}, paused by {name}" if by else str(job.record.state)


def _at(what: str, moment: datetime | None, job: StoredJob) -> str:
    return f"{what}: {moment.astimezone(zone_of(job.record.timezone)):%d.%m.%Y %H:%M}" if moment else ""
