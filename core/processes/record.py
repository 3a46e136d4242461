"""The record that a process keeps of itself. Pure."""

from collections.abc import Sequence
from datetime import timedelta
from enum import StrEnum

from msgspec import Struct

from core.model.parts import UpPart

BEAT = timedelta(seconds=10)
"""How often a process writes its entry."""
SILENT_AFTER = timedelta(seconds=35)
"""Without a beat for so long a process is taken to be dead, or unable to reach the server."""


class ProcessState(StrEnum):
    """`failed`: it ended with an error and may be started again as it is; `halted`: an operator is needed first (exit
    code 3); `silent`: it should run, and no beat has come for a while. A process that was asked to stop has no entry.
    """

    STARTING = "starting"
    RUNNING = "running"
    FAILED = "failed"
    HALTED = "halted"
    SILENT = "silent"


ENDED = frozenset({ProcessState.FAILED, ProcessState.HALTED})


class ProcessRecord(Struct, frozen=True, kw_only=True):
    """One process. `kind`: its verb on the command line; `name`: the channel of a courier or a bot, else "". `tubes`:
    what its workers take tasks from. Times are Unix ms; `since`: when `state` began. `reason`: why it failed or halted.
    `account`, `balance`, `low_balance`: of a courier, as far as they are known. `faulty_parts`: of the `./ada up` with
    which it shares its data directory.
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
