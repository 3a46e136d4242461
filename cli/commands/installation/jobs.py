"""The verb jobs: without an action one process that runs the jobs of users; the actions show and control them.

The process: exit code 0 after a request to stop; units in hand are finished first. The actions work on the store.
"""

import asyncio
import logging
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from cli.client.local_times import TIMES, read_moment
from cli.client.verbs import print_all, print_result
from cli.command import FAILURE, SUCCESS, Command
from cli.commands.installation.api_keys import user_action
from cli.commands.installation.jobs_mending import (
    MENDING,
    declare_filter,
    declare_many,
    declare_mending,
    declare_positional,
    decoded,
    format_job_line,
    format_log_line,
    job_of,
    many,
    query,
    show_steps,
    shown,
    wanted_by,
)
from cli.processes.data_directory import prepare_data_directory, private_directory
from cli.processes.noted_process import noted_process
from cli.processes.startup import (
    HEALTH_FILE,
    add_healthy_option,
    collect_garbage_less_often,
    configure_logging,
    is_healthy,
    run_with_restarts,
    stop_requested,
)
from cli.processes.supervisor import announce
from cli.services.core import sending_policy_of
from cli.services.sign_in import open_sign_in
from cli.services.store import open_store
from cli.settings.settings import Configuration, load
from core.admission.actions import ActionLog
from core.jobs import Actor, Jobs, Schedule, StoredJob
from core.jobs.views import BEGIN, view_of
from core.redis.cancel_and_wait import cancel_and_wait
from core.services import open_services

log = logging.getLogger(__name__)

_GRACE = timedelta(seconds=20)
_LIMIT = 100


AddParser = Callable[..., ArgumentParser]


def declare(parser: ArgumentParser) -> None:
    add_healthy_option(parser, "process that runs jobs")
    actions = parser.add_subparsers(
        dest="action",
        metavar="list|show|start|change|signal|pause|resume|stop|log|units|resolve|reset|query|many",
        title="without one, run jobs until Ctrl-C",
    )
    for declare_some in (_declare_finding, _declare_changes, _declare_reading, declare_mending, declare_many):
        declare_some(actions.add_parser)
    for name, subparser in actions.choices.items():
        if name not in ("list", "many"):
            subparser.add_argument("job", metavar="KIND.USER", help="the job, for example hunt.42")
    declare_positional(actions.choices)
    for subparser in actions.choices.values():
        subparser.add_argument("--tenant", default="default", help="whose jobs (default)")


def _declare_finding(add_action: AddParser) -> None:
    list_parser = add_action("list", help="list jobs, and how many have each state")
    declare_filter(list_parser)
    list_parser.add_argument("--limit", type=int, default=_LIMIT, help=f"the largest number of jobs ({_LIMIT})")
    show_parser = add_action("show", help="show one job")
    show_parser.add_argument("--steps", action="store_true", help="and what its iteration has stored, in order")


def _declare_reading(add_action: AddParser) -> None:
    log_parser = add_action("log", help="show the last lines of a job's log")
    log_parser.add_argument("--limit", type=int, default=_LIMIT, help=f"the largest number of lines ({_LIMIT})")
    log_parser.add_argument("--follow", action="store_true", help="then each new line, until Ctrl-C")


def _declare_changes(add_action: AddParser) -> None:
    start_parser = add_action("start", help="start a job, or start it again after it was stopped or has failed")
    start_parser.add_argument("--parameters", metavar="JSON", help="what the job works with (as before, or {})")
    start_parser.add_argument("--timezone", help="the user's, for example Europe/Moscow (as before, or UTC)")
    start_parser.add_argument("--at", metavar="TIME", help=f"when the first iteration begins: {TIMES}")
    change_parser = add_action("change", help="change parameters, time zone or schedule of a job")
    change_parser.add_argument(
        "--parameters", default="{}", metavar="JSON", help='for example \'{"query": "cook"}\'; null removes one'
    )
    change_parser.add_argument("--timezone", help="the user's, for example Europe/Moscow")
    for some in (start_parser, change_parser):
        some.add_argument("--every", type=float, metavar="SECONDS", help="the period, in place of that of the kind")
        some.add_argument("--cron", default="", help="when iterations begin, for example '0 9 * * mon-fri'")
    signal_parser = add_action("signal", help="send a signal to a job")
    signal_parser.add_argument("--data", default="null", metavar="JSON", help="what the job gets with it (null)")
    pause_parser = add_action("pause", help="pause a job; the unit in hand is finished")
    pause_parser.add_argument("--reason", default="", help="shown to the user")
    add_action("resume", help="let a paused job go on where it was")
    stop_parser = add_action("stop", help="end a job, after its compensations; it can be started again")
    stop_parser.add_argument("--abandon", action="store_true", help="end it at once, and take nothing back")


def run(arguments: Namespace) -> int:
    configuration = load()
    if arguments.action:
        return asyncio.run(run_action(configuration, arguments))
    directory = configuration.settings.data.absolute() / "jobs"
    if arguments.healthy:
        return SUCCESS if is_healthy(directory / HEALTH_FILE) else FAILURE
    configure_logging(configuration.settings)
    prepare_data_directory(configuration.settings.data)
    private_directory(directory)
    try:
        return run_with_restarts(partial(run_jobs, configuration, directory / HEALTH_FILE))
    except (SystemExit, KeyboardInterrupt) as fault:  # of a task that a job has started: no end in order
        log.error("a job has ended this process: %r", fault)
        return FAILURE


