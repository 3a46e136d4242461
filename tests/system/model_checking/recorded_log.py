"""A workload whose last scripts run one by one; after each, the size of the append-only file and all keys are recorded.

`tests.system.model_checking.cuts` cuts that file at every byte.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from core.model.history_key import HistoryKey
from core.model.states import Status
from core.queue import NewTask, Settlement, SettleResult, Task, Tube, Tubes
from couriers.sending.parcel import Parcel
from tests.support.audited import Dump, StoredKey
from tests.support.stack import HOUR, TENANT, Stack, people

MINUTE = timedelta(minutes=1)
# Their TTL runs by the clock of the server, whatever a script did.
_VOLATILE = ("delivery:{0}:idle:", "queue:{0}:timer", "queue:{0}:puts:")

State = dict[str, tuple[str, bool, object]]


@dataclass(frozen=True, slots=True)
class Mark:
    """After a script: the size of the file in bytes, and the state of the server."""

    script: str
    size: int
    state: State


def comparable(dump: Dump) -> State:
    """What must be equal in two dumps. A TTL counts only as present or absent: its ms differ at each read."""
    return {name: _kept(kept) for name, kept in dump.items() if not name.startswith(_VOLATILE)}


def _kept(kept: StoredKey) -> tuple[str, bool, object]:
    return kept.kind, kept.pttl >= 0, kept.value


def log_of(directory: Path) -> Path:
    """The append-only file that the server writes to."""
    (found,) = (directory / "appendonlydir").glob("*.incr.aof")
    return found


class RecordedWorkload:
    """Many workers at once, then the last scripts one by one."""

    def __init__(self, stack: Stack, directory: Path) -> None:
        self.stack = stack
        self._directory = directory
        self.marks: list[Mark] = []
        self._taken: dict[str, Task] = {}
        self._left = ""

    async def work(self) -> None:
        """Many workers at once, so the last scripts find what a busy queue leaves behind."""
        await Tubes(self.stack.store).create(Tube("t", expires=HOUR, keep=HOUR, attempts=3))
        await asyncio.gather(*(self._worker(n) for n in range(6)))
        self._left = await self.stack.queue.put("t", NewTask("left", lane="lane 1", priority=9))

    async def _worker(self, number: int) -> None:
        stack = self.stack
        for n in range(4):
            drafts = [
                NewTask(f"{number}.{n}.{m}", lane=f"lane {m}", user=f"user {m}", kind="k", tags=["g"]) for m in (1, 2)
            ]
            ids = await stack.queue.put_many("t", drafts)
            taken = await stack.take("t", 2, owner=f"worker {number}", lease=HOUR)
            ends = [(task, Settlement(SettleResult.RETRY if n % 4 == 0 else SettleResult.DONE)) for task in taken]
            await stack.settle_all(ends)
            if n % 5 == 0:
                await stack.queue.cancel(ids[0])
            await stack.deliver(*people(2), lane="x")
            for task in await stack.take("echo", 1, owner=f"courier {number}", lease=HOUR):
                await stack.queue.settle(task, outcomes=items(task, Status.SENT))

    async def last_steps(self) -> None:
        """Runs one script of every kind that writes, and records a mark after each."""
        await self._mark("start", asyncio.sleep(0))
        for name, step in self._steps():
            await self._mark(name, step())

    async def _mark(self, name: str, step: Awaitable[object]) -> None:
        await step
        size = log_of(self._directory).stat().st_size
        self.marks.append(Mark(name, size, comparable(await self.stack.dump())))

    def _steps(self) -> list[tuple[str, Callable[[], Awaitable[object]]]]:
        queue, stack = self.stack.queue, self.stack
        key = HistoryKey(0, "7", 1763712000000000000)
        due = int(stack.now().timestamp() * 1000) + 60_000
        drafts = [NewTask("A", lane="new", user="u", reply="asker"), NewTask("B", lane="new"), NewTask("C")]
        return [
            ("enqueue for later", lambda: stack.deliver(*people(2), history_key=key, deliver_at=stack.now() + MINUTE)),
            ("reschedule to now", lambda: stack.deliveries.reschedule(key, TENANT, stack.now())),
            ("bury", lambda: queue.bury(self._left)),
            ("kick", lambda: queue.kick(self._left)),
            ("claim a parcel", lambda: self._take("echo")),
            ("extend", lambda: queue.extend(self._taken["echo"], HOUR, items(self._taken["echo"], Status.FAILED)[:1])),
            ("release for later", lambda: queue.release(self._taken["echo"], due)),
            ("cancel", lambda: stack.store.run("cancel", 0, key.suffix, TENANT, 1, "[]")),
            ("put", lambda: queue.put_many("t", drafts)),
            ("claim", lambda: self._take("t")),
            (
                "settle",
                lambda: queue.settle(
                    self._taken["t"], result=SettleResult.RETRY, due=due, checkpoint="half", body="other"
                ),
            ),
            ("claim another", lambda: self._take("t")),
            ("settle at the end", lambda: queue.settle(self._taken["t"], answer="well")),
        ]

    async def _take(self, tube: str) -> None:
        (self._taken[tube],) = await self.stack.take(tube, lease=HOUR)


def items(task: Task, status: Status) -> list[object]:
    """This status for every entry of a parcel."""
    return [entry.item(status, attempts=1) for entry in Parcel.of(task).entries]
