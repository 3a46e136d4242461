"""Branches of an iteration that run at the same time, up to a limit.

A branch that sleeps or waits does not hold up the others. When all have ended or wait, the iteration is suspended until
the first of them goes on.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Sequence
from typing import Any

from jobs.recording.guard import Guard
from jobs.recording.names import BRANCH
from jobs.signals import Suspended


class Branches:
    """Runs the branches of one attempt."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._counts: Counter[str] = Counter()

    async def gather(self, branches: Sequence[Awaitable[Any]], at_once: int) -> list[Any]:
        """Return the results in the order of the branches. All have ended before the first error is raised."""
        outer = BRANCH.get()
        self._counts[outer] += 1
        room, place = asyncio.Semaphore(at_once), f"{outer}/{self._counts[outer]}"

        async def run(number: int, branch: Awaitable[Any]) -> Any:
            async with room:
                BRANCH.set(f"{place}.{number}")
                return await branch

        tasks = [asyncio.create_task(run(number, branch)) for number, branch in enumerate(branches)]
        try:
            ends = await asyncio.gather(*tasks, return_exceptions=True)
        except BaseException:
            await self._cancel(tasks)
            raise
        faults = [end for end in ends if isinstance(end, BaseException)]
        for fault in faults:
            if not isinstance(fault, Suspended):
                raise fault
        suspended = [fault for fault in faults if isinstance(fault, Suspended)]
        if suspended:
            raise self._guard.suspend(
                min(one.until for one in suspended),
                [signal for one in suspended for signal in one.waits_for],
                next((one.reason for one in suspended if one.reason), ""),
            )
        return list(ends)

    async def _cancel(self, tasks: Sequence["asyncio.Task[Any]"]) -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
