"""Drives a run: executes its released steps one after the other, in the author's order, until it is over or only waits.

A step that ordered a delivery ends when the delivery does; other released steps go on meanwhile. Deliveries are awaited
in place for a second, because most of them take a few milliseconds. Then, or when only slow actions are left, the run
is parked: it occupies no worker, and the end of a delivery or of a slow action has it driven on. `suspension`
says how long the person's next event waits for it.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from functools import partial

from core.deliveries.deliveries import Deliveries
from core.model.states import REACHED
from core.queue import Attempt, Result, Suspend
from core.queue.task_ids import put_ms
from scenarios.actions import ask
from scenarios.context import Asking, Waiting
from scenarios.engine import Ending, Path, State, Step, failed
from scenarios.execution.parking import DeliveryEnds, Parking
from scenarios.execution.runs import RunGone, Runs, StoredRun, Waits, WaitsFor
from scenarios.execution.step_executor import SlowSteps, StepExecutor
from scenarios.sending.results import arrived, ended, ending_of_one, of_parts
from scenarios.words import sentence

log = logging.getLogger(__name__)

PATIENCE = 1.0
"""Seconds that a delivery is awaited in place."""

FOR_ANSWERS = timedelta(minutes=10)
"""A later answer could not arrive before them either: the messages of a chat keep their order."""

FOR_OTHERS = timedelta(minutes=1)
"""The lease of broadcasts and slow actions, which concern more than the person and may take hours."""

_AGAIN = timedelta(hours=1)
"""A run without a turn is looked at again after this time. It is woken before, as soon as what it waits for ends."""


class Driver:
    """One per process."""

    def __init__(
        self,
        runs: Runs,
        executor: StepExecutor,
        deliveries: Deliveries,
        ends: DeliveryEnds,
        parking: Parking,
        slow: SlowSteps,
        patience: float = PATIENCE,
    ) -> None:
        self.runs = runs
        self.executor = executor
        self.ends = ends
        self.parking = parking
        self.slow = slow
        self.patience = patience
        self._deliveries = deliveries

    async def drive(self, stored: StoredRun, attempt: Attempt) -> Result:
        """Drive the run until it is over or parked; return what becomes of the task of its event. Raises StoreError:
        then it is driven again.
        """
        drive = _Drive(self, stored)
        try:
            await drive.run()
        except RunGone as gone:
            log.warning("%s", gone)
            return None
        finally:
            drive.stop_watching()
        if drive.stored.is_over:
            return None
        now = self.runs.now()
        age = timedelta(milliseconds=now - (put_ms(attempt.task.id) or now))
        return suspension(stored.id, drive.stored.waits.values(), age, now)

    async def ending_of(self, stored: StoredRun, step: Step, waiting: Waiting) -> Ending | Waiting | None:
        """Return the end of a step whose deliveries have ended; the next one to wait for; None if the delivery has not
        ended.
        """
        ending = self._seen(waiting) or await ended(self._deliveries, waiting.delivery, stored.tenant)
        if ending is None:
            return None
        endings = [ending]
        for one in waiting.others:
            following = await ended(self._deliveries, one, stored.tenant)
            if following is None:
                rest = tuple(other for other in (waiting.delivery, *waiting.others) if other != one)
                return Waiting(one, others=rest)
            endings.append(following)
        return self.executor.finished(stored, step, of_parts(endings) if waiting.others else ending)

    def _seen(self, waiting: Waiting) -> Ending | None:
        """Return the ending by the events alone, which spares reading the history of most deliveries."""
        outcome = self.ends.outcome(waiting.delivery) if waiting.one else None
        return ending_of_one(waiting.delivery, outcome) if outcome and outcome.status in REACHED else None


class _Drive:
    """One call of `drive`. `waiting`: the steps whose deliveries are under way. `slow`: the steps of other tubes.
    `asking`: the steps that wait for an answer. `ended`: the steps whose deliveries have ended.
    """

    def __init__(self, driver: Driver, stored: StoredRun) -> None:
        self.stored = stored
        self._driver = driver
        self._waiting: dict[Path, Waiting] = {}
        self._slow: set[Path] = set()
        self._asking: dict[Path, Asking] = {}
        self._ended: set[Path] = set()
        self._changed = asyncio.Event()
        self._stops: list[Callable[[], None]] = []

    async def run(self) -> None:
        for path, waiting in self.stored.waits.items():
            await self._resume(path, waiting)
        while not self.stored.is_over:
            if step := self._next():
                await self._execute(step)
            elif not await self._finish_deliveries():
                await self._park()
                return

    async def _resume(self, path: Path, waiting: WaitsFor) -> None:
        """Resume a step. A parked step is not executed again."""
        if self.stored.run.steps[path].is_over:
            return
        if waiting is None:
            self._slow.add(path)
        elif isinstance(waiting, Asking):
            await self._resume_asking(path, waiting)
        else:
            self._wait(path, waiting)

    async def _resume_asking(self, path: Path, asking: Asking) -> None:
        """End a step without an answer at its time limit; ask again when a reminder is due."""
        step, now, executor = self.stored.run.steps[path], self._driver.runs.now(), self._driver.executor
        if now >= asking.until:
            ending = executor.finished(self.stored, step, failed("NO_ANSWER", sentence("no_answer_in_time")))
            self.stored = await self._driver.runs.record(self.stored, path, ending)
            return
        is_due = bool(asking.remind) and now >= asking.remind
        self._ask(path, await ask.remind(executor.context(self.stored, step), asking) if is_due else asking)

    def _ask(self, path: Path, asking: Asking) -> None:
        """Wait for an answer, and first for the end of the question's delivery."""
        self._asking[path] = asking
        if asking.under_way:
            self._wait(path, Waiting(asking.under_way, one=True))

    def _wait(self, path: Path, waiting: Waiting) -> None:
        self._waiting[path] = waiting
        self._stops.append(self._driver.ends.watch(waiting.delivery, partial(self._on_end, path)))

    def stop_watching(self) -> None:
        for stop in self._stops:
            stop()

    def _next(self) -> Step | None:
        """Return the first released step that is not under way."""
        under_way = self._waiting.keys() | self._slow | self._asking.keys()
        released = (step for step in self.stored.run.steps.values() if step.state is State.PENDING)
        return min((step for step in released if step.path not in under_way), key=_path, default=None)

    async def _execute(self, step: Step) -> None:
        if self._driver.executor.tube_of(step):
            self._slow.add(step.path)
            return
        found = await self._driver.executor.execute(self.stored, step)
        if isinstance(found, Waiting):
            self._wait(step.path, found)
        elif isinstance(found, Asking):
            self._ask(step.path, found)
        else:
            self.stored = await self._driver.runs.record(self.stored, step.path, found)

    def _on_end(self, path: Path) -> None:
        self._ended.add(path)
        self._changed.set()

    async def _finish_deliveries(self) -> bool:
        """Wait until a delivery has ended, and end its step. Returns False if that takes too long."""
        if not self._waiting:
            return False
        if not self._ended:
            await self._driver.ends.check(one.delivery for one in self._waiting.values() if not one.is_new)
        if not self._ended and (self._slow or not await self._in_time()):
            return False
        ended, self._ended = self._ended, set()
        self._changed.clear()
        await self._end_steps(ended)
        return True

    async def _end_steps(self, paths: Iterable[Path]) -> None:
        for path in sorted(paths):
            if path not in self._waiting:
                continue
            step = self.stored.run.steps[path]
            ending = await self._driver.ending_of(self.stored, step, self._waiting[path])
            if isinstance(ending, Waiting):
                self._wait(path, ending)
            elif ending:
                del self._waiting[path]
                await self._end(path, ending)

    async def _end(self, path: Path, ending: Ending) -> None:
        """End a step by the end of its delivery; a question that has arrived waits for its answer."""
        if path in self._asking:
            context = self._driver.executor.context(self.stored, self.stored.run.steps[path], warns=False)
            found = arrived(context, self._asking.pop(path), ending)
            if isinstance(found, Asking):
                self._asking[path] = found
                return
        self.stored = await self._driver.runs.record(self.stored, path, ending)

    async def _in_time(self) -> bool:
        try:
            async with asyncio.timeout(self._driver.patience):
                await self._changed.wait()
        except TimeoutError:
            return False
        return True

    async def _park(self) -> None:
        """Leave the run to its wake-ups."""
        slow = (path for path in self._slow if not self.stored.run.steps[path].is_over)
        waits: Waits = {**dict.fromkeys(slow), **self._waiting, **self._asking}
        known = self.stored.waits
        new = {path: waiting for path, waiting in waits.items() if path not in known or known[path] != waiting}
        for path in sorted(path for path, waiting in new.items() if waiting is None):
            await self._driver.slow.put(self.stored, self.stored.run.steps[path])
        if new:
            await self._driver.parking.park(self.stored, new)
        self.stored = replace(self.stored, waits=waits)


def _path(step: Step) -> Path:
    return step.path


def suspension(run: str, waits: Iterable[WaitsFor], age: timedelta, now: int) -> Suspend:
    """Return what the task of an event does while its run waits. `age`: since the event arrived. `now`: ms."""
    waits = list(waits)
    if due := [one.due for one in waits if isinstance(one, Asking)]:  # the answer is the next in the lane
        return Suspend(timedelta(milliseconds=max(min(due) - now, 0)), leaves_lane=True, checkpoint=run)
    longest = FOR_ANSWERS if all(isinstance(one, Waiting) and one.one for one in waits) else FOR_OTHERS
    if age < longest:
        return Suspend(longest - age, checkpoint=run)
    return Suspend(_AGAIN, leaves_lane=True, checkpoint=run)
