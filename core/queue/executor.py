"""Attempts: what a handler answers or raises becomes the end of an attempt.

Before: `core.queue.worker` gives a task. After: `core.queue.settler` tells its end.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from core.errors import StoreError
from core.queue.queue import Queue
from core.queue.task import Claim, Extension, Settlement, Task
from core.queue.tubes import Tube, Tubes

log = logging.getLogger(__name__)

# A tube's options are asked for again after so many seconds.
_FRESH = 5.0


@dataclass(frozen=True, slots=True)
class Done:
    """It is over; `answer` goes to whoever waits for it."""

    answer: str = ""


@dataclass(frozen=True, slots=True)
class Failed:
    """It is over and did not work; nobody tries again."""

    answer: str = ""


@dataclass(frozen=True, slots=True)
class Retry:
    """Not yet. `after` None: the tube's back-off. `body`: what the next attempt gets instead, if anything (K-37)."""

    after: timedelta | None = None
    body: str = ""
    checkpoint: str = ""


@dataclass(frozen=True, slots=True)
class Bury:
    """A person must look at it."""


Result = Done | Failed | Retry | Bury | str | None


class Attempt:
    """A task in a handler's hands."""

    def __init__(self, queue: Queue, task: Task, lease: timedelta) -> None:
        self.task = task
        self.body = task.body
        self.checkpoint = task.checkpoint
        self.cancelled = asyncio.Event()
        self._queue = queue
        self._lease = lease

    async def save(self, checkpoint: str) -> bool:
        """Keep how far this got: the next holder gets it, should this one die (K-33). False: stop, it was cancelled
        or is another's by now.
        """
        told = await self._queue.extend(self.task, self._lease, checkpoint=checkpoint)
        if told.cancelled:
            self.cancelled.set()
        return told.lease_valid and not told.cancelled


Handler = Callable[[Attempt], Awaitable[Result]]


class Executor:
    """All attempts of one worker. `stopping` tells whether it is to end."""

    def __init__(self, queue: Queue, tubes: Tubes, tube: str, handler: Handler, lease: timedelta) -> None:
        self._queue = queue
        self._tubes = tubes
        self._name = tube
        self._handler = handler
        self._lease = lease
        self._jobs: dict[str, tuple[Attempt, asyncio.Task[Any] | None]] = {}
        self._tube = Tube(tube)
        self._asked = float("-inf")
        self.stopping: Callable[[], bool] = lambda: False

    async def attempt(self, task: Task, claim: Claim) -> Settlement:
        """One attempt at one task."""
        began = time.monotonic()
        job = Attempt(self._queue, task, self._lease)
        self._jobs[task.token] = job, asyncio.current_task()
        try:
            result = await self._handler(job)
        except asyncio.CancelledError:
            await self._give_back(task)
            raise
        except Exception:  # the attempt: whatever a handler raises is a reason to try again
            log.exception("%s: task %s", self._name, task.name)
            result = Retry()
        finally:
            del self._jobs[task.token]
        if isinstance(result, Retry):
            return await self._retry(task, result, began)
        return _settlement(result)

    async def _give_back(self, task: Task) -> None:
        """The worker ends and waits no longer; this was no attempt. Otherwise the lease was lost."""
        if not self.stopping():
            return
        try:
            await self._queue.release(task)
        except StoreError as fault:
            log.warning("task %s left to its lease: %s", task.name, fault)

    async def _retry(self, task: Task, retry: Retry, began: float) -> Settlement:
        pause = await self._pause(task) if retry.after is None else retry.after
        due = task.claimed + int((time.monotonic() - began + pause.total_seconds()) * 1000)
        return Settlement("retry", due=due, body=retry.body, checkpoint=retry.checkpoint)

    async def _pause(self, task: Task) -> timedelta:
        if time.monotonic() - self._asked > _FRESH:
            self._tube, self._asked = await self._tubes.get(self._name), time.monotonic()
        return self._tube.backoff.pause(task.attempts)

    def hear(self, task: Task, told: Extension) -> None:
        """What the renewal of a lease told: a job that was lost is stopped, one that was cancelled is told."""
        job, running = self._jobs.get(task.token, (None, None))
        if job and told.cancelled:
            job.cancelled.set()
        if running and not told.lease_valid:
            running.cancel()


def _settlement(result: "Done | Failed | Bury | str | None") -> Settlement:
    match result:
        case Done(answer):
            return Settlement(answer=answer)
        case Failed(answer):
            return Settlement("failed", answer=answer)
        case Bury():
            return Settlement("bury")
        case _:
            return Settlement(answer=result or "")
