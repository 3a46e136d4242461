"""Controls the long-running job of a person (U-15 to U-21), and lists those of all users for administrators (U-19)."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime, tzinfo
from html import escape
from typing import Annotated

import msgspec

from core.errors import Conflict, Invalid, Refused
from core.jobs import Actor, JobId, JobRecord, JobState, StoredJob
from core.jobs.record import zone_of
from core.jobs.views import LogLine, view_of
from scenarios.actions.job_control import (
    check_admin,
    job_of,
    jobs_in_state,
    log_change,
    sign_in_address,
    sign_out,
    unless_done,
)
from scenarios.bot.data import Data
from scenarios.context import Context
from scenarios.engine import Ending, completed, failed
from scenarios.placeholders.values import as_text
from scenarios.rehearsal import RehearsedStep
from scenarios.schema import ActionType, Attributes, Own, conversion, types
from scenarios.schema.attributes import Anything, Count, Text, TextOrEmpty
from scenarios.words import LANGUAGES, in_language, sentence, why_refused

_LONGEST_RESULT = 1000
DEFAULT_LIMIT = 30
MOST_LISTED = 100
OPERATIONS = (
    *("start", "change", "pause", "resume", "stop", "signal"),
    *("status", "log", "list", "statistics", "sign_in", "sign_out"),
)
_READING = ("status", "log", "list", "statistics")
"""The operations that change nothing."""
_LOGGED = ("start", "change", "pause", "resume", "signal", "stop")
"""The operations that stand in the action log if they change the job of somebody else."""


def _parameters(value: Data, name: str, zone: tzinfo) -> Mapping[str, Data]:
    if isinstance(value, Mapping):
        return value
    if value:
        raise Invalid("FIELD_INVALID", sentence("parameters_not_mapping"), name)
    return {}


def _state(value: Data, name: str, zone: tzinfo) -> JobState | None:
    written = conversion.word(*JobState)(value, name, zone)
    return JobState(written) if written else None


class JobAttributes(Attributes, frozen=True):
    operation: Annotated[str, types.choice(*OPERATIONS), conversion.word(*OPERATIONS), Own("What to do.")] = "status"
    kind: Annotated[Text, Own("The kind of job; `list` shows all kinds without it.")] = ""
    user: Annotated[
        TextOrEmpty,
        Own(
            "Whose job: the id of a user, as `list` shows it. Without it the person's own: its id in the directory, or"
            " `CHANNEL:ADDRESS` if the directory does not know the person."
        ),
    ] = None
    parameters: Annotated[
        Mapping[str, Data],
        types.MAPPING,
        _parameters,
        Own("What the job is started with; `change`: what is changed, an empty text removes it.", may_be_empty=True),
    ] = {}
    signal: Annotated[Text, Own("`signal`: the name of the signal, as the job waits for it.")] = ""
    data: Annotated[Anything, Own("`signal`: what the job gets with it.", may_be_empty=True)] = None
    timezone: Annotated[Text, Own("The user's time zone, for example Europe/Moscow; by default the bot's.")] = ""
    reason: Annotated[Text, Own("Why the job is paused; it is shown to the user.", may_be_empty=True)] = ""
    state: Annotated[JobState | None, types.choice(*JobState), _state, Own("`list`: only jobs in this state.")] = None
    limit: Annotated[
        Count, Own(f"At most so many jobs or lines of the log, up to {MOST_LISTED}.", default=DEFAULT_LIMIT)
    ] = None
    service: Annotated[Text, Own("`sign_in`, `sign_out`: the service, as ADA_SIGN_IN names it.")] = ""

    @property
    def most(self) -> int:
        return min(self.limit or DEFAULT_LIMIT, MOST_LISTED)


async def execute(context: Context, written: JobAttributes) -> Ending:
    context.require("read" if written.operation in _READING else "manage")
    ending = await _OPERATIONS[written.operation](context, written)
    if written.operation in _LOGGED and written.user:
        await log_change(context, written.kind, written.user, written.operation, written.reason)
    return ending


def failure(refusal: Refused) -> Ending:
    """Return the ending with a text that a bot can show to the person."""
    said = sentence("job_not_started") if refusal.code == "JOB_NOT_FOUND" else why_refused(refusal)
    return failed(refusal.code, said, {"job_refusal": refusal.code})


_STATES = {"pause": JobState.PAUSED, "stop": JobState.STOPPED}


def rehearse(step: RehearsedStep, written: JobAttributes) -> Ending:
    operation, state = written.operation, _STATES.get(written.operation, JobState.RUNNING)
    language = _language(step)
    user = written.user or f"{step.channel}:{step.person}"
    by = Actor.USER if state is JobState.PAUSED else None
    record = JobRecord(state, dict(written.parameters), paused_by=by, reason=written.reason)
    job = StoredJob(JobId("", written.kind or "[kind]", user), record)
    match operation:
        case "sign_in":
            return completed()
        case "sign_out":
            return completed({"signed_out": True})
        case "statistics":
            return _counted({one: int(one is state) for one in JobState}, language)
        case "list":
            return completed({"text": list_text([job], more=False, language=language), "jobs_listed": 1})
        case "log":
            return _shown(step, job, in_language(sentence("nothing_done_today"), language))
    return _shown(step, job)


async def _start(context: Context, written: JobAttributes) -> Ending:
    """Start a job. A job that runs with these parameters has been started: by an earlier attempt at this step, for
    example.
    """
    services, parameters = context.services, dict(written.parameters)
    job_id, actor = await job_of(context, written.kind, written.user)
    timezone = written.timezone or str(services.timezone)
    try:
        return _shown(context, await services.core.jobs.start(job_id, parameters, timezone, actor))
    except Conflict as refusal:
        job = await unless_done(context, job_id, refusal, JobState.RUNNING)
        if job.record.parameters != parameters:
            raise
        return _shown(context, job)


async def _change(context: Context, written: JobAttributes) -> Ending:
    """Change the parameters of a job. Empty ones are removed: a placeholder of YAML has no null."""
    job_id, actor = await job_of(context, written.kind, written.user)
    changes = {name: None if value == "" else value for name, value in written.parameters.items()}
    return _shown(context, await context.services.core.jobs.change(job_id, changes, actor))


async def _pause(context: Context, written: JobAttributes) -> Ending:
    job_id, actor = await job_of(context, written.kind, written.user)
    return _shown(context, await context.services.core.jobs.pause(job_id, actor, written.reason))


async def _resume(context: Context, written: JobAttributes) -> Ending:
    job_id, actor = await job_of(context, written.kind, written.user)
    try:
        return _shown(context, await context.services.core.jobs.resume(job_id, actor))
    except Conflict as refusal:
        return _shown(context, await unless_done(context, job_id, refusal, JobState.RUNNING))


async def _signal(context: Context, written: JobAttributes) -> Ending:
    """Send a signal to a job, once for this step of the run."""
    job_id, actor = await job_of(context, written.kind, written.user)
    jobs = context.services.core.jobs
    await jobs.signal(job_id, written.signal, written.data, signal_id=context.identity, by=actor)
    return _shown(context, await jobs.find(job_id))


async def _stop(context: Context, written: JobAttributes) -> Ending:
    job_id, actor = await job_of(context, written.kind, written.user)
    try:
        return _shown(context, await context.services.core.jobs.stop(job_id, actor))
    except Conflict as refusal:
        return _shown(
            context, await unless_done(context, job_id, refusal, JobState.STOPPING, JobState.STOPPED, JobState.FINISHED)
        )


async def _status(context: Context, written: JobAttributes) -> Ending:
    job_id, _ = await job_of(context, written.kind, written.user)
    return _shown(context, await context.services.core.jobs.find(job_id))


async def _log(context: Context, written: JobAttributes) -> Ending:
    """Return the last lines of today."""
    job_id, _ = await job_of(context, written.kind, written.user)
    jobs = context.services.core.jobs
    job = await jobs.find(job_id)
    return _shown(
        context, job, log_text(job, await jobs.log.last(job_id, written.most), jobs.now(), _language(context))
    )


async def _list(context: Context, written: JobAttributes) -> Ending:
    await check_admin(context)
    jobs, more = await jobs_in_state(context, written.state, written.kind, written.most)
    return completed({"text": list_text(jobs, more, _language(context)), "jobs_listed": len(jobs)})


async def _statistics(context: Context, written: JobAttributes) -> Ending:
    await check_admin(context)
    counts = await context.services.core.jobs.storage.counts(context.services.tenant)
    return _counted(counts, _language(context))


async def _sign_in(context: Context, written: JobAttributes) -> Ending:
    """Fails with `sign_in_url` if the person has to sign in first."""
    if address := await sign_in_address(context, written.service):
        return failed("SIGN_IN_NEEDED", sentence("sign_first", service=written.service), {"sign_in_url": address})
    return completed()


async def _sign_out(context: Context, written: JobAttributes) -> Ending:
    """Sign the person out; complete also if it was not signed in."""
    return completed({"signed_out": await sign_out(context, written.user, written.service)})


def _language(on: Context | RehearsedStep) -> str:
    """Return the language of the person of the event."""
    return on.step.language(on.event) or LANGUAGES[0]


def _shown(on: Context | RehearsedStep, job: StoredJob, text: str = "") -> Ending:
    """Return a job and a text about it, by default its status."""
    record, by = job.record, str(job.record.paused_by or "")
    about = {"job_user": job.id.user, "job_state": str(record.state), "job_paused_by": by, "job_reason": record.reason}
    found = {**about, "job_result": msgspec.json.decode(record.result), "text": text or status_text(job, _language(on))}
    return completed(found, from_person=["job_reason", "job_result"])


def _counted(counts: Mapping[JobState, int], language: str) -> Ending:
    numbers = {f"jobs_{state}": count for state, count in counts.items()}
    return completed({"text": statistics_text(counts, language), **numbers})


_OPERATIONS: Mapping[str, Callable[[Context, JobAttributes], Awaitable[Ending]]] = {
    "start": _start,
    "change": _change,
    "pause": _pause,
    "resume": _resume,
    "stop": _stop,
    "signal": _signal,
    "status": _status,
    "log": _log,
    "list": _list,
    "statistics": _statistics,
    "sign_in": _sign_in,
    "sign_out": _sign_out,
}


def status_text(job: StoredJob, language: str) -> str:
    """Return one job: its state, why, and when it goes on, in the user's time zone."""
    view = view_of(job)
    lines = [
        f"<b>{escape(view.kind)}</b>: {_state_text(job, language)}",
        escape(view.reason or ""),
        *(f"{escape(name)}: {escape(str(value))}" for name, value in sorted(view.parameters.items())),
        sentence("job_iterations", count=view.iterations),
        "" if view.result is None else sentence("job_result", result=escape(as_text(view.result)[:_LONGEST_RESULT])),
        sentence("job_next_iteration", at=_at(view.next_run, job)) if view.next_run else "",
        sentence("job_resumes", at=_at(view.resumes_at, job)) if view.resumes_at else "",
    ]
    return "\n".join(in_language(line, language) for line in lines if line)