async def run_jobs(configuration: Configuration, health_file: Path) -> int:
    """Run jobs until a request to stop."""
    from cli.services.models import open_models
    from jobs.external_services import Outside
    from jobs.notices import Notifier
    from jobs.registry import installed
    from jobs.worker import LEASE, JobWorker, watch_loop

    settings = configuration.settings
    registry = installed((settings.jobs or "").replace(",", " ").split())
    async with (
        open_store(configuration, waits=True) as store,
        noted_process(store, "jobs", healthy=health_file, data=settings.data) as process,
        open_services(store, sending_policy_of(settings)) as core,
        open_models(settings) as models,
    ):
        stop = stop_requested()
        collect_garbage_less_often()
        sign_in = await open_sign_in(store, settings)
        outside = Outside(store, sign_in.tokens if sign_in else None, models, settings.model_budget)
        notifier = Notifier(core, sign_in)
        lease = min(settings.lease, LEASE)
        worker = JobWorker(store, core.client, registry, lease=lease, outside=outside, notifier=notifier)

        def is_ready() -> None:
            announce(jobs=sorted(registry.kinds))
            process.runs()

        running = asyncio.create_task(worker.run(is_ready))
        watching = asyncio.create_task(watch_loop())
        requested = asyncio.create_task(stop.wait())
        await asyncio.wait({running, requested}, return_when=asyncio.FIRST_COMPLETED)
        worker.stop(_GRACE)
        await running
        await cancel_and_wait(requested, watching)
    return SUCCESS


async def run_action(configuration: Configuration, arguments: Namespace) -> int:
    arguments.zone = configuration.settings.timezone
    async with open_store(configuration) as store:
        if arguments.action == "query":
            return await query(store, arguments)
        if arguments.action == "many":
            return await many(Jobs(store), ActionLog(store), arguments)
        code = await ACTIONS[arguments.action](Jobs(store), arguments)
        if arguments.action in _LOGGED:
            where, reason = f":{arguments.action}", getattr(arguments, "reason", "")
            action = user_action(f"POST /v1/jobs/{{job_id}}{where}", f"/v1/jobs/{arguments.job}{where}", why=reason)
            await ActionLog(store).write(arguments.tenant, action)
        return code


async def list_jobs(jobs: Jobs, arguments: Namespace) -> int:
    """Return one line per job, also with `--json`."""
    found: list[StoredJob] = []
    cursor: str | None = None
    while cursor != "" and len(found) < arguments.limit:
        page, cursor = await jobs.list(arguments.tenant, wanted_by(arguments), cursor or "", _LIMIT)
        found += page
    for job in found[: arguments.limit]:
        print_result(arguments, view_of(job), format_job_line(job, arguments.zone))
    if not arguments.json:
        counts = await jobs.storage.counts(arguments.tenant)
        print(", ".join(f"{count} {name}" for name, count in counts.items()))
    return SUCCESS


async def show(jobs: Jobs, arguments: Namespace) -> int:
    job = await jobs.find(job_of(arguments))
    return await show_steps(jobs, arguments, job) if arguments.steps else shown(arguments, job)


async def start(jobs: Jobs, arguments: Namespace) -> int:
    given = arguments.parameters
    parameters = None if given is None else decoded("--parameters", given, dict[str, Any])
    at, schedule = read_moment("at", arguments.at, arguments.zone) if arguments.at else None, _schedule(arguments)
    zone = arguments.timezone
    job = await jobs.start(job_of(arguments), parameters, zone, Actor.ADMIN, at=at, schedule=schedule)
    return shown(arguments, job)


async def change(jobs: Jobs, arguments: Namespace) -> int:
    changes = decoded("--parameters", arguments.parameters, dict[str, Any])
    zone, schedule = arguments.timezone, _schedule(arguments)
    return shown(
        arguments, await jobs.change(job_of(arguments), changes, Actor.ADMIN, timezone=zone, schedule=schedule)
    )


async def signal(jobs: Jobs, arguments: Namespace) -> int:
    job_id = job_of(arguments)
    await jobs.signal(job_id, arguments.name, decoded("--data", arguments.data, Any), by=Actor.ADMIN)
    return shown(arguments, await jobs.find(job_id))


async def pause(jobs: Jobs, arguments: Namespace) -> int:
    return shown(arguments, await jobs.pause(job_of(arguments), Actor.ADMIN, arguments.reason))


async def resume(jobs: Jobs, arguments: Namespace) -> int:
    return shown(arguments, await jobs.resume(job_of(arguments), Actor.ADMIN))


async def stop(jobs: Jobs, arguments: Namespace) -> int:
    return shown(arguments, await jobs.stop(job_of(arguments), Actor.ADMIN, abandon=arguments.abandon))


async def show_log(jobs: Jobs, arguments: Namespace) -> int:
    job = await jobs.find(job_of(arguments))
    lines = await jobs.log.last(job.id, arguments.limit)
    print_all(arguments, lines, lambda line: format_log_line(line, arguments.zone))
    if arguments.follow:
        async for line in jobs.log.follow(job.id, lines[-1].id if lines else BEGIN):
            print_result(arguments, line, format_log_line(line, arguments.zone))
            sys.stdout.flush()
    return SUCCESS


def _schedule(arguments: Namespace) -> Schedule | None:
    if not arguments.every and not arguments.cron:
        return None
    return Schedule(timedelta(seconds=arguments.every) if arguments.every else None, cron=arguments.cron)


_LOGGED = ("start", "change", "signal", "pause", "resume", "stop", "resolve", "reset")
"""The actions that stand in the action log."""

ACTIONS: Mapping[str, Callable[[Jobs, Namespace], Awaitable[int]]] = {
    "list": list_jobs,
    "show": show,
    "start": start,
    "change": change,
    "signal": signal,
    "pause": pause,
    "resume": resume,
    "stop": stop,
    "log": show_log,
    **MENDING,
}

COMMANDS = {"jobs": Command(declare, run)}
