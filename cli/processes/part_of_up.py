"""A verb beside a running `./ada up` that has the account: `up` starts its own process again."""

import asyncio
import os
from pathlib import Path

from cli.command import OPERATOR_NEEDED, SUCCESS, CommandFailed
from cli.processes.parts import UP_PART, ask_to_start, read_note
from cli.settings.settings import Configuration
from core.errors import Conflict
from core.model.parts import PartState, UpPart
from couriers.channel import channels

_LOOK = 0.2
_PATIENCE = 60.0
"""Seconds in which a part starts or ends."""


def runs_under_up(configuration: Configuration, channel: str, verb: str) -> bool:
    """Return whether these settings have no account for the channel, and the `./ada up` on this data directory, which
    is another process, runs the verb with its own.
    """
    if UP_PART in os.environ or any(name in configuration.raw for name in channels()[channel].settings_of_account):
        return False
    return part_that_runs(configuration.settings.data, verb) is not None


def start_by_up(data: Path, verb: str) -> int:
    """Have `up` start its process again and wait for it. Raises CommandFailed with the reason if it ends again."""
    return asyncio.run(_start_by_up(data, verb))


async def _start_by_up(data: Path, verb: str) -> int:
    before = part_that_runs(data, verb)
    ask_to_start(data, verb)  # also one that runs: it may be about to end
    if before and before.state in (PartState.RUNNING, PartState.STARTING):
        print(f"`./ada up` runs {verb} with its own account")
        return SUCCESS
    async with asyncio.timeout(_PATIENCE):
        while True:
            await asyncio.sleep(_LOOK)
            part = part_that_runs(data, verb)
            if part and part.state is PartState.RUNNING:
                print(f"`./ada up` has started {verb} again, with its own account")
                return SUCCESS
            if part and before and part.at > before.at and part.state is PartState.STOPPED:
                raise CommandFailed(
                    f"`./ada up` has started {verb} again, and it ended: {part.reason}", OPERATOR_NEEDED
                )


async def start_verb(data: Path, verb: str) -> None:
    """Ask `up` to start its process again. Raises Conflict PROCESS_NOT_UNDER_UP if none runs on this data directory."""
    note = await asyncio.to_thread(read_note, data)
    if not (note and note.is_up):
        detail = f"No `./ada up` runs beside this API. Start the process where it belongs: ./ada {verb}"
        raise Conflict("PROCESS_NOT_UNDER_UP", detail)
    await asyncio.to_thread(ask_to_start, data, verb)


def part_that_runs(data: Path, verb: str) -> UpPart | None:
    """Return the part of `up` that runs a verb: a process, or a thread of one."""
    note = read_note(data)
    names = (verb, verb.removeprefix("courier "))
    return next((one for one in note.parts if one.name in names), None) if note and note.is_up else None
