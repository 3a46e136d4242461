"""The verb queue, for operators: shows what is in the queue and changes it. Works on the store, not over HTTP."""

import asyncio
from argparse import ArgumentParser, Namespace
from collections.abc import Awaitable, Callable, Iterator, Mapping
from getpass import getuser
from typing import Any

import msgspec

from cli.client.format_matters import format_remedy
from cli.client.local_times import format_span
from cli.client.verbs import print_all, print_result
from cli.command import FAILURE, SUCCESS, WRONG_USAGE, Command, CommandFailed
from cli.commands.installation.api_keys import user_action
from cli.services.store import open_store
from cli.settings.settings import load
from core.admission.actions import MAX_REASON, ActionLog
from core.model.text.characters import counted
from core.monitoring import Lanes, check_tube
from core.monitoring.overview import matters_of
from core.queue import Queue, QueueStats, TaskFilter, TaskView, Tubes
from core.redis.store import Store
from core.webhooks.webhook import TUBE as WEBHOOKS

_STATES = ("waiting", "ready", "locked", "taken", "buried")
_ENDS = ("done", "failed", "cancelled", "expired")
_LABELS = ("tube", "tenant", "lane", "kind", "user")
_SHOWN = ("overdue", "unserved", "webhook", "paused", "throttled")
"""The matters that say why tasks wait."""

_FIELDS = ("user", "tenant", "lane", "kind", "tag", "tube", "state")
_LIMIT, _LANES = 100, 20


def format_stats(stats: QueueStats) -> str:
    """Return a table with one line per tube; a state or end in which no tube has a task has no column."""
    tubes = stats.tubes
    if not tubes:
        return "there is no tube"
    columns = {name: [str(getattr(tube.states, name)) for tube in tubes.values()] for name in _STATES}
    columns |= {name: [str(getattr(tube, name)) for tube in tubes.values()] for name in _ENDS}
    columns = {name: cells for name, cells in columns.items() if name == "ready" or set(cells) != {"0"}}
    columns["oldest"] = [format_span(tube.oldest_ms) for tube in tubes.values()]
    columns["lag"] = [format_span(tube.lag_ms) for tube in tubes.values()]
    widths = {name: max(len(name), *map(len, cells)) for name, cells in columns.items()}
    names = max(map(len, (*tubes, "tube")))
    rows = [{name: cells[row] for name, cells in columns.items()} for row in range(len(tubes))]
    heads = {name: name for name in widths}
    lines = [
        f"{tube:<{names}}" + "".join(f"  {cells[name]:>{width}}" for name, width in widths.items())
        for tube, cells in (("tube", heads), *zip(tubes, rows, strict=True))
    ]
    return "\n".join(lines)


def format_task_line(task: TaskView) -> str:
    behind = f" behind {task.waits_for}" if task.waits_for else ""
    labels = " ".join(f"{name}={getattr(task, name)}" for name in _LABELS if getattr(task, name) is not None)
    return f"{task.id}  {task.state}{behind}  {labels}"


def format_task(task: TaskView) -> str:
    """Return all fields of a task, one per line."""
    return "\n".join(_field_lines(task))


def _field_lines(task: TaskView) -> Iterator[str]:
    for name, value in msgspec.to_builtins(task).items():
        yield f"{name:<11} {', '.join(value) if isinstance(value, list) else value}"


