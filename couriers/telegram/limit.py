"""One time limit for many who wait, with one timer: for whoever has waited longest.

`asyncio.timeout` makes a timer for each; at thousands of requests a second they cost more than asking does.
"""

import asyncio
from collections.abc import Awaitable
from datetime import timedelta
from typing import Any


class TimeLimit:
    """A task waits for one thing at a time."""

    def __init__(self, longest: timedelta) -> None:
        self._longest = longest.total_seconds()
        self._ends: dict[asyncio.Task[Any], float] = {}  # those who wait, the longest waiting first
        self._late: set[asyncio.Task[Any]] = set()
        self._timer: asyncio.TimerHandle | None = None

    async def keep(self, call: Awaitable[Any]) -> Any:
        """What the call answers. Raises TimeoutError when that takes too long; the call is cancelled by then."""
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None
        self._ends[task] = end = loop.time() + self._longest
        if self._timer is None:
            self._timer = loop.call_at(end, self._look)
        try:
            return await call
        except asyncio.CancelledError:
            # Who was cancelled by somebody else as well is cancelled.
            if task in self._late and task.uncancel() == 0:
                raise TimeoutError from None
            raise
        finally:
            del self._ends[task]
            self._late.discard(task)

    def _look(self) -> None:
        self._timer = None
        loop = asyncio.get_running_loop()
        for task, end in self._ends.items():
            if end > loop.time():
                self._timer = loop.call_at(end, self._look)
                return
            if task not in self._late:
                self._late.add(task)
                task.cancel()
