"""The register of processes: the record that each keeps of itself, and what operators see in all of them.

A record is an entry of one hash; old ones are removed when the hash is read. It says, too, what has stopped single bots
while the process that runs them goes on, by tenant. A part of a bot is what a process does for it: `scenarios`, `bot
telegram`, `courier telegram-bot`.

Operators see each process with the throttles and the learned rate of its account, the tubes that have work and no
process, and the parts of `./ada up` that should run and do not.
"""

import re
import secrets
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from enum import StrEnum

import msgspec
from msgspec import Struct

from core.deliveries.channels import Channels
from core.model.clock import in_ms
from core.model.parts import UpPart
from core.queue import Queue
from core.redis.keys import KEYS
from core.redis.store import Store

BEAT = timedelta(seconds=10)
"""Interval at which a process writes its entry."""
SILENT_AFTER = timedelta(seconds=35)
"""Without a beat for so long a process is taken to be dead, or unable to reach the server."""
SILENT_KEPT = timedelta(minutes=10)
"""Time to live of the entry of a vanished process after its last beat."""
ENDED_KEPT = timedelta(days=1)
"""Retention of the reason why a process has ended."""

_ENTRIES, _REQUESTS = KEYS["processes"].at(0), KEYS["process_requests"].at(0)
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


class ProcessState(StrEnum):
    """`failed`: it ended with an error and may be started again as it is; `halted`: an operator is needed first (exit
    code 3); `silent`: it should run, and no beat has come for a while. A process that was asked to stop has no entry.
    """

    STARTING = "starting"
    RUNNING = "running"
    FAILED = "failed"
    HALTED = "halted"
    SILENT = "silent"


class RequestKind(StrEnum):
    """A request of an operator to a running process. `quiet`: take no more tasks; `resume`: take tasks again; `stop`:
    finish what it has, and end; `test`: ask the provider whether it accepts the account.
    """

    QUIET = "quiet"
    RESUME = "resume"
    STOP = "stop"
    TEST = "test"


class ProcessRequest(Struct, frozen=True):
    """`token`: another one for each request, so that none is done twice."""

    kind: RequestKind
    token: str


ENDED = frozenset({ProcessState.FAILED, ProcessState.HALTED})


class ProcessRecord(Struct, frozen=True, kw_only=True):
    """One process. `kind`: its verb on the command line; `name`: the channel of a courier or a bot, else "". `tubes`:
    what its workers take tasks from. Times are Unix ms; `since`: when `state` began. `reason`: why it failed or halted.
    `account`, `balance`, `low_balance`: of a courier, as far as they are known. `sources`: the settings that make its
    account, with where each comes from. `answer`: what its provider said of the account `answered` (Unix ms), and
    whether it `is_refused`. `is_quiet`: it takes no tasks until it is resumed. `fault`: what it
    cannot do now, though it runs. `faulty_parts`: of the `./ada up` with which it shares its data directory.
    """

    id: str
    kind: str
    name: str = ""
    host: str
    pid: int
    version: str
    started: int
    beat: int
    state: ProcessState = ProcessState.STARTING
    since: int
    reason: str = ""
    tubes: Sequence[str] = ()
    account: str = ""
    balance: float | None = None
    low_balance: float | None = None
    sources: Mapping[str, str] = {}
    answer: str = ""
    answered: int = 0
    is_refused: bool = False
    is_quiet: bool = False
    fault: str = ""
    fault_since: int = 0
    faulty_parts: Sequence[UpPart] = ()

    @property
    def command(self) -> str:
        """Return the command that starts such a process."""
        return f"./ada {self.kind} {self.name}".rstrip()

    @property
    def is_there(self) -> bool:
        """Return whether it starts or runs."""
        return self.state in (ProcessState.STARTING, ProcessState.RUNNING)

    def is_successor_of(self, other: "ProcessRecord") -> bool:
        """Return whether this process does on this machine what the other one did."""
        return self.id != other.id and (self.kind, self.name, self.host) == (other.kind, other.name, other.host)


_decode = msgspec.json.Decoder(ProcessRecord).decode


class ProcessRegister:
    """All processes of an installation."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def write(self, record: ProcessRecord) -> None:
        """Store an entry. Raises StoreError."""
        await self._store.command("HSET", _ENTRIES, record.id, msgspec.json.encode(record).decode())

    async def remove(self, *ids: str) -> None:
        """Remove entries. Raises StoreError."""
        if ids:
            await self._store.command("HDEL", _ENTRIES, *ids)
            await self._store.command("HDEL", _REQUESTS, *ids)

    async def ask(self, id: str, kind: RequestKind) -> None:  # noqa: A002 - the name of the field
        """Ask something of a process, in place of what was asked before and is not done. Raises StoreError."""
        request = ProcessRequest(kind, secrets.token_hex(4))
        await self._store.command("HSET", _REQUESTS, id, msgspec.json.encode(request).decode())

    async def request_of(self, id: str) -> ProcessRequest | None:  # noqa: A002 - the name of the field
        """Return what was asked of a process last. Raises StoreError."""
        text = await self._store.command("HGET", _REQUESTS, id)
        return msgspec.json.decode(text, type=ProcessRequest) if text else None

    async def list(self, now: int) -> Sequence[ProcessRecord]:
        """Return the entries by kind, name, host and start; at `now`, in ms, those without a beat are silent. Remove
        the old ones. Raises StoreError.
        """
        texts = await self._store.command("HGETALL", _ENTRIES)
        found = [_decode(text) for text in texts.values()]
        await self.remove(*(one.id for one in found if _is_old(one, now)))
        kept = [_as_of(one, now) for one in found if not _is_old(one, now)]
        return sorted(kept, key=lambda one: (one.kind, one.name, one.host, one.started))


def _is_old(record: ProcessRecord, now: int) -> bool:
    return now - record.beat > in_ms(ENDED_KEPT if record.state in ENDED else SILENT_KEPT)


def _as_of(record: ProcessRecord, now: int) -> ProcessRecord:
    if record.state in ENDED or now - record.beat < in_ms(SILENT_AFTER):
        return record
    return msgspec.structs.replace(record, state=ProcessState.SILENT, since=record.beat)


_KEPT = timedelta(days=30)
"""After the last fault, if nothing removes it, for example because the processes are gone."""


class BotFault(Struct, frozen=True):
    """A part of a bot that has stopped, `bot telegram` for example, while the rest goes on. `since`: Unix ms."""

    part: str
    reason: str
    since: int


class BotFaults:
    """Notes and clears the faults of all bots. Methods raise StoreError."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def note(self, tenant: str, fault: BotFault) -> None:
        """Note that a part has stopped, in place of what was noted before."""
        key = KEYS["bot_faults"].at(0, tenant)
        await self._store.command("HSET", key, fault.part, msgspec.json.encode(fault).decode())
        await self._store.command("EXPIRE", key, _KEPT // timedelta(seconds=1))
        await self._store.command("SADD", KEYS["bots"].at(0), tenant)

    async def clear(self, tenant: str, part: str) -> None:
        """Note that a part works, or that the bot is gone."""
        await self._store.command("HDEL", KEYS["bot_faults"].at(0, tenant), part)

    async def of(self, tenant: str) -> Sequence[BotFault]:
        """Return what has stopped of a tenant's bot."""
        stored: Mapping[str, str] = await self._store.command("HGETALL", KEYS["bot_faults"].at(0, tenant))
        return [msgspec.json.decode(stored[part], type=BotFault) for part in sorted(stored)]


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
    processes = await ProcessRegister(store).list(store.now_ms())
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
