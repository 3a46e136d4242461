"""Ends tasks."""

import asyncio
from typing import Any

_AGAIN = 0.1


async def cancel_and_wait(*tasks: "asyncio.Task[Any]") -> None:
    """Cancel tasks and wait until all have ended. The cancellation is repeated: in Python 3.11 `asyncio.wait_for`,
    through which redis-py writes, may swallow one.
    """
    waiting = set(tasks)
    while waiting:
        for task in waiting:
            task.cancel()
        _, waiting = await asyncio.wait(waiting, timeout=_AGAIN)


def is_cancelled_from_outside() -> bool:
    """Return whether another task has cancelled the current one: foreign code may raise CancelledError by itself."""
    current = asyncio.current_task()
    return current is not None and current.cancelling() > 0
