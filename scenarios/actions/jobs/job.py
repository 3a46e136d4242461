"""Controls the long-running job of a person (U-15 to U-21), and lists those of all users for administrators (U-19)."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from core.errors import Conflict, Invalid, Refused
from core.jobs import JobState, StoredJob
from scenarios.actions.jobs import job_texts
from scenarios.actions.jobs.jobs_of_people import (
    check_admin,
    job_of,
    jobs_in_state,
    sign_in_address,
    sign_out,
    unless_done,
)
from scenarios.context import Context
from scenarios.context.arguments import count_of, text_of
from scenarios.engine import Ending, State, Values
from scenarios.engine.results import completed
from scenarios.schema import ActionType, Field, types

DEFAULT_LIMIT = 30
MOST_LISTED = 100


async def execute(context: Context) -> Ending:
    """Run the action; a refusal is a failure, whose text a bot can show to the person."""
    operation = text_of(context.prepared.own, "operation") or "status"
    try:
        if operation not in _OPERATIONS:
            raise Invalid("FIELD_INVALID", f"operation: {operation!r} is none of {', '.join(_OPERATIONS)}", "operation")
        context.require("read" if operation in _READING else "manage")
        return await _OPERATIONS[operation](context)
    except Refused as refusal:
        return Ending(State.FAILED, Values({"job_refusal": refusal.code}), job_texts.refusal(refusal))


async def _start(context: Context) -> Ending:
    """Start a job. A job that runs with these parameters has been started: by an earlier attempt at this step, for
    example.
    """
    own, services = context.prepared.own, context.services
    job_id, actor = await job_of(context)
    parameters = _parameters(own)
    timezone = text_of(own, "timezone") or str(services.timezone)
    try:
        return _shown(await services.core.jobs.start(job_id, parameters, timezone, actor))
    except Conflict as refusal:
        job = await unless_done(context, job_id, refusal, JobState.RUNNING)
        if job.record.parameters != parameters:
            raise
        return _shown(job)


async def _change(context: Context) -> Ending:
    """Change the parameters of a job. Empty ones are removed: a placeholder of YAML has no null."""
    job_id, actor = await job_of(context)
    changes = {name: None if value == "" else value for name, value in _parameters(context.prepared.own).items()}
    return _shown(await context.services.core.jobs.change(job_id, changes, actor))


async def _pause(context: Context) -> Ending:
    job_id, actor = await job_of(context)
    return _shown(await context.services.core.jobs.pause(job_id, actor, text_of(context.prepared.own, "reason")))


async def _resume(context: Context) -> Ending:
    job_id, actor = await job_of(context)
    try:
        return _shown(await context.services.core.jobs.resume(job_id, actor))
    except Conflict as refusal:
        return _shown(await unless_done(context, job_id, refusal, JobState.RUNNING))


async def _signal(context: Context) -> Ending:
    """Send a signal to a job, once for this step of the run."""
    job_id, actor = await job_of(context)
    own, jobs = context.prepared.own, context.services.core.jobs
    await jobs.signal(job_id, text_of(own, "signal"), own.get("data"), signal_id=context.identity, by=actor)
    return _shown(await jobs.find(job_id))


async def _stop(context: Context) -> Ending:
    job_id, actor = await job_of(context)
    try:
        return _shown(await context.services.core.jobs.stop(job_id, actor))
    except Conflict as refusal:
        return _shown(
            await unless_done(context, job_id, refusal, JobState.STOPPING, JobState.STOPPED, JobState.FINISHED)
        )


async def _status(context: Context) -> Ending:
    job_id, _ = await job_of(context)
    return _shown(await context.services.core.jobs.find(job_id))


async def _log(context: Context) -> Ending:
    """Return the last lines of today."""
    job_id, _ = await job_of(context)
    jobs = context.services.core.jobs
    job = await jobs.find(job_id)
    text = job_texts.today(job, await jobs.log.last(job_id, _limit(context)), jobs.now())
    return completed({**_results(job), "text": text}, from_person=["job_reason"])


async def _list(context: Context) -> Ending:
    await check_admin(context)
    own = context.prepared.own
    jobs, more = await jobs_in_state(context, _state(own), text_of(own, "kind"), _limit(context))
    return completed({"text": job_texts.listed(jobs, more), "jobs_listed": len(jobs)})


async def _statistics(context: Context) -> Ending:
    await check_admin(context)
    counts = await context.services.core.jobs.storage.counts(context.services.tenant)
    numbers = {f"jobs_{state}": count for state, count in counts.items()}
    return completed({"text": job_texts.statistics(counts), **numbers})


async def _sign_in(context: Context) -> Ending:
    """Fails with `sign_in_url` if the person has to sign in first."""
    service = text_of(context.prepared.own, "service")
    if address := await sign_in_address(context, service):
        return Ending(State.FAILED, Values({"sign_in_url": address}), f"Sign in to {service} first.")
    return completed()


async def _sign_out(context: Context) -> Ending:
    """Sign the person out; complete also if it was not signed in."""
    return completed({"signed_out": await sign_out(context, text_of(context.prepared.own, "service"))})


def _shown(job: StoredJob) -> Ending:
    return completed({**_results(job), "text": job_texts.status(job)}, from_person=["job_reason"])


def _results(job: StoredJob) -> Mapping[str, Any]:
    record = job.record
    by = str(record.paused_by) if record.paused_by else ""
    return {"job_user": job.id.user, "job_state": str(record.state), "job_paused_by": by, "job_reason": record.reason}


def _parameters(own: Mapping[str, Any]) -> dict[str, Any]:
    given = own.get("parameters") or {}
    if not isinstance(given, Mapping):
        raise Invalid("FIELD_INVALID", "parameters: it is not a mapping", "parameters")
    return dict(given)


def _state(own: Mapping[str, Any]) -> JobState | None:
    written = text_of(own, "state")
    if written and written not in list(JobState):
        raise Invalid("FIELD_INVALID", f"state: {written!r} is none of {', '.join(JobState)}", "state")
    return JobState(written) if written else None


def _limit(context: Context) -> int:
    return min(count_of(context.prepared.own, "limit") or DEFAULT_LIMIT, MOST_LISTED)


_OPERATIONS: Mapping[str, Callable[[Context], Awaitable[Ending]]] = {
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

_READING = ("status", "log", "list", "statistics")
"""The operations that change nothing."""

ACTION = ActionType(
    name="job",
    help="Controls the long-running job of the person (docs/jobs.md). `list`, `statistics` and jobs of other users are"
    " for people with the role `admin`, whatever the bot's files say. `log` is what was done today. `sign_in` completes"
    " if the person has signed in to the service; otherwise it fails and returns `sign_in_url`. `sign_out` signs out.",
    placeholder=True,
    fields=(
        Field("operation", types.choice(*_OPERATIONS), "What to do.", default="status"),
        Field("kind", types.TEXT, "The kind of job; `list` shows all kinds without it."),
        Field(
            "user",
            types.TEXT,
            "Whose job: the id of a user, as `list` shows it. Without it the person's own: its id in the directory, or"
            " `CHANNEL:ADDRESS` if the directory does not know the person.",
        ),
        Field(
            "parameters",
            types.MAPPING,
            "What the job is started with; `change`: what is changed, an empty text removes it.",
        ),
        Field("signal", types.TEXT, "`signal`: the name of the signal, as the job waits for it."),
        Field("data", types.ANY, "`signal`: what the job gets with it."),
        Field("timezone", types.TEXT, "The user's time zone, for example Europe/Moscow; by default the bot's."),
        Field("reason", types.TEXT, "Why the job is paused; it is shown to the user."),
        Field("state", types.choice(*JobState), "`list`: only jobs in this state."),
        Field(
            "limit",
            types.WHOLE,
            f"At most so many jobs or lines of the log, up to {MOST_LISTED}.",
            default=DEFAULT_LIMIT,
        ),
        Field("service", types.TEXT, "`sign_in`, `sign_out`: the service, as ADA_SIGN_IN names it."),
    ),
    returns={
        "text": "the job, the log or the list in HTML; it replaces the text of the next `send`",
        "job_user": "whose job it is",
        "job_state": "`running`, `paused`, `stopping`, `stopped`, `finished` or `failed`",
        "job_paused_by": "`limit`, `sign_in`, `user` or `admin`, if it is paused",
        "job_reason": "why it does not run",
        "job_refusal": "the code of the error, for example `JOB_NOT_FOUND`",
        **{f"jobs_{state}": f"`statistics`: how many jobs are {state}" for state in JobState},
        "jobs_listed": "`list`: how many jobs are listed",
        "sign_in_url": "`sign_in`: the address at which the person signs in, for ten minutes and once",
        "signed_out": "`sign_out`: whether the person was signed in",
    },
    execute=execute,
)
