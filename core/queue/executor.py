"""A handler, and its executor: what a handler gets and returns, and the settlement that is made of it.

A handler is a coroutine function with one `Attempt`. It returns None or a text (done; the text is the answer), or one
of `Done`, `Failed`, `Retry`, `Bury`, `Suspend`, `AlreadySettled`. If it raises, the task is retried after the tube's
back-off; after the last attempt it is buried. A result with a value that cannot be stored raises TypeError or Invalid
where it is made. The worker of an executor calls it with each claimed task, and settles the task.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from traceback import format_exception
from typing import Any

from core.errors import StoreError
from core.queue.checks import check_texts, check_type, error_text, storable
from core.queue.queue import Queue
from core.queue.task import Claim, Extension, Settlement, SettleResult, Task
from core.queue.tubes import Tube, Tubes
from core.queue.workers.worker import Worker, WorkerOptions
from core.redis.cancel_and_wait import is_cancelled_from_outside
from core.redis.store import Store

_RESULT = "handler's result"
log = logging.getLogger(__name__)
# For how many seconds a tube's options are used before they are read again.
_TUBE_FRESH = 5.0


@dataclass(frozen=True, slots=True)
class Done:
    """The task is done; `answer` goes to its caller."""

    answer: str = ""

    def __post_init__(self) -> None:
        check_texts(_RESULT, answer=self.answer)


@dataclass(frozen=True, slots=True)
class Failed:
    """The task failed for good; it is not retried."""

    answer: str = ""

    def __post_init__(self) -> None:
        check_texts(_RESULT, answer=self.answer)


@dataclass(frozen=True, slots=True)
class Retry:
    """The task is attempted again `after` this time; None: after the tube's back-off. `body`, unless "", replaces the
    task's body for the next attempt (K-37); the next attempt gets `checkpoint`. `error`: why, for operators.
    """

    after: timedelta | None = None
    body: str = ""
    checkpoint: str = ""
    error: str = ""

    def __post_init__(self) -> None:
        if self.after is not None:
            check_type(_RESULT, "after", self.after, timedelta)
        check_texts(_RESULT, body=self.body, checkpoint=self.checkpoint)
        check_type(_RESULT, "error", self.error, str)


@dataclass(frozen=True, slots=True)
class Bury:
    """The task is set aside until an operator kicks or cancels it. `error`: why, for operators."""

    error: str = ""

    def __post_init__(self) -> None:
        check_type(_RESULT, "error", self.error, str)


@dataclass(frozen=True, slots=True)
class Suspend:
    """The task waits until `Queue.wake` is called for it, at most `longest`; the attempt is not counted, and the task
    does not expire any more. `leaves_lane`: its lane goes on, and the task enters it as the last one when it is woken.
    `checkpoint`, unless "", is passed to the next attempt.
    """

    longest: timedelta
    leaves_lane: bool = False
    checkpoint: str = ""

    def __post_init__(self) -> None:
        check_type(_RESULT, "longest", self.longest, timedelta)
        check_texts(_RESULT, checkpoint=self.checkpoint)


@dataclass(frozen=True, slots=True)
class AlreadySettled:
    """The handler has settled the task itself, in the same step as work of its own."""


Result = Done | Failed | Retry | Bury | Suspend | AlreadySettled | str | None


class Attempt:
    """One attempt at a task, as its handler sees it. `checkpoint`: what an earlier attempt saved. `cancelled` is set
    when the task is cancelled while it runs. `settles` is set by a handler that is about to settle the task itself:
    that the lease ends with that does not cancel it.
    """

    def __init__(
        self, queue: Queue, task: Task, lease: timedelta, lease_end: Callable[[Task], float] = lambda _: 0.0
    ) -> None:
        self.task = task
        self.body = task.body
        self.checkpoint = task.checkpoint
        self.cancelled = asyncio.Event()
        self.settles = False
        self._queue = queue
        self._lease = lease
        self._lease_end = lease_end

    def holds_lease(self) -> bool:
        """Return whether no other worker can have the task yet. False also when that is not certain, for example after
        an outage of the server or a freeze of this process.
        """
        return time.monotonic() < self._lease_end(self.task)

    async def save(self, checkpoint: str) -> bool:
        """Save the progress; if this worker dies, the next attempt gets it (K-33). Returns False if the handler must
        stop: the task was cancelled, or its lease was lost. Raises TypeError; Invalid LONE_SURROGATE, TEXT_TOO_LONG.
        """
        check_texts("task", checkpoint=checkpoint)
        extension = await self._queue.extend(self.task, self._lease, checkpoint=checkpoint)
        if extension.cancelled:
            self.cancelled.set()
        return extension.lease_valid and not extension.cancelled


Handler = Callable[[Attempt], Awaitable[Result]]


_Result = Done | Failed | Retry | Bury | Suspend | AlreadySettled


class Executor:
    """Runs all attempts of its `worker`."""

    def __init__(
        self, store: Store, queue: Queue, tubes: Tubes, tube: str, handler: Handler, options: WorkerOptions
    ) -> None:
        self._queue = queue
        self._tubes = tubes
        self._name = tube
        self._handler = handler
        self._lease = options.lease
        self._running: dict[tuple[int, str], tuple[Attempt, asyncio.Task[Any] | None]] = {}
        self._tube = Tube(tube)
        self._tube_read = float("-inf")
        self.worker = Worker(store, tube, self.execute, options=options, on_extension=self.on_extension)

    async def execute(self, task: Task, claim: Claim) -> Settlement | None:
        """Make one attempt at a task. Returns None if it is suspended, or its handler has settled it."""
        started = time.monotonic()
        attempt = Attempt(self._queue, task, self._lease, self.worker.lease_end)
        self._running[task.shard, task.token] = attempt, asyncio.current_task()
        try:
            result = await asyncio.create_task(self._result_of(attempt))
        except asyncio.CancelledError as fault:
            if is_cancelled_from_outside():
                await self._release(task)
                raise
            result = self._failure(task, fault)
        finally:
            del self._running[task.shard, task.token]
        if isinstance(result, Retry):
            return await self._retry(task, result, started)
        if isinstance(result, Suspend):
            await self._suspend(task, result, started)
            return None
        return None if isinstance(result, AlreadySettled) else _settlement(result)

    async def _result_of(self, attempt: Attempt) -> _Result:
        """Run the handler. It has a task of its own, so that it cannot end or cancel anything but itself, whatever it
        raises: SystemExit and KeyboardInterrupt would leave the event loop.
        """
        try:
            return _checked(await self._handler(attempt))
        except asyncio.CancelledError:
            raise
        except BaseException as fault:  # noqa: BLE001 - whatever a handler raises is a reason to try again
            return self._failure(attempt.task, fault)

    def _failure(self, task: Task, fault: BaseException) -> Retry:
        error = error_text(fault)
        log.error(
            "%s: task %s failed and is retried: %s", self._name, task.task_id, error, exc_info=_writable_trace(fault)
        )
        return Retry(error=error)

    async def _release(self, task: Task) -> None:
        """Return the task uncounted if the worker stops. Otherwise its lease was lost: there is nothing to return."""
        if not self.worker.stopping:
            return
        try:
            await self._queue.release(task)
        except StoreError as fault:
            log.warning("task %s not released, its lease will run out: %s", task.task_id, fault)

    async def _retry(self, task: Task, retry: Retry, started: float) -> Settlement:
        pause = await self._backoff(task) if retry.after is None else retry.after
        due = _moment(task, started, pause)
        return Settlement(SettleResult.RETRY, due=due, body=retry.body, checkpoint=retry.checkpoint, error=retry.error)

    async def _suspend(self, task: Task, suspend: Suspend, started: float) -> None:
        due = _moment(task, started, suspend.longest)
        await self._queue.suspend(task, due, leaves_lane=suspend.leaves_lane, checkpoint=suspend.checkpoint)

    async def _backoff(self, task: Task) -> timedelta:
        if time.monotonic() - self._tube_read > _TUBE_FRESH:
            self._tube, self._tube_read = await self._tubes.get(self._name), time.monotonic()
        return self._tube.backoff.pause(task.attempts)

    def on_extension(self, task: Task, extension: Extension) -> None:
        """Cancel an attempt whose lease was lost; notify one whose task was cancelled."""
        attempt, running = self._running.get((task.shard, task.token), (None, None))
        if attempt and extension.cancelled:
            attempt.cancelled.set()
        if running and attempt and not (extension.lease_valid or attempt.settles):
            running.cancel()


def _moment(task: Task, started: float, pause: timedelta) -> int:
    """Return the server's ms after a pause that begins now. `started`: when the attempt began, by time.monotonic."""
    return task.claimed + int((time.monotonic() - started + pause.total_seconds()) * 1000)


def _checked(result: object) -> _Result:
    """Return the result of a handler. Raises TypeError; Invalid for a text that cannot be stored."""
    if result is None or isinstance(result, str):
        return Done(result or "")
    if not isinstance(result, _Result):
        known = "None, a text, Done, Failed, Retry, Bury, Suspend or AlreadySettled"
        raise TypeError(f"A handler returns {known}, and not {type(result).__name__}.")
    return result


def _writable_trace(fault: BaseException) -> BaseException | None:
    """Return the error for its traceback in the log; None if it has a text with which a log file loses the line."""
    trace = "".join(format_exception(fault))
    return fault if storable(trace) == trace else None


def _settlement(result: "Done | Failed | Bury") -> Settlement:
    match result:
        case Done(answer):
            return Settlement(answer=answer)
        case Failed(answer):
            return Settlement(SettleResult.FAILED, answer=answer)
        case Bury(error):
            return Settlement(SettleResult.BURY, error=error)
