"""The worker of a channel's events for dialogs (`core.updates`).

Guarantees: the events of one person are processed one after the other in the order of arrival, by any process; an event
that cannot be answered is tried again, and is buried or expires in the end; then the person's next event goes on.
"""

from collections.abc import Awaitable, Callable
from datetime import timedelta

from bots.dialog_event import DialogEvent, dialog_event
from core.queue import Attempt, QueueClient, Result, Worker
from core.updates.events import decode, dialogs_tube

Handle = Callable[[DialogEvent, Attempt], Awaitable[Result]]
"""Processes one event. `attempt.checkpoint` holds what an attempt that was interrupted had saved."""

_LEASE = timedelta(seconds=5)
"""How long a person waits at most if the process that answers is killed."""


def event_worker(client: QueueClient, channel: str, handle: Handle, concurrency: int = 50) -> Worker:
    """Return a worker that processes the events of a channel, to `run()` and to `stop()`. Any number of processes may
    have one.
    """

    async def process(attempt: Attempt) -> Result:
        return await handle(dialog_event(decode(attempt.body)), attempt)

    return client.worker(dialogs_tube(channel).name, process, concurrency, lease=_LEASE)