def list_text(jobs: Iterable[StoredJob], more: bool, language: str) -> str:
    """Return one line for each job, its user first."""
    lines = [f"<code>{escape(job.id.user)}</code> {escape(job.id.kind)}: {_line_text(job, language)}" for job in jobs]
    return "\n".join([*(lines or [in_language(sentence("no_such_jobs"), language)]), *(["…"] if more else [])])


def statistics_text(counts: Mapping[JobState, int], language: str) -> str:
    """Return how many jobs have each state."""
    return "\n".join(f"{_state_word(state, language)}: {count}" for state, count in counts.items())


def log_text(job: StoredJob, lines: Sequence[LogLine], now: datetime, language: str) -> str:
    """Return what the log has of this day of the user."""
    zone = zone_of(job.record.timezone)
    times = [(line.at.astimezone(zone), line.text) for line in lines]
    found = [f"{at:%H:%M} {escape(text)}" for at, text in times if at.date() == now.astimezone(zone).date()]
    return "\n".join(found) or in_language(sentence("nothing_done_today"), language)


def _line_text(job: StoredJob, language: str) -> str:
    return f"{_state_text(job, language)}{f', {escape(job.record.reason)}' if job.record.reason else ''}"


def _state_text(job: StoredJob, language: str) -> str:
    """Return the state of a job, and by whom it was paused."""
    by = in_language(sentence(f"job_paused_by_{job.record.paused_by}"), language) if job.record.paused_by else ""
    if by and job.record.state is JobState.PAUSED:
        return by
    return ", ".join(filter(None, (_state_word(job.record.state, language), by)))


