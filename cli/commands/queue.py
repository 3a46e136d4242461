"""The verb queue, for operators: what is in the queue, and what to do about it. Straight in the store."""

import asyncio
import json
from argparse import SUPPRESS, ArgumentParser, Namespace
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from cli.client import format_queue as stock
from cli.command import GOOD, NO, WRONG_USAGE, Command, NotDone, add_json
from cli.processes.startup import opened_store
from cli.settings.settings import load
from core.queue.queue import Queue, TaskFilter

_FIELDS = ("user", "tenant", "lane", "kind", "tag", "tube", "state")
_LIMIT = 100


def declare(parser: ArgumentParser) -> None:
    verbs = parser.add_subparsers(
        dest="action", required=True, metavar="stats|list|peek|kick|bury|purge|cancel", title="verbs"
    )
    stats = verbs.add_parser("stats", help="how much there is of what, by tube")
    stats.add_argument("tube", nargs="?", help="of this tube only")
    listing = verbs.add_parser("list", help="tasks, the first ones, by what they have in common")
    listing.add_argument("--limit", type=int, default=_LIMIT, help=f"so many at most ({_LIMIT})")
    peek = verbs.add_parser("peek", help="one task as it stands; changes nothing")
    bury = verbs.add_parser("bury", help="lay a task aside until somebody looks at it")
    kick = verbs.add_parser("kick", help="give a buried task another life, or the first N of a tube")
    kick.add_argument("--tube", help="of this tube, those that were buried first")
    kick.add_argument("--count", type=int, default=1, metavar="N", help="so many of that tube (1)")
    purge = verbs.add_parser("purge", help="forget ended tasks that are kept, before their time")
    purge.add_argument("--tube", default="", help="of this tube only")
    cancel = verbs.add_parser("cancel", help="end a task, or all that have something in common")
    for one in (peek, bury):
        one.add_argument("id")
    for one in (kick, cancel):
        one.add_argument("id", nargs="?")
    for one in (listing, cancel):
        _declare_selection(one)
    for one in (stats, listing, peek, bury, kick, purge, cancel):
        add_json(one, default=SUPPRESS)


def _declare_selection(parser: ArgumentParser) -> None:
    for field in _FIELDS:
        parser.add_argument(f"--{field}", default="", help="what it begins with" if field == "kind" else None)


def run(arguments: Namespace) -> int:
    return asyncio.run(act(arguments))


async def act(arguments: Namespace) -> int:
    async with opened_store(load()) as store:
        return await ACTIONS[arguments.action](Queue(store), arguments)


async def stats(queue: Queue, arguments: Namespace) -> int:
    told = await queue.stats()
    if arguments.tube is not None:
        told["tubes"] = {name: tube for name, tube in told["tubes"].items() if name == arguments.tube}
    show(arguments, told, stock.whole(told))
    return GOOD


async def listing(queue: Queue, arguments: Namespace) -> int:
    """One line each, also in JSON."""
    for task in await _found(queue, selection(arguments), arguments.limit):
        show(arguments, task, stock.line(task))
    return GOOD


async def _found(queue: Queue, chosen: TaskFilter, limit: int) -> list[dict[str, Any]]:
    """Through an index; without one, whatever there is."""
    if chosen.is_indexed:
        return await queue.select(chosen, limit)
    found: list[dict[str, Any]] = []
    cursor: str | None = None
    while len(found) < limit:
        tasks, cursor = await queue.list(
            tube=chosen.tube or None, state=chosen.state or None, tenant=None, cursor=cursor, limit=_LIMIT
        )
        found += tasks
        if cursor is None:
            break
    return found[:limit]


def selection(arguments: Namespace) -> TaskFilter:
    return TaskFilter(**{field: getattr(arguments, field) for field in _FIELDS})


async def peek(queue: Queue, arguments: Namespace) -> int:
    task = await queue.peek(arguments.id)
    show(arguments, task, stock.facts(task))
    return GOOD


async def bury(queue: Queue, arguments: Namespace) -> int:
    task = await queue.bury(arguments.id)
    show(arguments, task, stock.line(task))
    return GOOD


async def kick(queue: Queue, arguments: Namespace) -> int:
    """Good if anything was kicked."""
    if (arguments.id is None) == (arguments.tube is None):
        raise NotDone("kick needs an ID, or --tube", WRONG_USAGE)
    if arguments.id:
        await queue.kick(arguments.id)
        kicked = 1
    else:
        kicked = await queue.kick_some(arguments.tube, arguments.count)
    show(arguments, {"kicked": kicked}, f"kicked {kicked}")
    return GOOD if kicked else NO


async def purge(queue: Queue, arguments: Namespace) -> int:
    purged = await queue.purge(arguments.tube)
    show(arguments, {"purged": purged}, f"purged {purged}")
    return GOOD


async def cancel(queue: Queue, arguments: Namespace) -> int:
    """Good if anything was cancelled or flagged."""
    chosen = selection(arguments)
    if (arguments.id is None) == (not chosen.is_indexed):
        raise NotDone("cancel needs an ID, or one of --user, --tenant, --lane, --kind, --tag", WRONG_USAGE)
    told = await queue.cancel(arguments.id) if arguments.id else await queue.cancel_by(chosen)
    show(arguments, told, f"cancelled {told['cancelled']}, under way and told so {told['flagged']}")
    return GOOD if any(told.values()) else NO


def show(arguments: Namespace, told: Mapping[str, Any], text: str) -> None:
    print(json.dumps(told, ensure_ascii=False) if arguments.json else text)


ACTIONS: Mapping[str, Callable[[Queue, Namespace], Awaitable[int]]] = {
    "stats": stats,
    "list": listing,
    "peek": peek,
    "bury": bury,
    "kick": kick,
    "purge": purge,
    "cancel": cancel,
}
COMMANDS: Mapping[str, Command] = {"queue": Command(declare, run)}
