"""The actions of `jobs` that look into jobs and mend them; and what all its actions have in common: the
filter, and jobs as text for people.

`many` counts the jobs of a filter, and changes as many as were counted.
"""

import sys
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import tzinfo
from typing import Any

import msgspec

from cli.client.local_times import shown_moment
from cli.client.verbs import print_result, print_stream
from cli.command import FAILURE, SUCCESS, WRONG_USAGE, CommandFailed
from cli.commands.installation.api_keys import user_action
from core.admission.actions import ActionLog
from core.errors import Invalid
from core.jobs import Actor, JobId, Jobs, JobState, StoredJob
from core.jobs.bulk import BulkJobs, Change, JobChanges
from core.jobs.queries import ask
from core.jobs.steps import ResetPlan, StepView, UnitOutcome, UnitStatus, UnitView, point_of
from core.jobs.views import JobView, LogLine, Wanted, view_of
from core.model.json_form import compact_json
from core.model.text.characters import counted
from core.queue import QueueClient
from core.redis.store import Store

_LIMIT = 100


def declare_mending(add_action: Callable[..., ArgumentParser]) -> None:
    units_parser = add_action("units", help="list what became of a job's items, effects and steps")
    units_parser.add_argument("--status", choices=list(UnitStatus), help="only those with this status")
    units_parser.add_argument("--limit", type=int, default=_LIMIT, help=f"the largest number of units ({_LIMIT})")
    resolve_parser = add_action("resolve", help="say what became of something unknown")
    resolve_parser.add_argument("--result", default="null", metavar="JSON", help="what a done effect returns (null)")
    query_parser = add_action("query", help="ask a job something; a process that has its code answers")
    query_parser.add_argument("--param", action="append", default=[], metavar="NAME=VALUE", help="JSON, or a text")
    reset_parser = add_action("reset", help="repeat an iteration from a step, or forget one unit or effect")
    reset_parser.add_argument(
        "--from", dest="from_", metavar="STEP", help="repeat from here; effects keep their results"
    )
    reset_parser.add_argument("--again", action="store_true", help="do the effects and items from there on again, too")
    reset_parser.add_argument("--dry-run", action="store_true", help="show what is dropped and what stays")


def declare_positional(actions: Mapping[str, ArgumentParser]) -> None:
    """Declare what stands after the name of the job."""
    actions["signal"].add_argument("name", help="as the job waits for it")
    actions["query"].add_argument("name", help="as the class of the job declares it")
    actions["resolve"].add_argument("unit", help="as `units` shows it, for example 'effect:apply 7'")
    actions["resolve"].add_argument("outcome", choices=("done", "not-done"), help="did it take place?")
    actions["reset"].add_argument(
        "unit", nargs="?", help="as `units` shows it; it is done again, whatever became of it"
    )


async def show_steps(jobs: Jobs, arguments: Namespace, job: StoredJob) -> int:
    """Return the facts, and one line per result; with `--json` only the lines."""
    if not arguments.json:
        shown(arguments, job)
    cursor: str | None = None
    while cursor != "":
        steps, cursor = await jobs.steps.page(job.id, cursor or "", _LIMIT)
        for step in steps:
            print_result(arguments, step, format_step(step, arguments.zone))
    return SUCCESS


async def query(store: Store, arguments: Namespace) -> int:
    """Return the answer as JSON."""
    client, parameters = QueueClient(store), dict(map(_parameter, arguments.param))
    try:
        answer = await ask(client, Jobs(store), job_of(arguments), arguments.name, parameters)
    finally:
        await client.close()
    return print_result(arguments, answer, compact_json(answer))


def _parameter(text: str) -> tuple[str, Any]:
    """Read `NAME=VALUE`; a value that is no JSON is a text."""
    name, equals, value = text.partition("=")
    if not equals:
        raise CommandFailed(f"--param needs NAME=VALUE, and not {text!r}", WRONG_USAGE)
    try:
        return name, msgspec.json.decode(value)
    except msgspec.DecodeError:
        return name, value


async def list_units(jobs: Jobs, arguments: Namespace) -> int:
    """Return one line per unit or effect, also with `--json`."""
    units = units_of(jobs, await jobs.find(job_of(arguments)), arguments)
    return await print_stream(arguments, units, lambda unit: format_unit(unit, arguments.zone))


async def units_of(jobs: Jobs, job: StoredJob, arguments: Namespace) -> AsyncIterator[UnitView]:
    status = UnitStatus(arguments.status) if arguments.status else None
    left, cursor = arguments.limit, None
    while cursor != "" and left > 0:
        units, cursor = await jobs.units.page(job.id, status, cursor or "", _LIMIT)
        for unit in units[:left]:
            yield unit
        left -= len(units)


async def resolve(jobs: Jobs, arguments: Namespace) -> int:
    job, outcome = await jobs.find(job_of(arguments)), UnitOutcome(arguments.outcome.replace("-", "_"))
    await jobs.units.resolve(job.id, arguments.unit, outcome, decoded("--result", arguments.result, Any))
    return shown(arguments, job)


