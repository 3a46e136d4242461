"""The interface of a handler: its argument and its results.

A handler is a coroutine function with one `Attempt`. It returns None or a text (done; the text is the answer), or one
of `Done`, `Failed`, `Retry`, `Bury`, `Suspend`, `AlreadySettled`. If it raises, the task is retried after the tube's
back-off; after the last attempt it is buried. A result with a value that cannot be stored raises TypeError or Invalid
where it is made. Called by `core.queue.executor`.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta

from core.queue.checks import check_texts, check_type
from core.queue.queue import Queue
from core.queue.task import Task

_RESULT = "handler's result"


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
