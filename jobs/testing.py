"""Tests of jobs: a clock that the test moves, doubles of what a job does outside, and a crash at every point.

    async def story(test: JobTest) -> None:
        mail = test.double(shop, "send_mail")
        await test.start("watch.42", {"book": "1984"})
        await test.advance(timedelta(days=1))
        assert mail.calls == [("1984",)]

    async def test_a_watcher_sends_one_mail() -> None:
        await run_story(story, Watch)

    async def test_a_crash_at_any_point_changes_nothing() -> None:
        await try_every_crash(story, Watch)

Guarantee: the jobs run on a real Valkey, with the code that runs them in production; only the clock and the processes
are the test's. One server is started for all tests of a process.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from unittest.mock import patch

from core.jobs import JobId, Jobs, JobStorage
from core.jobs.notices import TUBE as NOTICES
from core.jobs.queries import AskedQuery
from core.jobs.storage import tube_of
from core.jobs.views import JobView, view_of
from core.model.clock import to_ms
from core.queue import AlreadySettled, Attempt, Result, Retry, Suspend
from core.queue.task import Claim, ClaimRequest, Settlement, SettleResult, Task
from core.queue.workers.stepping import SteppedQueue, server_url
from core.redis.store import Store
from core.services import Services, open_services
from jobs.external_services import Outside
from jobs.job import Job
from jobs.notices import Notifier
from jobs.queries import QueryAnswers
from jobs.registry import Registry
from jobs.worker import LEASE, JobWorker

_LONGEST_POINT = 100

TENANT = "default"
MONDAY = datetime(2030, 1, 7, 9, tzinfo=UTC)
"""When the clock of a test begins."""


class Killed(BaseException):
    """The process of the job was killed at this point."""


class Crashes:
    """Counts the points at which a process may be killed: before and after each thing that it stores or does outside.
    `at`: the number of the one at which it is killed, from 1; 0: at none.
    """

    def __init__(self, at: int = 0) -> None:
        self.at = at
        self.points: list[str] = []
        self._is_dead = False

    def pass_point(self, name: str) -> None:
        """Raises Killed here, and at every point after it until `revive`."""
        if not self._is_dead:
            self.points.append(name)
            self._is_dead = len(self.points) == self.at
        if self._is_dead:
            raise Killed(name)

    def revive(self) -> None:
        """Begin another process."""
        self._is_dead = False


class Double:
    """Stands for a function that a job calls. `calls`: the arguments of those that took place. `answer`: what it
    returns, or a function that makes that of the arguments; an exception is raised.
    """

    def __init__(self, name: str, answer: Any, crashes: Crashes) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.answer = answer
        self._name = name
        self._crashes = crashes
        self._keys: dict[str, Any] = {}

    async def __call__(self, *arguments: Any, idempotency_key: str = "") -> Any:
        """Take place, unless a call with this key has."""
        self._crashes.pass_point(f"before {self._name}")
        if not idempotency_key or idempotency_key not in self._keys:
            answer = self.answer(*arguments) if callable(self.answer) else self.answer
            if isinstance(answer, BaseException):
                raise answer
            self.calls.append(arguments)
            self._keys[idempotency_key] = answer
        self._crashes.pass_point(f"after {self._name}")
        return self._keys[idempotency_key]

    async def has_taken_place(self, *arguments: Any) -> bool:
        """Return whether a call with these arguments took place: for `exists`."""
        return arguments in self.calls


class CrashingStorage(JobStorage):
    """Has a point before and after everything that an attempt stores."""

    def __init__(self, store: Store, crashes: Crashes) -> None:
        super().__init__(store)
        self._crashes = crashes

    async def _passing(self, name: str, writing: Awaitable[Any]) -> Any:
        try:
            self._crashes.pass_point(f"before {name}")
        except Killed:
            writing.close()  # type: ignore[attr-defined]
            raise
        result = await writing
        self._crashes.pass_point(f"after {name}")
        return result

    async def save(self, *arguments: Any, **options: Any) -> Any:
        return await self._passing("the change of the job", super().save(*arguments, **options))

    async def begin_iteration(self, *arguments: Any) -> Any:
        return await self._passing("the beginning of the iteration", super().begin_iteration(*arguments))

    async def end_iteration(self, *arguments: Any, **options: Any) -> Any:
        return await self._passing("the end of the iteration", super().end_iteration(*arguments, **options))

    async def _run_for(self, verb: str, job_id: JobId, holder: str, *words: str) -> str:
        point = " ".join((verb, *words))[:_LONGEST_POINT]
        return str(await self._passing(point, super()._run_for(verb, job_id, holder, *words)))


class JobTest:
    """Jobs of these kinds, on an empty server. Made by `JobTest.open`, `run_story` and `try_every_crash`."""

    def __init__(self, core: Services, kinds: Sequence[type[Job]], crashes: Crashes, outside: Outside | None) -> None:
        self.store = core.store
        self.jobs = Jobs(core.store)
        self._core = core
        self._crashes = crashes
        self._outside = outside
        self._patches = ExitStack()
        self._queue = SteppedQueue(core.store, core.queue)
        self.deploy(*kinds)

    def deploy(self, *kinds: type[Job]) -> None:
        """Go on with these classes, as after a deploy of other code."""
        registry, killable = Registry(kinds), Jobs(self.store)
        killable.storage = CrashingStorage(self.store, self._crashes)
        self.worker = JobWorker(self.store, self._core.client, registry, outside=self._outside, jobs=killable)
        self._answers = QueryAnswers(self.jobs, registry.kinds)
        handlers = {tube_of(name): self.worker.handle for name in registry.kinds}
        handlers[NOTICES] = Notifier(self._core).handle
        self._queue.steps = {tube: partial(self._step, tube, handle) for tube, handle in handlers.items()}

    @classmethod
    @asynccontextmanager
    async def open(
        cls, *kinds: type[Job], at: datetime = MONDAY, crashes: Crashes | None = None, outside: Outside | None = None
    ) -> AsyncIterator["JobTest"]:
        """Open a test on an empty server. `at`: when its clock begins."""
        store = await Store.open(server_url())
        try:
            await store.command("FLUSHALL")
            async with open_services(store) as core:
                test = cls(core, kinds, crashes or Crashes(), outside)
                test._queue.begin_at(at)
                await test.worker.publish()
                with test._patches:
                    yield test
        finally:
            await store.close()

    @property
    def now(self) -> datetime:
        """The time by the clock of the test, aware."""
        return self._queue.now

    def double(self, owner: Any, name: str, answer: Any = None) -> Double:
        """Replace a function of a module or a class by a double, until the test ends."""
        double = Double(name, answer, self._crashes)
        self._patches.enter_context(patch.object(owner, name, double))
        return double

    async def start(self, job: str, parameters: Mapping[str, Any] | None = None, **options: Any) -> None:
        """Start a job, for example `watch.42`, and run what is due. `options`: as `Jobs.start`."""
        await self.jobs.start(self.id_of(job), parameters, **options)
        await self.run()

    async def signal(self, job: str, name: str, data: Any = None) -> None:
        """Send a signal to a job, and run what is due."""
        await self.jobs.signal(self.id_of(job), name, data)
        await self.run()

    async def query(self, job: str, name: str, **parameters: Any) -> Any:
        """Return what a job answers to a query. Raises as `core.jobs.queries.ask`."""
        return (await self._answers.answer(AskedQuery(self.id_of(job), name, parameters))).value()

    async def job(self, job: str) -> JobView:
        """Return a job as HTTP shows it."""
        return view_of(await self.jobs.find(self.id_of(job)))

    async def log(self, job: str) -> list[str]:
        """Return the lines of the live log that the job has written, without those about starts and ends."""
        return [line.text for line in await self.jobs.log.last(self.id_of(job), 1000)]

    async def advance(self, time: timedelta) -> None:
        """Move the clock, and run what falls due on the way."""
        await self._queue.advance(time)

    async def run(self) -> datetime | None:
        """Run what is due now. Returns when something else falls due; None: nothing does by itself."""
        return await self._queue.run()

    async def _step(self, tube: str, handle: Callable[[Attempt], Any]) -> Claim:
        claim = await self._core.queue.claim(0, ClaimRequest(tube, "test", 1, LEASE, LEASE))
        for task in claim.tasks:
            await self._attempt(task, handle)
        return claim

    async def _attempt(self, task: Task, handle: Callable[[Attempt], Any]) -> None:
        """Make an attempt at a task. A process that is killed leaves it to another when its lease has ended."""
        try:
            result = await handle(Attempt(self._core.queue, task, LEASE, lambda _: float("inf")))
        except Killed:
            self._crashes.revive()
            self._queue.move_to(self.now + LEASE)
            return
        if isinstance(result, AlreadySettled):
            return
        if isinstance(result, Suspend):
            due = to_ms(self.now + result.longest)
            await self._core.queue.suspend(task, due, leaves_lane=result.leaves_lane)
        else:
            await self._core.queue.settle_page(0, [self._settlement(result).row(task)])

    def _settlement(self, result: Result) -> Settlement:
        if not isinstance(result, Retry):
            return Settlement()
        due = to_ms(self.now + (result.after or timedelta(0)))
        return Settlement(SettleResult.RETRY, due=due, checkpoint=result.checkpoint, error=result.error)

    @staticmethod
    def id_of(job: str) -> JobId:
        return JobId.parse(TENANT, job)


Story = Callable[[JobTest], Awaitable[None]]


async def run_story(story: Story, *kinds: type[Job], **options: Any) -> None:
    """Play a story on an empty server. `options`: as `JobTest.open`."""
    async with JobTest.open(*kinds, **options) as test:
        await story(test)


async def try_every_crash(story: Story, *kinds: type[Job], **options: Any) -> int:
    """Play a story without a crash, and then once for each point of it with a kill -9 there; each crash costs ten
    seconds of the test's clock. Returns how many points there are. Raises what the story raises, with the point.
    """
    whole = Crashes()
    await run_story(story, *kinds, crashes=whole, **options)
    for number, point in enumerate(whole.points, 1):
        try:
            await run_story(story, *kinds, crashes=Crashes(number), **options)
        except BaseException as fault:
            fault.add_note(f"with a crash at point {number} of {len(whole.points)}: {point}")
            raise
    return len(whole.points)
