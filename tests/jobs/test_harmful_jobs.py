"""Real processes with a job that kills or blocks them: it fails, the jobs beside it go on, the processes come back."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core.jobs import JobId, Jobs, JobState
from core.redis.server_checks import sign_layout
from core.redis.store import Store
from tests.jobs.harmful import Harmful, Patient
from tests.support.servers import Server
from tests.support.waiting import until
from tests.system.crash.process import AdaProcess

HARMFUL = JobId("default", "harmful", "1")
PATIENT = [JobId("default", "patient", str(user)) for user in range(10)]


class Supervised:
    """Processes of `./ada jobs`, each started again when it has ended."""

    def __init__(self, server: Server, folder: Path, jobs: Jobs, lease: str) -> None:
        self.jobs = jobs
        self._lease = lease
        self.deaths = 0
        self._server = server
        self._folder = folder
        self._processes: list[AdaProcess] = []
        self._numbers = 0

    @property
    def begun(self) -> int:
        """How often the harmful job has begun."""
        notes = self._folder / "begun"
        return len(notes.read_text().splitlines()) if notes.exists() else 0

    @property
    def output(self) -> str:
        return "".join(log.read_text() for log in self._folder.glob("jobs-*.log"))

    @property
    def is_free(self) -> bool:
        """Whether the event loop that was blocked is free again."""
        return (self._folder / "free").exists()

    async def start(self) -> None:
        self._numbers += 1
        environment = {
            "ADA_REDIS_URL": self._server.url,
            "ADA_DATA": str(self._folder / "data"),
            "ADA_LEASE": self._lease,
            "ADA_JOBS": "tests.jobs.harmful",
            "HARM": str(self._folder),
        }
        process = AdaProcess(("jobs",), environment, self._folder / f"jobs-{self._numbers}.log")
        self._processes.append(process)
        await process.ready()

    async def supervise(self) -> None:
        while True:
            for process in [process for process in self._processes if not process.is_running]:
                self._processes.remove(process)
                self.deaths += 1
                await self.start()
            await asyncio.sleep(0.1)

    def close(self) -> None:
        for process in self._processes:
            process.kill()

    async def state(self, job_id: JobId = HARMFUL) -> JobState:
        return (await self.jobs.find(job_id)).record.state

    async def logs(self, job_id: JobId, start: str) -> bool:
        return any(line.text.startswith(start) for line in await self.jobs.log.last(job_id))

    async def ended(self) -> list[int]:
        """How many iterations each patient job has ended."""
        return [(await self.jobs.find(job_id)).record.iteration for job_id in PATIENT]


@pytest.fixture
async def supervised(own_server: Server, tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Supervised]:
    """With a lease of two seconds, or of what a test says."""
    store = await Store.open(own_server.url)
    await sign_layout(store)
    jobs = Jobs(store)
    await jobs.kinds.publish({"patient": Patient.schedule, "harmful": Harmful.schedule})
    for job_id in PATIENT:
        await jobs.start(job_id)
    supervised = Supervised(own_server, tmp_path, jobs, getattr(request, "param", "2s"))
    await supervised.start()
    await supervised.start()
    supervising = asyncio.create_task(supervised.supervise())
    yield supervised
    supervising.cancel()
    await asyncio.gather(supervising, return_exceptions=True)
    supervised.close()
    await store.close()


@pytest.mark.parametrize("by", ["kill", pytest.param("exit in a task", marks=pytest.mark.long)])
async def test_a_job_that_ends_its_process_has_failed_after_five_times_and_no_other_has(
    supervised: Supervised, by: str
) -> None:
    await supervised.jobs.start(HARMFUL, {"by": by})

    async def has_failed() -> bool:
        return await supervised.state() is JobState.FAILED

    await until(has_failed, within=200, every=0.2)
    await until(lambda: supervised.deaths >= 5, within=60, every=0.2)  # the last one is noted a moment later
    assert supervised.begun == supervised.deaths == 5
    assert {await supervised.state(job_id) for job_id in PATIENT} == {JobState.RUNNING}
    before = await supervised.ended()

    async def go_on() -> bool:
        return all(now > then for now, then in zip(await supervised.ended(), before, strict=True))

    await until(go_on, within=60, every=0.2)


async def test_the_jobs_of_a_process_that_is_blocked_go_on_in_another(supervised: Supervised) -> None:
    await supervised.jobs.start(HARMFUL, {"by": "compute in a library, once"})
    await until(lambda: supervised.begun == 1, within=60)
    before = await supervised.ended()

    async def go_on() -> bool:
        return all(now > then + 1 for now, then in zip(await supervised.ended(), before, strict=True))

    await until(go_on, within=60, every=0.2)
    assert not supervised.is_free, "they went on only after it"
    await until(lambda: supervised.logs(HARMFUL, "loss 1 of 5: "), within=60, every=0.2)


@pytest.mark.parametrize("supervised", ["10s"], indirect=True)
async def test_a_job_that_blocks_its_process_fails_and_the_process_goes_on(supervised: Supervised) -> None:
    await supervised.jobs.start(HARMFUL, {"by": "sleep"})
    await until(lambda: supervised.logs(HARMFUL, "failure 1, "), within=60, every=0.2)
    (failure,) = [line.text for line in await supervised.jobs.log.last(HARMFUL) if "failure" in line.text]
    assert "blocked all jobs of its process for 5 s in harmful.py, line " in failure
    assert supervised.deaths == 0


async def test_a_process_that_stays_blocked_ends_and_shows_where(supervised: Supervised) -> None:
    await supervised.jobs.start(HARMFUL, {"by": "catch everything"})
    await until(lambda: supervised.deaths >= 1, within=100, every=0.2)
    assert "Timeout (0:00:20)!" in supervised.output
    assert "harmful.py" in supervised.output
