"""The tasks that a worker has in progress, and the leases that are extended meanwhile (K-39).

A task occupies its entries until it ends, or until `release_capacity` reports some of them as done. Its lease is
extended from a thread with its own connection, so that a busy event loop loses no task: three times before it would
end, until the task has run for `max_runtime`. Its handler is then taken to hang, and the lease runs out (K-04). With
`extends_blocked` False no lease is extended while the event loop does not answer; if that takes as long as a lease, all
of them count as lost, even if no other worker has come yet (docs/decisions/0071).

Used by `core.queue.workers.worker`; calls `lua/queue/functions/extend.lua`.
"""

import asyncio
import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

import redis
from redis.exceptions import RedisError, ResponseError

from core.errors import StoreError
from core.queue.queue import extension
from core.queue.task import Extension, Settled, Task
from core.redis import library
from core.redis.connection import PROTOCOL
from core.redis.store import Store

log = logging.getLogger(__name__)

# How often a lease is extended before it would end.
_EXTENSIONS = 3
# Seconds. Together less than the leases' grace after a promotion (`core.redis.primary`).
_SOCKET_TIMEOUT = 3.0
_RETRY = 1.0
# Seconds between two checks, by a thread that waits for a blocked event loop, whether the worker has ended.
_PATIENCE = 1.0

OnExtension = Callable[[Task, Extension], None]
# After these a task without a lane leaves nothing to claim.
_ENDS = (Settled.DONE, Settled.FAILED, Settled.BURIED, Settled.CANCELLED)
# A claimed task: its shard and token.
LeaseId = tuple[int, str]
RunningAttempt = asyncio.Task[Settled | None]


@dataclass(slots=True)
class _Lease:
    """Times by time.monotonic. `end`: until then the lease certainly lasts."""

    task: Task
    claimed: float
    end: float


class Heartbeat:
    """`on_extension` is called in the event loop for each task that was cancelled or whose lease was lost."""

    def __init__(
        self,
        store: Store,
        lease: timedelta,
        max_runtime: timedelta,
        on_extension: OnExtension | None = None,
        *,
        extends_blocked: bool = True,
    ) -> None:
        self._store = store
        self._lease = lease.total_seconds()
        self._max_runtime = max_runtime.total_seconds()
        self._on_extension = on_extension
        self._extends_blocked = extends_blocked
        self._leases: dict[tuple[int, str], _Lease] = {}
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, task: Task, asked: float) -> None:
        """Extend the lease of this task from now on. `asked`: when the claim was sent, by time.monotonic."""
        self._leases[task.shard, task.token] = _Lease(task, time.monotonic(), asked + self._lease)

    def lease_end(self, task: Task) -> float:
        """Return until when the lease certainly lasts, by time.monotonic; 0 if it is not extended any more."""
        lease = self._leases.get((task.shard, task.token))
        return lease.end if lease else 0.0

    def remove(self, task: Task) -> None:
        """Extend it no longer."""
        self._leases.pop((task.shard, task.token), None)

    def start(self) -> None:
        """Start the thread. Call it in the event loop in which `on_extension` is to run."""
        loop = asyncio.get_running_loop()
        self._stopped.clear()
        self._thread = threading.Thread(target=self._run, args=(loop,), name="heartbeat of leases", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread; the leases of tasks that are still there run out."""
        self._stopped.set()

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        clients: dict[str, redis.Redis] = {}  # by URL of the primary
        pause = interval = self._lease / _EXTENSIONS
        while not self._stopped.wait(pause):
            pause = interval
            if not self._extends_blocked and not self._answers(loop):
                self._lose_all(loop)
                continue
            for url, tasks in self._by_primary().items():  # one that fails holds up no other
                try:
                    self._extend_all(clients.setdefault(url, _client(url)), tasks, loop)
                except RedisError as fault:
                    pause = min(_RETRY, interval)
                    clients.pop(url).close()  # to another server, if it refuses writes
                    log.warning("leases not extended, next try in %.1f s: %s", pause, fault)
            for url in clients.keys() - {primary.url for primary in self._store.shard_map.primaries()}:
                clients.pop(url).close()
        for client in clients.values():
            client.close()

    def _answers(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Wait until the event loop answers. Returns whether it did so within a lease."""
        answered, asked = threading.Event(), time.monotonic()
        loop.call_soon_threadsafe(answered.set)
        while not answered.wait(_PATIENCE):
            if self._stopped.is_set():
                return True
        return time.monotonic() - asked < self._lease

    def _lose_all(self, loop: asyncio.AbstractEventLoop) -> None:
        log.warning("the event loop was blocked for longer than a lease: its tasks go to other workers")
        now = time.monotonic()
        for lease in [lease for lease in list(self._leases.values()) if lease.end <= now]:
            self._report(lease.task, Extension(False), loop)

    def _report(self, task: Task, result: Extension, loop: asyncio.AbstractEventLoop) -> None:
        if not result.lease_valid:
            self.remove(task)
        if self._on_extension and (result.cancelled or not result.lease_valid) and not self._stopped.is_set():
            loop.call_soon_threadsafe(self._on_extension, task, result)

    def _extend_all(self, client: "redis.Redis", tasks: Sequence[Task], loop: asyncio.AbstractEventLoop) -> None:
        end, faults = time.monotonic() + self._lease, []
        for task, reply in zip(tasks, self._extend(client, tasks), strict=True):
            if isinstance(reply, RedisError):
                faults.append(reply)
                continue
            result = extension(reply)
            self._report(task, result, loop)
            if result.lease_valid:
                self._note(task, end)
        if faults:  # one shard holds up no other
            raise faults[0]

    def _note(self, task: Task, end: float) -> None:
        """Note the end of a lease, unless the task has ended meanwhile."""
        lease = self._leases.get((task.shard, task.token))
        if lease is not None:
            lease.end = end

    def _by_primary(self) -> dict[str, list[Task]]:
        """Return the tasks to extend by the URL of their primary."""
        found: dict[str, list[Task]] = defaultdict(list)
        for task in self._old_enough():
            found[self._store.shard_map.of(task.shard).url].append(task)
        return found

    def _old_enough(self) -> list[Task]:
        now = time.monotonic()
        ages = [(lease.task, now - lease.claimed) for lease in list(self._leases.values())]
        return [task for task, age in ages if self._lease / _EXTENSIONS / 2 < age < self._max_runtime]

    def _extend(self, client: "redis.Redis", tasks: Sequence[Task]) -> list[Any]:
        replies = self._send(client, tasks)
        if any(isinstance(reply, ResponseError) and library.is_missing(reply) for reply in replies):
            self._load(client)
            replies = self._send(client, tasks)
        return replies

    def _load(self, client: "redis.Redis") -> None:
        try:
            client.function_load(self._store.library.text)
        except ResponseError as refusal:
            if not library.is_loaded(refusal):
                raise

    def _send(self, client: "redis.Redis", tasks: Sequence[Task]) -> list[Any]:
        name = self._store.library.functions["extend"].registered
        with client.pipeline(transaction=False) as pipe:
            for task in tasks:
                keys, *words = self._store.fixed_words(task.shard)
                pipe.fcall(name, int(keys), *words, task.id, task.token, int(self._lease * 1000), "", "[]")
            return list(pipe.execute(raise_on_error=False))


def _client(url: str) -> "redis.Redis":
    """Open a blocking connection to a primary."""
    return redis.Redis.from_url(url, decode_responses=True, protocol=PROTOCOL, socket_timeout=_SOCKET_TIMEOUT)


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
