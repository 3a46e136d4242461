"""The verb processes: lists what runs and what has failed, and which tubes wait for a process. It works on the store,
so it also shows why the API does not run.
"""

import asyncio
from argparse import Namespace
from collections.abc import Mapping
from datetime import UTC, datetime

from cli.command import FAILURE, SUCCESS, Command, no_arguments
from cli.commands.installation.queue import print_result
from cli.services.store import open_store
from cli.settings.settings import load
from core.model.clock import from_ms
from core.model.text.plurals import counted
from core.processes import ProcessView, UnservedTube, overview
from core.services import open_services


def run(arguments: Namespace) -> int:
    return asyncio.run(list_all(arguments))


async def list_all(arguments: Namespace) -> int:
    """Print one line per process and per tube without one; exit code 1 if a tube waits or a process has stopped."""
    async with open_store(load()) as store, open_services(store) as core:
        views, unserved = await overview(store, core.queue, core.channels)
    for view in views:
        print_result(arguments, view, describe(view, datetime.now(UTC)))
    for tube in unserved:
        print_result(arguments, tube, describe_unserved(tube))
    return FAILURE if unserved or not all(view.process.is_there for view in views) else SUCCESS


def describe(view: ProcessView, now: datetime) -> str:
    process = view.process
    started = from_ms(process.started).astimezone().strftime("%Y-%m-%d %H:%M")
    name = f"{process.kind} {process.name}".rstrip()
    lines = [f"{name:<22} {process.state:<9} {process.host} {process.pid}, {process.version}, since {started}"]
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


def describe_unserved(tube: UnservedTube) -> str:
    return f"{tube.tube:<22} no process works on {counted(tube.ready, 'ready task')}; start one: {tube.command}"


COMMANDS: Mapping[str, Command] = {"processes": Command(no_arguments, run)}
