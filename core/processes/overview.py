"""The operators' view of the processes: each with the throttles and the learned rate of its account, the tubes that
have work and no process, and the parts of `./ada up` that should run and do not.
"""

import re
import time
from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

from core.deliveries.channels import Channels
from core.model.parts import UpPart
from core.processes.register import ProcessRecord, ProcessRegister, ProcessState
from core.queue import Queue
from core.redis.keys import KEYS
from core.redis.store import Store

ANSWERS = "./ada scenarios"
"""The command that answers what bots receive."""

_COMMANDS = (
    (re.compile(r"webhooks|answers|replies|series"), "./ada serve"),
    (re.compile(r"events|statuses|schedules|scenarios\..+"), ANSWERS),
    (re.compile(r"events\.parts"), "./ada bot telegram"),
    (re.compile(r"bot_(?:calls|files)\.(.+?)(?:-bot)?"), r"./ada bot \1"),
    (re.compile(r"jobs\..+|job-notices"), "./ada jobs"),
)
"""Which command works on a tube of Ada, besides the channels."""


class Throttle(Struct, frozen=True):
    """`scope`: the account or a method. `until`: Unix ms."""

    scope: str
    until: int


class ProcessView(Struct, frozen=True):
    """A process. `rate`: the calls per second that its provider has been found to accept, None while nothing limits."""

    process: ProcessRecord
    throttles: Sequence[Throttle] = ()
    rate: float | None = None


class UnservedTube(Struct, frozen=True):
    """A tube that has ready tasks and no process. `command` starts one."""

    tube: str
    ready: int
    command: str


class FaultyPart(Struct, frozen=True):
    """A part of the `./ada up` on a machine that should run and does not."""

    host: str
    part: UpPart


class ProcessOverview(Struct, frozen=True):
    """`unserved`: tubes that wait for a process. `unanswered`: the bots that receive while no process answers.
    `faulty`: parts of `./ada up` that do not run as they should.
    """

    processes: Sequence[ProcessView]
    unserved: Sequence[UnservedTube]
    unanswered: Sequence[str]
    faulty: Sequence[FaultyPart]


async def overview(store: Store, queue: Queue, channels: Channels) -> ProcessOverview:
    """Return the processes, and what is missing. Raises StoreError."""
    processes = await ProcessRegister(store).list(int(time.time() * 1000) + store.clock_offset_ms)
    views = [await _view(store, queue, process) for process in processes]
    served = {tube for process in processes if process.is_there for tube in process.tubes}
    ready = {
        tube: count for tube, count in (await queue.inspector.ready_tasks()).items() if count and tube not in served
    }
    missing = unserved(ready, (await channels.current()).names)
    return ProcessOverview(views, missing, unanswered_bots(processes), faulty_parts(processes))


async def _view(store: Store, queue: Queue, process: ProcessRecord) -> ProcessView:
    if process.kind != "courier" or not process.account:
        return ProcessView(process)
    scopes = [f"account:{process.account}", f"method:{process.account}"]
    until = {scope: at for scope, at in (await queue.throttles_of(process.name)).items() if scope in scopes}
    shard = store.shard_of_account(process.name, process.account)
    rate = await store.command("HGET", KEYS["rate"].at(shard, process.name, process.account), "rate")
    throttles = [Throttle(scope.partition(":")[0], at) for scope, at in sorted(until.items())]
    return ProcessView(process, throttles, round(float(rate), 2) if rate else None)


def unanswered_bots(processes: Sequence[ProcessRecord]) -> Sequence[str]:
    """Return the names of the bots that receive what people write while no process of the scenarios answers it."""
    if any(process.kind == "scenarios" and process.is_there for process in processes):
        return []
    is_receiving = (process for process in processes if process.kind == "bot")
    return sorted({process.name for process in is_receiving if process.state is ProcessState.RUNNING})


def faulty_parts(processes: Sequence[ProcessRecord]) -> Sequence[FaultyPart]:
    """Return the faulty parts of each machine, from the latest entry of a process there that runs."""
    latest = {
        process.host: process for process in sorted(processes, key=lambda process: process.beat) if process.is_there
    }
    return [FaultyPart(host, part) for host, process in sorted(latest.items()) for part in process.faulty_parts]


def unserved(ready: Mapping[str, int], channels: Collection[str]) -> Sequence[UnservedTube]:
    """Return those of the tubes with ready tasks for which there is a command; other programs work on the rest."""
    found = ((tube, count, command_of(tube, channels)) for tube, count in sorted(ready.items()))
    return [UnservedTube(tube, count, command) for tube, count, command in found if command]


def command_of(tube: str, channels: Collection[str]) -> str:
    """Return the command that works on a tube; "" if it is not one of Ada's."""
    if tube in channels:
        return f"./ada courier {tube}"
    found = ((pattern.fullmatch(tube), command) for pattern, command in _COMMANDS)
    return next((match.expand(command) for match, command in found if match), "")
