"""Jobs on a real server, and workers in the test process."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from core.jobs import Actor, DailyWindow, JobId, Jobs, JobState, Schedule, StoredJob
from core.queue import QueueClient
from jobs import Iteration, Job, JobWorker, Registry
from jobs.external_services import Outside
from tests.jobs.fake_service import FakeService
from tests.support.stack import Stack
from tests.support.waiting import until

ANNA = JobId("university", "hunt", "1")
LEASE = timedelta(seconds=10)
HOUR = timedelta(hours=1)

Run = Callable[[Iteration], Awaitable[None]]


@dataclass
class Playground:
    """Jobs of the kind `hunt`, whose iterations a test writes. `start_worker` starts a process's worker."""

    stack: Stack
    run: Run | None = None
    period: timedelta = HOUR
    window: DailyWindow | None = None
    most_failures: int = 5
    max_runtime: timedelta = HOUR
    outside: Outside | None = None
    workers: list[tuple[JobWorker, "asyncio.Task[None]"]] = field(default_factory=list)

    @property
    def registry(self) -> Registry:
        playground = self

        class Hunt(Job):
            name = "hunt"
            schedule = Schedule(playground.period, playground.window)
            most_failures = playground.most_failures
            max_runtime = playground.max_runtime
            checks_names = False  # the iterations are in the files of the tests

            async def run(self, iteration: Iteration) -> None:
                assert playground.run is not None
                await playground.run(iteration)

        return Registry([Hunt])

    @property
    def jobs(self) -> Jobs:
        return Jobs(self.stack.store)

    def start_worker(
        self, lease: timedelta = LEASE, client: QueueClient | None = None, concurrency: int = 100
    ) -> JobWorker:
        store, client = self.stack.store, client or QueueClient(self.stack.store)
        return self.run_worker(JobWorker(store, client, self.registry, concurrency, lease, self.outside))

    def run_worker(self, worker: JobWorker) -> JobWorker:
        self.workers.append((worker, asyncio.create_task(worker.run())))
        return worker

    async def begin_hunt(self, lease: timedelta = LEASE) -> FakeService:
        """Start a worker and Anna's job; return its service, at whose closed gate the first application waits."""
        service = FakeService()
        service.gate.clear()
        self.run = service.hunt
        self.start_worker(lease)
        await self.jobs.start(ANNA)
        await until(lambda: service.waiting == 1)
        return service

    async def stop(self, grace: timedelta = timedelta(seconds=20)) -> None:
        """As SIGTERM."""
        for worker, _ in self.workers:
            worker.stop(grace)
        await asyncio.gather(*(running for _, running in self.workers))
        self.workers.clear()

    async def kill(self) -> None:
        """As kill -9: nothing is settled or released."""
        for _, running in self.workers:
            running.cancel()
        await asyncio.gather(*(running for _, running in self.workers), return_exceptions=True)
        self.workers.clear()

    async def in_state(self, state: JobState, job_id: JobId = ANNA) -> StoredJob:
        """Wait until the job has this state; returns it."""

        async def found() -> StoredJob | None:
            job = await self.jobs.find(job_id)
            return job if job.record.state is state else None

        job = await until(found)
        assert job is not None
        return job

    async def iterations(self, number: int, job_id: JobId = ANNA) -> None:
        """Wait until so many iterations have ended."""

        async def ended() -> bool:
            return (await self.jobs.find(job_id)).record.iteration >= number

        await until(ended)


@pytest.fixture
async def playground(stack: Stack) -> AsyncIterator[Playground]:
    playground = Playground(stack)
    await playground.jobs.kinds.publish(playground.registry.schedules)
    yield playground
    await playground.kill()
    for job in (await playground.jobs.list("university", limit=1000))[0]:
        if job.record.state not in (JobState.STOPPED, JobState.FINISHED):
            await playground.jobs.stop(job.id, Actor.ADMIN)