def declare(parser: ArgumentParser) -> None:
    verbs = parser.add_subparsers(
        dest="action", required=True, metavar="stats|list|lanes|peek|kick|bury|purge|cancel|pause|resume", title="verbs"
    )
    stats_parser = verbs.add_parser("stats", help="show how many tasks each tube has in each state")
    stats_parser.add_argument("tube", nargs="?", help="only this tube")
    list_parser = verbs.add_parser("list", help="list the first tasks that match all given options")
    list_parser.add_argument("--limit", type=int, default=_LIMIT, help=f"the largest number of tasks ({_LIMIT})")
    lanes_parser = verbs.add_parser("lanes", help="list the longest lanes")
    lanes_parser.add_argument("tube", nargs="?", default="", help="only of this tube")
    lanes_parser.add_argument("--limit", type=int, default=_LANES, help=f"how many ({_LANES})")
    peek_parser = verbs.add_parser("peek", help="show one task; changes nothing")
    bury_parser = verbs.add_parser("bury", help="set a task aside until it is kicked")
    kick_parser = verbs.add_parser("kick", help="make a buried task ready again, or the first N of a tube")
    kick_parser.add_argument("--tube", help="kick tasks of this tube, the first buried ones first")
    kick_parser.add_argument("--count", type=int, default=1, metavar="N", help="how many tasks of the tube (1)")
    purge_parser = verbs.add_parser("purge", help="delete ended tasks that are still kept")
    purge_parser.add_argument("--tube", default="", help="only this tube")
    cancel_parser = verbs.add_parser("cancel", help="cancel one task, or all tasks that match all given options")
    pause_parser = verbs.add_parser("pause", help="let no task of a tube be claimed until it is resumed")
    resume_parser = verbs.add_parser("resume", help="let the tasks of a paused tube be claimed again")
    for subparser in (pause_parser, resume_parser):
        subparser.add_argument("tube")
    for subparser in (bury_parser, kick_parser, purge_parser, cancel_parser, pause_parser, resume_parser):
        subparser.add_argument("--reason", default="", help="why, for the action log and other operators")
    for subparser in (peek_parser, bury_parser):
        subparser.add_argument("id")
    for subparser in (kick_parser, cancel_parser):
        subparser.add_argument("id", nargs="?")
    for subparser in (list_parser, cancel_parser):
        declare_filter(subparser)


def declare_filter(parser: ArgumentParser) -> None:
    for field in _FIELDS:
        parser.add_argument(f"--{field}", default="", help="a prefix of the kind" if field == "kind" else None)


def run(arguments: Namespace) -> int:
    return asyncio.run(run_action(arguments))


async def run_action(arguments: Namespace) -> int:
    configuration = load()
    arguments.zone = configuration.settings.timezone
    async with open_store(configuration) as store:
        if tube := getattr(arguments, "tube", None):
            await check_tube(store, tube)
        if arguments.action == "stats":
            return await stats(store, arguments)
        if arguments.action == "lanes":
            return await list_lanes(Queue(store), store, arguments)
        if arguments.action in READING:
            return await READING[arguments.action](Queue(store), arguments)
        if arguments.action in TUBE_CHANGES:
            count = int(await TUBE_CHANGES[arguments.action](Tubes(store), arguments))
        else:
            count = await CHANGES[arguments.action](Queue(store), arguments)
        if count:
            await log_change(store, arguments, count)
        return SUCCESS if count or arguments.action == "purge" else FAILURE


async def log_change(store: Store, arguments: Namespace, count: int) -> None:
    """Write a change to the action log of the tenant that was named, else of `default`, as the API would."""
    task, tube = getattr(arguments, "id", None), getattr(arguments, "tube", None)
    if arguments.action in TUBE_CHANGES:
        what, target = "tubes/{tube}", f"tubes/{tube}"
    else:
        what, target = ("tasks/{task_id}", f"tasks/{task}") if task else ("tasks", "tasks")
    given = [] if task else [(name, getattr(arguments, name, "")) for name in _FIELDS]
    selected = " ".join(f"{name}={value}" for name, value in given if value)
    addresses = [f"/v1/queue/{one}:{arguments.action}" for one in (what, target)]
    action = user_action(f"POST {addresses[0]}", addresses[1], count, arguments.reason[:MAX_REASON], selected)
    await ActionLog(store).write(getattr(arguments, "tenant", "") or "default", action)


async def stats(store: Store, arguments: Namespace) -> int:
    """Print the tubes, and why tasks of them wait."""
    found = await Queue(store).inspector.stats()
    matters = [one for one in await matters_of(store) if one["kind"] in _SHOWN]
    if arguments.tube is not None:
        tubes = {name: tube for name, tube in found.tubes.items() if name == arguments.tube}
        found = msgspec.structs.replace(found, tubes=tubes)
        matters = [one for one in matters if _tube_of(one) in (arguments.tube, "")]
    text = "\n".join([format_stats(found), *(format_remedy(one, arguments.zone) for one in matters)])
    return print_result(arguments, {**msgspec.to_builtins(found), "matters": matters}, text)


def _tube_of(matter: Mapping[str, Any]) -> str:
    """Return the tube of a matter; "" if it is about all."""
    return WEBHOOKS if matter["kind"] == "webhook" else str(matter.get("subject", ""))


async def list_tasks(queue: Queue, arguments: Namespace) -> int:
    """Return one line per task, also with `--json`."""
    found = await find_tasks(queue, task_filter(arguments), arguments.limit)
    return print_all(arguments, found, format_task_line)


