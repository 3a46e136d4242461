"""The worker of a channel's updates (`core.updates`).

Guarantees: the updates of one person are processed one after the other in the order of arrival, by any process; one
that cannot be answered is tried again, and is buried or expires in the end; then the person's next update goes on.
"""

from collections.abc import Awaitable, Callable
from datetime import timedelta

import msgspec

from core.queue import Attempt, QueueClient, Result, Worker
from core.updates import Update, Updates, tube_of

__all__ = ["Handle", "Update", "Updates", "tube_of", "update_worker"]

Handle = Callable[[Update, Attempt], Awaitable[Result]]
"""Processes one update. `attempt.checkpoint` holds what an attempt that was interrupted had saved."""

_LEASE = timedelta(seconds=5)
"""How long a person waits at most if the process that answers is killed."""


def update_worker(client: QueueClient, channel: str, handle: Handle, concurrency: int = 50) -> Worker:
    """A worker that processes the updates of a channel, to `run()` and to `stop()`. Any number of processes may have
    one.
    """

    async def process(attempt: Attempt) -> Result:
        return await handle(msgspec.json.decode(attempt.body, type=Update), attempt)

    return client.worker(tube_of(channel), process, concurrency, lease=_LEASE)
