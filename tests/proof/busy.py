"""A busy queue, and its last scripts one by one: what the append-only file was long after each, and what was there.

python -m tests.proof.cuts        cuts that file at every byte
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from core.orders import HistoryKey
from core.parcels import load_parcel
from core.queue import Task
from core.tasks import Draft, Settlement
from core.tubes import Tube, Tubes
from core.words import Status
from tests.core.audit import Dump, Kept
from tests.core.house import HOUR, TENANT, House, people

MINUTE = timedelta(minutes=1)
# They end by the clock of the server, whatever a script did.
_VOLATILE = ("delivery:{0}:idle:", "queue:{0}:timer", "queue:{0}:puts:")

State = dict[str, tuple[str, bool, object]]


@dataclass(frozen=True, slots=True)
class Mark:
    """After a script: how long the file is, and what the server has."""

    script: str
    size: int
    state: State


def state_of(dump: Dump) -> State:
    """What must be equal. Of an end only that there is one: it is another number of ms at each look."""
    return {name: _kept(kept) for name, kept in dump.items() if not name.startswith(_VOLATILE)}


def _kept(kept: Kept) -> tuple[str, bool, object]:
    return kept.kind, kept.pttl >= 0, kept.value


def log_of(directory: Path) -> Path:
    """The append-only file that is written to."""
    (found,) = (directory / "appendonlydir").glob("*.incr.aof")
    return found


class Busy:
    """A house that works, then takes its last steps alone."""

    def __init__(self, house: House, directory: Path) -> None:
        self.house = house
        self._directory = directory
        self.marks: list[Mark] = []
        self._held: dict[str, Task] = {}
        self._left = ""

    async def work(self) -> None:
        """Many at once, so that what the last steps find is what a busy queue leaves behind."""
        await Tubes(self.house.store).create(Tube("t", expires=HOUR, keep=HOUR, attempts=3))
        await asyncio.gather(*(self._worker(n) for n in range(6)))
        self._left = await self.house.queue.put("t", "left", lane="lane 1", priority=9)

    async def _worker(self, number: int) -> None:
        house = self.house
        for n in range(4):
            drafts = [
                Draft(f"{number}.{n}.{m}", lane=f"lane {m}", user=f"user {m}", kind="k", tags=["g"]) for m in (1, 2)
            ]
            ids = await house.queue.put_many("t", drafts)
            taken = await house.take("t", 2, owner=f"worker {number}", lease=HOUR)
            ends = [(task, Settlement("retry" if n % 4 == 0 else "done")) for task in taken]
            await house.queue.settle_many(ends)
            if n % 5 == 0:
                await house.queue.cancel(ids[0])
            await house.deliver(*people(2), lane="x")
            for task in await house.take("echo", 1, owner=f"courier {number}", lease=HOUR):
                await house.queue.settle(task, outcomes=items(task, Status.SENT))

    async def last_steps(self) -> None:
        """One script at a time, of every kind that writes."""
        await self._mark("start", asyncio.sleep(0))
        for name, step in self._steps():
            await self._mark(name, step())

    async def _mark(self, name: str, step: Awaitable[object]) -> None:
        await step
        size = log_of(self._directory).stat().st_size
        self.marks.append(Mark(name, size, state_of(await self.house.dump())))

    def _steps(self) -> list[tuple[str, Callable[[], Awaitable[object]]]]:
        queue, house = self.house.queue, self.house
        key = HistoryKey(0, "7", 1763712000000000000)
        due = int(house.now().timestamp() * 1000) + 60_000
        drafts = [Draft("A", lane="new", user="u", reply="asker"), Draft("B", lane="new"), Draft("C")]
        return [
            ("enqueue for later", lambda: house.deliver(*people(2), history_key=key, deliver_at=house.now() + MINUTE)),
            ("reschedule to now", lambda: house.histories.reschedule(key, TENANT, house.now())),
            ("bury", lambda: queue.bury(self._left)),
            ("kick", lambda: queue.kick(self._left)),
            ("claim a parcel", lambda: self._take("echo")),
            ("extend", lambda: queue.extend(self._held["echo"], HOUR, items(self._held["echo"], Status.FAILED)[:1])),
            ("release for later", lambda: queue.release(self._held["echo"], due)),
            ("cancel", lambda: house.store.run("cancel", 0, key.suffix, TENANT, 1, "[]")),
            ("put", lambda: queue.put_many("t", drafts)),
            ("claim", lambda: self._take("t")),
            ("settle", lambda: queue.settle(self._held["t"], result="retry", due=due, checkpoint="half", body="other")),
            ("claim another", lambda: self._take("t")),
            ("settle at the end", lambda: queue.settle(self._held["t"], answer="well")),
        ]

    async def _take(self, tube: str) -> None:
        (self._held[tube],) = await self.house.take(tube, lease=HOUR)


def items(task: Task, status: Status) -> list[object]:
    """An end for everybody of a parcel."""
    return [entry.item(status, attempts=1) for entry in load_parcel(task.parcel)[1]]
