"""The action `many` of jobs: counts the jobs of a filter, and changes as many as were counted."""

import sys
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from cli.client.verbs import print_result
from cli.command import FAILURE, SUCCESS, WRONG_USAGE, CommandFailed
from cli.commands.installation.api_keys import user_action
from cli.commands.installation.jobs_mending import decoded
from core.admission.actions import ActionLog
from core.jobs import Actor, JobId, Jobs, JobState
from core.jobs.bulk import BulkJobs, Change, JobChanges
from core.jobs.steps import UnitOutcome, point_of
from core.jobs.views import Wanted
from core.model.text.characters import counted


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
