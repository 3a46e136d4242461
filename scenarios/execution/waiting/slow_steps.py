"""Slow actions: each is a task of its own tube, so that it delays no other action; few run at once (C-76).

put ─▶ tube of the action type ─▶ handle: execute, record the ending ─▶ wake the run
"""

from collections.abc import Mapping
from datetime import timedelta

import msgspec
from msgspec import Struct

from core.model.clock import Backoff
from core.queue import Attempt, NewTask, QueueClient, Result, Tube
from scenarios.context import Waiting
from scenarios.engine import Ending, Path, Step
from scenarios.execution.runs import RunGone, Runs, StoredRun, path_text
from scenarios.execution.step_executor import StepExecutor
from scenarios.execution.waiting.parking import Parking
from scenarios.schema import ActionType

CONCURRENCY = 10
"""Actions of one tube that a process executes at once."""

SOURCE = "scenarios.slow"

_ATTEMPTS = 100
"""Only an outage of the store or the death of a process takes an attempt: what an action raises is an outcome."""
_BACKOFF = Backoff(timedelta(milliseconds=500), timedelta(seconds=20))


class SlowStep(Struct, frozen=True):
    """The body of a task: one step of a run."""

    run: str
    path: Path


def slow_tubes(types: Mapping[str, ActionType]) -> list[Tube]:
    """Return the tubes of the slow actions among these types."""
    names = sorted({kind.tube for kind in types.values() if kind.tube})
    return [Tube(name, attempts=_ATTEMPTS, backoff=_BACKOFF) for name in names]


class SlowSteps:
    """The slow steps of one tenant's bot; one per process."""

    def __init__(self, queue: QueueClient, runs: Runs, executor: StepExecutor, parking: Parking) -> None:
        self._queue = queue
        self._runs = runs
        self._executor = executor
        self._parking = parking

    async def put(self, stored: StoredRun, step: Step) -> None:
        """Have a step executed; a repeat changes nothing."""
        body = msgspec.json.encode(SlowStep(stored.id, step.path)).decode()
        task = NewTask(body, stored.tenant, tags=(f"run:{stored.id}",))
        tube = self._executor.tube_of(step)
        await self._queue.queue.put_once(tube, task, source=SOURCE, name=f"{stored.id} {path_text(step.path)}")

    async def handle(self, attempt: Attempt) -> Result:
        """Execute a step and wake its run. Raises StoreError."""
        slow = msgspec.json.decode(attempt.body, type=SlowStep)
        try:
            stored = await self._runs.load(slow.run)
            step = stored.run.steps[slow.path]
            if not (stored.is_over or step.is_over):
                found = await self._executor.execute(stored, step)
                if isinstance(found, Waiting):
                    await self._parking.park(stored, {slow.path: found})
                elif isinstance(found, Ending):
                    await self._runs.record(stored, slow.path, found)
        except RunGone:
            return None
        await self._parking.wake(stored.task)
        return None
