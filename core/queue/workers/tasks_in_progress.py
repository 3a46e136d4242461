"""The tasks that a worker has in progress: how many they are, and how many entries they have.

A task occupies its entries until it ends, or until `release_capacity` reports some of them as done.

Used by `core.queue.workers.worker`.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from core.errors import StoreError
from core.queue.task import Settled, Task
from core.queue.workers.heartbeat import Heartbeat

log = logging.getLogger(__name__)

# After these a task without a lane leaves nothing to claim.
_ENDS = (Settled.DONE, Settled.FAILED, Settled.BURIED, Settled.CANCELLED)

# A claimed task: its shard and token.
LeaseId = tuple[int, str]
RunningAttempt = asyncio.Task[Settled | None]


class TasksInProgress:
    """`claim_again` is called with a shard when one of its tasks leaves room, or work, that was not there before. The
    `heartbeat` extends the lease of each task while it is in progress.
    """

    def __init__(
        self, max_tasks: int, max_entries: int, heartbeat: Heartbeat, claim_again: Callable[[int], None]
    ) -> None:
        self._max_tasks = max_tasks
        self._max_entries = max_entries
        self._heartbeat = heartbeat
        self._claim_again = claim_again
        self.running: set[RunningAttempt] = set()
        self._open_entries: dict[LeaseId, int] = {}
        self._open_total = 0

    @property
    def free_tasks(self) -> int:
        return self._max_tasks - len(self.running)

    @property
    def free_entries(self) -> int:
        return self._max_entries - self._open_total

    @property
    def has_room(self) -> bool:
        return self.free_tasks > 0 and self.free_entries > 0

    def open_entries(self, task: Task) -> int:
        """Return how many entries of a task are not done; 0 if it is not in progress."""
        return self._open_entries.get((task.shard, task.token), 0)

    def start(self, task: Task, attempt: Coroutine[Any, Any, Settled | None], asked: float) -> None:
        """Run an attempt. `asked`: when the task was claimed, by the clock of the event loop."""
        running = asyncio.create_task(attempt, name=f"task {task.task_id}")
        self.running.add(running)
        lease = task.shard, task.token
        self._open_entries[lease] = max(1, task.left)
        self._open_total += self._open_entries[lease]
        self._heartbeat.add(task, asked)
        running.add_done_callback(partial(self._finish, task, lease))

    def release_capacity(self, task: Task, entries: int) -> None:
        """Report that `entries` of a running parcel are done, so that the next task is claimed before this one ends."""
        had_room = self.has_room
        self._open_entries[task.shard, task.token] -= entries
        self._open_total -= entries
        if not had_room and self.has_room:
            self._claim_again(task.shard)

    def cancel(self) -> None:
        """Cancel every attempt."""
        for running in self.running:
            running.cancel()

    def _finish(self, task: Task, lease: LeaseId, running: RunningAttempt) -> None:
        had_room = self.has_room
        self.running.discard(running)
        self._open_total -= self._open_entries.pop(lease)
        if self.has_room and (not had_room or _may_have_made_work(task, running)):
            self._claim_again(task.shard)
        self._heartbeat.remove(task)
        _log_fault(task, running)


def _may_have_made_work(task: Task, running: RunningAttempt) -> bool:
    """Return whether the end of this attempt made a task ready, the next one of its lane or itself, now or in time. Its
    worker knows that without the bell and claims at once.
    """
    if running.cancelled() or running.exception():
        return False
    return bool(task.lane) or running.result() not in _ENDS


def _log_fault(task: Task, running: RunningAttempt) -> None:
    """Log why a handler raised. It ends its own attempt and nothing else."""
    fault = None if running.cancelled() else running.exception()
    if isinstance(fault, StoreError):
        log.warning("task %s left to its lease: %s", task.task_id, fault)
    elif fault is not None:
        log.error("task %s left to its lease", task.task_id, exc_info=fault)