async def find_tasks(queue: Queue, chosen: TaskFilter, limit: int) -> list[TaskView]:
    """Return tasks, found through the index of a mark if the filter has one, else through those of the states."""
    if chosen.has_mark:
        return await queue.inspector.select(chosen, limit)
    found: list[TaskView] = []
    cursor: str | None = None
    while len(found) < limit:
        page = await queue.inspector.list(chosen, cursor, limit - len(found))
        found += page.tasks
        cursor = page.cursor
        if cursor is None:
            break
    return found


def task_filter(arguments: Namespace) -> TaskFilter:
    return TaskFilter(**{field: getattr(arguments, field) for field in _FIELDS})


async def list_lanes(queue: Queue, store: Store, arguments: Namespace) -> int:
    """Print one line per lane, also with `--json`."""
    found = await Lanes(store, queue).longest(arguments.tube, arguments.limit)
    return print_all(arguments, found.lanes, lambda lane: f"{lane.tasks:>8}  {lane.tube}  {lane.lane}")


async def peek(queue: Queue, arguments: Namespace) -> int:
    task = await queue.inspector.peek(arguments.id)
    return print_result(arguments, task, format_task(task))


async def bury(queue: Queue, arguments: Namespace) -> int:
    task = await queue.bury(arguments.id)
    print_result(arguments, task, format_task_line(task))
    return 1


async def kick(queue: Queue, arguments: Namespace) -> int:
    """Return how many tasks were kicked."""
    if (arguments.id is None) == (arguments.tube is None):
        raise CommandFailed("kick needs an ID, or --tube", WRONG_USAGE)
    if arguments.id:
        await queue.kick(arguments.id)
        kicked = 1
    else:
        kicked = await queue.kick_some(arguments.tube, arguments.count)
    print_result(arguments, {"kicked": kicked}, f"kicked {kicked}")
    return kicked


async def purge(queue: Queue, arguments: Namespace) -> int:
    purged = await queue.purge(arguments.tube)
    print_result(arguments, {"purged": purged}, f"purged {purged}")
    return purged


async def cancel(queue: Queue, arguments: Namespace) -> int:
    """Return how many tasks were cancelled or flagged."""
    chosen = task_filter(arguments)
    if (arguments.id is None) == (not chosen.is_indexed):
        raise CommandFailed("cancel needs an ID, or one of --user, --tenant, --lane, --kind, --tag", WRONG_USAGE)
    result = await queue.cancel(arguments.id) if arguments.id else await queue.cancel_by(chosen)
    text = f"cancelled {result.cancelled}; notified the workers of {counted(result.flagged, 'running task')}"
    if result.left:
        text += f"; left {counted(result.left, 'task')} of jobs: name their tube (--tube), or ./ada jobs stop JOB"
    if result.left_parcels:
        text += f"; left {counted(result.left_parcels, 'parcel')} of messages: name their tube (--tube sms, …)"
    print_result(arguments, result, text)
    return result.cancelled + result.flagged


async def pause(tubes: Tubes, arguments: Namespace) -> bool:
    """Return False if the tube is paused already; its note stays."""
    is_new = await tubes.pause(arguments.tube, getuser(), arguments.reason)
    note = (await tubes.pauses())[arguments.tube]
    text = f"{arguments.tube} is paused by {note.by}" + (f": {note.reason}" if note.reason else "")
    print_result(arguments, note, text if is_new else f"{text} already")
    return is_new


async def resume(tubes: Tubes, arguments: Namespace) -> bool:
    """Return whether the tube was paused."""
    was_paused = await tubes.resume(arguments.tube)
    text = f"{arguments.tube} is resumed" if was_paused else f"{arguments.tube} was not paused"
    print_result(arguments, {"resumed": was_paused}, text)
    return was_paused


READING: Mapping[str, Callable[[Queue, Namespace], Awaitable[int]]] = {
    "list": list_tasks,
    "peek": peek,
}
CHANGES: Mapping[str, Callable[[Queue, Namespace], Awaitable[int]]] = {
    "kick": kick,
    "bury": bury,
    "purge": purge,
    "cancel": cancel,
}
TUBE_CHANGES: Mapping[str, Callable[[Tubes, Namespace], Awaitable[bool]]] = {"pause": pause, "resume": resume}
"""Commands that change something return how much, and are written to the action log."""

COMMANDS: Mapping[str, Command] = {"queue": Command(declare, run)}