async def reset(jobs: Jobs, arguments: Namespace) -> int:
    job = await jobs.find(job_of(arguments))
    if (arguments.unit is None) == (arguments.from_ is None):
        raise CommandFailed("reset needs a unit, or --from STEP", WRONG_USAGE)
    if arguments.unit is not None:
        await jobs.units.reset(job.id, arguments.unit)
        return shown(arguments, job)
    point = point_of(arguments.from_, again=arguments.again)
    plan = await jobs.steps.plan(job.id, point)
    if not arguments.dry_run:
        await jobs.reset(job.id, point, Actor.ADMIN)
    return print_result(arguments, plan, format_plan(plan, is_dry=arguments.dry_run))


def shown(arguments: Namespace, job: StoredJob) -> int:
    return print_result(arguments, view_of(job), format_job(job, arguments.zone))


def decoded(option: str, text: str, type_: Any) -> Any:
    """Read parameters written as JSON. Raises Invalid PARAMETERS_MALFORMED."""
    try:
        return msgspec.json.decode(text, type=type_)
    except msgspec.DecodeError as fault:
        wanted = "JSON" if type_ is Any else "a JSON object"
        raise Invalid("PARAMETERS_MALFORMED", f"{option} is not {wanted}: {fault}") from None


def job_of(arguments: Namespace) -> JobId:
    return JobId.parse(arguments.tenant, arguments.job)


MENDING: Mapping[str, Callable[[Jobs, Namespace], Awaitable[int]]] = {
    "units": list_units,
    "resolve": resolve,
    "reset": reset,
}


def declare_filter(parser: ArgumentParser) -> None:
    parser.add_argument("--state", choices=list(JobState), help="only jobs in this state")
    parser.add_argument("--kind", default="", help="only jobs of this kind")
    parser.add_argument("--search", default="", metavar="TEXT", help="with this in the parameters or own state")
    parser.add_argument("--why", default="", metavar="TEXT", help="with this in the reason why they do not run")


def declare_many(add_action: Callable[..., ArgumentParser]) -> None:
    parser = add_action("many", help="count the jobs of a filter, and change as many as were counted")
    parser.add_argument("verb", choices=list(_VERBS), help="what is done to each")
    declare_filter(parser)
    parser.add_argument("--expected", type=int, metavar="N", help="change them: as many as were counted")
    parser.add_argument("--before", type=int, default=0, metavar="MS", help="only those that have not changed since")
    parser.add_argument("--reason", default="", help="of a stop or a pause; shown to the user")
    parser.add_argument("--abandon", action="store_true", help="stop: at once, and take nothing back")
    parser.add_argument("--from", dest="from_", default="", metavar="STEP", help="reset: the step from which")
    parser.add_argument("--again", action="store_true", help="reset: effects and items from there on, too")
    parser.add_argument("--unit", default="", help="resolve: all that is unknown and begins so, as 'effect:apply'")
    parser.add_argument("--outcome", choices=("done", "not-done"), help="resolve: did it take place?")
    parser.add_argument("--result", default="null", metavar="JSON", help="resolve: what a done effect returns (null)")


def wanted_by(arguments: Namespace) -> Wanted:
    state = JobState(arguments.state) if arguments.state else None
    return Wanted(state, arguments.kind, arguments.search, arguments.why)


async def many(jobs: Jobs, log: ActionLog, arguments: Namespace) -> int:
    """Return how many jobs there are; with `--expected`, change them if they are still as many."""
    change, selected = _VERBS[arguments.verb](jobs, arguments), BulkJobs(jobs, arguments.tenant, wanted_by(arguments))
    found = await selected.count(arguments.before)
    number = f"{'more than ' if found.has_more else ''}{counted(found.count, 'job')}"
    if arguments.expected is None:
        again = f"--expected {found.count} --before {arguments.before or found.now}"
        return print_result(arguments, found, f"{number}; to {arguments.verb} them, add: {again}")
    if found.count != arguments.expected and not found.has_more:
        raise CommandFailed(f"{number} and not {arguments.expected}: nothing was changed")
    return await _change(selected, change, log, arguments, arguments.before or found.now)


async def _change(selected: BulkJobs, change: Change, log: ActionLog, arguments: Namespace, before: int) -> int:
    """Change jobs page after page. Whatever ends it, what was done is shown."""
    ends, cursor = Counter[str](), ""
    try:
        while True:
            page = await selected.change(change, before, arguments.expected - ends["changed"], cursor)
            ends.update({"changed": page.changed, "unchanged": page.unchanged, **page.refused})
            if page.next is None:
                break
            cursor = page.next
    finally:
        changed, unchanged = ends.pop("changed", 0), ends.pop("unchanged", 0)
        done = JobChanges(changed, unchanged, dict(ends), cursor or None)
        print_result(arguments, done, _text(done))
        sys.stdout.flush()
        await _log(log, arguments, changed)
    return FAILURE if ends else SUCCESS


