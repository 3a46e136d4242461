"""Ends tasks that talk to Redis."""

import asyncio
from typing import Any

_AGAIN = 0.1


async def cancel_and_wait(*tasks: "asyncio.Task[Any]") -> None:
    """Cancel and wait until all have ended. It is said until it is heard: redis-py writes through `wait_for`, which in
    Python 3.11 may swallow a cancellation.
    """
    waiting = set(tasks)
    while waiting:
        for task in waiting:
            task.cancel()
        _, waiting = await asyncio.wait(waiting, timeout=_AGAIN)
