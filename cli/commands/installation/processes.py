"""The verb processes: lists what runs and what has failed, and which tubes wait for a process. It works on the store,
so it also shows why the API does not run.
"""

import asyncio
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo

from cli.client.format_matters import format_remedy
from cli.client.http_client import open_client
from cli.client.local_times import shown_moment
from cli.client.verbs import print_result
from cli.command import FAILURE, SUCCESS, Command, CommandFailed
from cli.services.store import open_store
from cli.settings.settings import load
from core.model.clock import from_ms
from core.model.text.characters import counted
from core.monitoring.overview import matters_of
from core.processes import ANSWERS, FaultyPart, ProcessState, ProcessView, RequestKind, UnservedTube, overview
from core.services import open_services

_OTHERS = ("overdue", "webhook", "paused")


def declare(parser: ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", choices=["start", *RequestKind], help="what is asked; without it: a list")
    parser.add_argument("process", nargs="*", metavar="PROCESS", help="of which, as the list names it: courier vk")


def run(arguments: Namespace) -> int:
    return asyncio.run(ask(arguments) if arguments.action else list_all(arguments))


async def ask(arguments: Namespace) -> int:
    """Have a process of `./ada up` started again, or ask something of all processes of this name. It calls a running
    Ada over HTTP. Raises CommandFailed if none runs.
    """
    api = await open_client(load().settings)
    kind, name = (*arguments.process, "", "")[:2]
    if arguments.action == "start":
        await api.call("POST", "/v1/processes:start", {"kind": kind, "name": name})
        return print_result(arguments, {"started": f"{kind} {name}".strip()}, f"{kind} {name} is being started again")
    known = (await api.call("GET", "/v1/processes"))["processes"]
    states = (ProcessState.RUNNING, ProcessState.STARTING)
    found = [one for one in known if (one["kind"], one["name"]) == (kind, name) and one["state"] in states]
    if not found:
        raise CommandFailed(f"no process {f'{kind} {name}'.strip() or 'is named, and none'} runs; see ./ada processes")
    for one in found:
        await api.call("POST", f"/v1/processes/{one['id']}/requests", {"request": arguments.action})
        text = f"{kind} {name} on {one['host']}, pid {one['pid']}: asked to {arguments.action}"
        print_result(arguments, {"id": one["id"], "asked": arguments.action}, text)
    return SUCCESS


async def list_all(arguments: Namespace) -> int:
    """Print one line per process, faulty part of `./ada up`, and tube or bot without a process; exit code 1 if one of
    these waits or has stopped. Then what keeps messages waiting although a process runs.
    """
    configuration = load()
    zone = configuration.settings.timezone
    async with open_store(configuration) as store, open_services(store) as core:
        found = await overview(store, core.queue, core.channels)
        others = [one for one in await matters_of(store) if one["kind"] in _OTHERS]
    for view in found.processes:
        print_result(arguments, view, describe(view, datetime.now(UTC), zone))
    for part in found.faulty:
        print_result(arguments, part, describe_faulty(part, zone))
    for tube in found.unserved:
        print_result(arguments, tube, describe_unserved(tube))
    for bot in found.unanswered:
        print_result(arguments, {"unanswered": bot, "command": ANSWERS}, describe_unanswered(bot))
    for matter in others:
        print_result(arguments, matter, f"{matter['kind']:<22} {format_remedy(matter, zone)}")
    is_well = not (found.unserved or found.unanswered or found.faulty)
    return SUCCESS if is_well and all(view.process.is_there for view in found.processes) else FAILURE


def describe(view: ProcessView, now: datetime, zone: tzinfo) -> str:
    process = view.process
    started = shown_moment(from_ms(process.started), zone)
    name = f"{process.kind} {process.name}".rstrip()
    lines = [f"{name:<22} {process.state:<9} {process.host} {process.pid}, {process.version}, since {started}"]
    if process.is_quiet:
        lines.append("takes no tasks until it is asked to resume")
    if process.reason:
        lines.append(process.reason)
    for throttle in view.throttles:
        left = (from_ms(throttle.until) - now).total_seconds()
        lines.append(f"throttled by the provider ({throttle.scope}) for {max(left, 0):.0f} s more")
    if view.rate is not None:
        lines.append(f"calls its provider {view.rate:g} times a second, as learned from refusals")
    if process.balance is not None:
        warning = "; the money is running out" if process.balance < (process.low_balance or 0) else ""
        lines.append(f"balance {process.balance:.2f}{warning}")
    return f"\n{'':<23}".join(lines)


def describe_faulty(found: FaultyPart, zone: tzinfo) -> str:
    part, since = found.part, shown_moment(from_ms(found.part.since), zone)
    return f"{part.name:<22} {part.state:<9} {found.host}, since {since}\n{'':<23}{part.fault}"


def describe_unserved(tube: UnservedTube) -> str:
    return f"{tube.tube:<22} no process works on {counted(tube.ready, 'ready task')}; start one: {tube.command}"


def describe_unanswered(bot: str) -> str:
    return f"{f'bot {bot}':<22} receives, and no process answers; start one: {ANSWERS}"


COMMANDS: Mapping[str, Command] = {"processes": Command(declare, run)}