async def _log(log: ActionLog, arguments: Namespace, count: int) -> None:
    """Write the change to the action log: one entry, whatever its number of steps."""
    given = {"state": arguments.state, "kind": arguments.kind, "q": arguments.search, "reason": arguments.why}
    selected = " ".join(f"{name}={value}" for name, value in given.items() if value)
    address = f"/v1/jobs:{arguments.verb}"
    await log.write(arguments.tenant, user_action(f"POST {address}", address, count, arguments.reason, selected))


def _text(done: JobChanges) -> str:
    facts = [f"{counted(done.changed, 'job')} changed"]
    facts += [f"{done.unchanged} unchanged"] if done.unchanged else []
    return ", ".join([*facts, *(f"{count} refused: {code}" for code, count in sorted(done.refused.items()))])


def _pause(jobs: Jobs, arguments: Namespace) -> Change:
    return lambda job: jobs.pause(job, Actor.ADMIN, arguments.reason)


def _resume(jobs: Jobs, arguments: Namespace) -> Change:
    return lambda job: jobs.resume(job, Actor.ADMIN)


def _stop(jobs: Jobs, arguments: Namespace) -> Change:
    return lambda job: jobs.stop(job, Actor.ADMIN, arguments.reason, abandon=arguments.abandon)


def _reset(jobs: Jobs, arguments: Namespace) -> Change:
    point = point_of(arguments.from_, again=arguments.again)
    return lambda job: jobs.reset(job, point, Actor.ADMIN)


def _resolve(jobs: Jobs, arguments: Namespace) -> Change:
    if not arguments.unit or not arguments.outcome:
        raise CommandFailed("resolve needs --unit and --outcome", WRONG_USAGE)
    outcome, result = UnitOutcome(arguments.outcome.replace("-", "_")), decoded("--result", arguments.result, Any)

    async def resolved(job: JobId) -> bool:
        return await jobs.units.resolve_all(job, arguments.unit, outcome, result) > 0

    return resolved


_VERBS: Mapping[str, Callable[[Jobs, Namespace], Change]] = {
    "pause": _pause,
    "resume": _resume,
    "stop": _stop,
    "reset": _reset,
    "resolve": _resolve,
}


def format_job(job: StoredJob, zone: tzinfo) -> str:
    """Return all facts, one per line."""
    view = view_of(job)
    facts = {
        "job": view.id,
        "state": _state(view),
        "iterations": view.iterations,
        "created": shown_moment(view.created_at, zone),
        "last run": shown_moment(view.last_run, zone),
        "next run": shown_moment(view.next_run or view.resumes_at, zone),
        "waits for": view.waits_for,
        "time zone": view.timezone,
        "schedule": compact_json(view.schedule) if view.schedule else "",
        "parameters": compact_json(view.parameters) if view.parameters else "",
        "own state": compact_json(view.own_state) if view.own_state is not None else "",
        "result": _result(view),
        "parent": view.parent,
        "children": ", ".join(view.children),
    }
    return "\n".join(f"{name + ':':<12} {value}" for name, value in facts.items() if value not in ("", None))


def format_job_line(job: StoredJob, zone: tzinfo) -> str:
    view = view_of(job)
    following = shown_moment(view.next_run or view.resumes_at, zone) or "-"
    runs = counted(view.iterations, "run")
    return f"{view.id:<30} {_by(view):<20} {runs:>11}, next {following:<25}  {view.reason or _result(view)}".rstrip()


def format_log_line(line: LogLine, zone: tzinfo) -> str:
    return f"{shown_moment(line.at, zone)}  {line.text}"


def format_unit(unit: UnitView, zone: tzinfo) -> str:
    facts = [unit.reason, f"result {compact_json(unit.result)}" if unit.result is not None else None]
    details = "; ".join(fact for fact in facts if fact)
    at = shown_moment(unit.at, zone) or "-"
    return f"{unit.id:<30} {unit.status:<8} {at:<25}  iteration {unit.iteration}  {details}".rstrip()


def format_step(step: StepView, zone: tzinfo) -> str:
    facts = [step.reason, f"result {compact_json(step.result)}" if step.result is not None else None]
    details = "; ".join(fact for fact in facts if fact)
    return f"{step.id:<30} {step.status:<9} {shown_moment(step.at, zone):<25}  {details}".rstrip()


def format_plan(plan: ResetPlan, *, is_dry: bool) -> str:
    """Return what a reset drops and what stays, one per line."""
    dropped, kept = ("would be dropped", "would stay") if is_dry else ("dropped", "stays")
    lines = [f"{dropped}: {step.id}" for step in plan.dropped] + [
        f"{kept}: {step.id} ({step.status})" for step in plan.kept
    ]
    return "\n".join(lines)


def _state(view: JobView) -> str:
    return _by(view) + (f": {view.reason}" if view.reason else "")


def _result(view: JobView) -> str:
    return compact_json(view.result) if view.result is not None else ""


def _by(view: JobView) -> str:
    if view.state is JobState.PAUSED:
        return f"paused by {view.paused_by}"
    return f"{view.state}, paused by {view.paused_by}" if view.paused_by else str(view.state)
