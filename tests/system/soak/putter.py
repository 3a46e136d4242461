"""A process of the soak that puts tasks, cancels some of them and makes calls.

The journal has a line before each put, and another one when the put is acknowledged.

    python -m tests.system.soak.putter URL DIRECTORY NAME SEED PER_SECOND
"""

import asyncio
import itertools
import json
import random
import signal
import sys
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cli.processes.supervisor import announce
from core.errors import NotFound
from core.queue import NewTask, QueueClient, TaskFilter
from core.redis.store import Store
from tests.system.soak.journal import Journal
from tests.system.soak.plan import CALLS, ENDS_TO, PARKED, STRICT, Shape, shape
from tests.system.soak.version import version_facts

PRODUCERS = 4
LANES = 3
CALL = timedelta(seconds=50)
"""Longer than any fault lasts."""


class Putter:
    """Several producers with lanes of their own, so each lane is in the order of the puts of its producer."""

    def __init__(self, work: QueueClient, journal: Journal, name: str, seed: int, per_second: float) -> None:
        self._work = work
        self._journal = journal
        self._name = name
        self._chance = random.Random(seed)
        self._pause = PRODUCERS / per_second
        self._numbers = itertools.count(1)
        self.stopping = asyncio.Event()

    async def run(self) -> None:
        await asyncio.gather(self._calls(), *(self._produce(number) for number in range(PRODUCERS)))

    async def _produce(self, number: int) -> None:
        lanes = [*(f"{self._name} {number} {lane}" for lane in range(LANES)), ""]
        while not self.stopping.is_set():
            await self._put(self._chance.choice((STRICT, STRICT, PARKED)), self._chance.choice(lanes))
            await self._rest(self._chance.expovariate(1 / self._pause))

    async def _put(self, tube: str, lane: str) -> None:
        many = self._chance.choice((1, 1, 1, 4))
        shapes = [shape(self._chance) for _ in range(many)]
        numbers = [f"{self._name}:{next(self._numbers)}" for _ in range(many)]
        for number, one in zip(numbers, shapes, strict=True):
            self._journal.write("try", n=number, tube=tube, lane=lane, **asdict(one))
        drafts = [self._draft(number, lane, one) for number, one in zip(numbers, shapes, strict=True)]
        ids = await self._work.put_many(tube, drafts)
        for number, task_id in zip(numbers, ids, strict=True):
            self._journal.write("put", n=number, task=task_id)
        if self._chance.random() < 0.1:
            await self._cancel(numbers[0], ids[0])

    def _draft(self, number: str, lane: str, one: Shape) -> NewTask:
        body = json.dumps({"n": number, "plan": one.plan, "takes": one.takes, "step": 0})
        due, expires = (_moment(ms) for ms in (one.due_ms, one.expires_ms))
        facts: dict[str, Any] = {"tenant": one.tenant, "lane": lane, "priority": one.priority}
        return NewTask(body, due=due, expires=expires, reply=ENDS_TO, user=number, **facts)

    async def _cancel(self, number: str, task_id: str) -> None:
        """Cancels by id or by user, now or soon."""
        self._journal.write("cancel", n=number)
        await asyncio.sleep(self._chance.choice((0, 0.05, 0.5)))
        try:
            if self._chance.random() < 0.5:
                await self._work.queue.cancel(task_id)
            else:
                await self._work.queue.cancel_by(TaskFilter(user=number))
        except NotFound:
            return  # it has ended

    async def _calls(self) -> None:
        """Makes calls and checks that each gets its own answer."""
        while not self.stopping.is_set():
            number = f"{self._name}:{next(self._numbers)}"
            self._journal.write("call", n=number)
            answer = await self._work.call(CALLS, number, CALL)
            self._journal.write("answered", n=number, rightly=answer == number[::-1])
            await self._rest(0.2)

    async def _rest(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self.stopping.wait(), seconds)
        except TimeoutError:
            return


def _moment(ms: int) -> datetime | None:
    return datetime.fromtimestamp(ms / 1000, UTC) if ms else None


async def put(url: str, directory: Path, name: str, seed: int, per_second: float) -> None:
    store = await Store.open(url, patience=60)
    work = QueueClient(store, name)
    putter = Putter(work, Journal(directory, name), name, seed, per_second)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, putter.stopping.set)
    announce(**version_facts())
    await putter.run()
    await work.close()
    await store.close()


if __name__ == "__main__":
    _, url, directory, name, seed, per_second = sys.argv
    asyncio.run(put(url, Path(directory), name, int(seed), float(per_second)))