def _state_word(state: JobState, language: str) -> str:
    return in_language(sentence(f"job_state_{state}"), language)


def _at(moment: datetime, job: StoredJob) -> str:
    return f"{moment.astimezone(zone_of(job.record.timezone)):%d.%m.%Y %H:%M}"


ACTION = ActionType(
    name="job",
    help="Controls the long-running job of the person (docs/jobs.md). `list`, `statistics` and jobs of other users are"
    " for people with the role `admin`, whatever the bot's files say. `log` is what was done today. `sign_in` completes"
    " if the person has signed in to the service; otherwise it fails and returns `sign_in_url`. `sign_out` signs out.",
    attributes=JobAttributes,
    placeholder=True,
    with_failure=("sign_in_url",),
    returns={
        "text": "the job, the log or the list in HTML; it replaces the text of the next `send`",
        "job_user": "whose job it is",
        "job_state": "`running`, `paused`, `stopping`, `stopped`, `finished` or `failed`",
        "job_paused_by": "`limit`, `sign_in`, `user` or `admin`, if it is paused",
        "job_reason": "why it does not run",
        "job_result": "what a job that has finished has returned",
        "job_refusal": "the same as `code`, for example `JOB_NOT_FOUND`",
        **{f"jobs_{state}": f"`statistics`: how many jobs are {state}" for state in JobState},
        "jobs_listed": "`list`: how many jobs are listed",
        "sign_in_url": "`sign_in`: the address at which the person signs in, for ten minutes and once",
        "signed_out": "`sign_out`: whether the person was signed in",
    },
    outside=lambda written: written.operation in ("sign_in", "sign_out"),
    execute=execute,
    rehearse=rehearse,
    failure=failure,
)
