"""Real processes of jobs that are stopped, killed and frozen, on a server that is killed, too."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core.jobs import Actor, JobId, Jobs, JobState
from core.redis.server_checks import sign_layout
from core.redis.store import Store
from tests.jobs.hunting import Hunt
from tests.jobs.service import Service
from tests.support.servers import Server
from tests.support.waiting import until
from tests.system.crash.process import AdaProcess

LEASE = 1
USERS = [JobId("default", "hunt", str(user)) for user in range(30)]


class Deployment:
    """Processes of `./ada jobs` against one service."""

    def __init__(self, server: Server, folder: Path, service: Service, jobs: Jobs) -> None:
        self.server = server
        self.service = service
        self.jobs = jobs
        self._folder = folder
        self._processes: list[AdaProcess] = []

    async def start(self) -> AdaProcess:
        environment = {
            "ADA_REDIS_URL": self.server.url,
            "ADA_DATA": str(self._folder / "data"),
            "ADA_LEASE": f"{LEASE}s",
            "ADA_JOBS": "tests.jobs.hunting",
            "HUNT_URL": self.service.url,
        }
        process = AdaProcess(("jobs",), environment, self._folder / f"jobs-{len(self._processes)}.log")
        self._processes.append(process)
        await process.ready()
        return process

    async def strike(self, process: AdaProcess, blow: str) -> None:
        getattr(process, blow)()
        if blow in ("terminate", "interrupt"):
            assert await process.wait() == 0

    def close(self) -> None:
        for process in self._processes:
            process.kill()

    async def progress(self, iterations: int = 2) -> None:
        """Wait until every running job has ended so many more iterations."""
        before = {job_id: await self._ended(job_id) for job_id in USERS}

        async def went_on() -> bool:
            for job_id, ended in before.items():
                job = await self.jobs.find(job_id)
                if job.record.state is JobState.RUNNING and job.record.iteration < ended + iterations:
                    return False
            return True

        await until(went_on, within=60, every=0.1)

    async def _ended(self, job_id: JobId) -> int:
        return (await self.jobs.find(job_id)).record.iteration

    def check_that_nothing_was_done_twice(self) -> None:
        doubled = {key: count for key, count in self.service.applied.items() if count > 1}
        assert doubled == {}
        repeated = {key: count for key, count in self.service.searched.items() if count > 2}
        assert repeated == {}, "a search whose result was not stored is repeated, others are not"


@pytest.fixture
async def deployment(own_server: Server, tmp_path: Path) -> AsyncIterator[Deployment]:
    service = Service()
    await service.start()
    store = await Store.open(own_server.url)
    await sign_layout(store)
    jobs = Jobs(store)
    await jobs.kinds.publish({"hunt": Hunt.schedule})
    deployment = Deployment(own_server, tmp_path, service, jobs)
    yield deployment
    deployment.close()
    await store.close()
    await service.stop()


async def test_processes_are_stopped_killed_and_frozen_and_no_item_is_applied_to_twice(deployment: Deployment) -> None:
    processes = [await deployment.start() for _ in range(2)]
    for job_id in USERS:
        await deployment.jobs.start(job_id)
        await asyncio.sleep(1 / len(USERS))  # so that at each moment some are in the middle of an application
    await deployment.jobs.pause(USERS[0], Actor.USER, "holiday")
    await deployment.progress(1)
    for blow in ("kill", "terminate", "freeze", "kill"):
        victim = processes.pop(0)
        await deployment.strike(victim, blow)
        processes.append(await deployment.start())
        await deployment.progress(1)
        if blow == "freeze":
            victim.resume()
            await deployment.progress(1)
            victim.kill()
    deployment.check_that_nothing_was_done_twice()
    paused = await deployment.jobs.find(USERS[0])
    assert (paused.record.state, paused.record.reason) == (JobState.PAUSED, "holiday")


async def test_jobs_go_on_after_the_server_was_killed(deployment: Deployment) -> None:
    await deployment.start()
    for job_id in USERS[:5]:
        await deployment.jobs.start(job_id)
    for job_id in USERS[5:]:
        await deployment.jobs.start(job_id)
        await deployment.jobs.stop(job_id, Actor.USER)
    await deployment.progress(1)
    deployment.server.kill()
    deployment.server.start()
    await deployment.progress(2)
    doubled = [key for key, count in deployment.service.applied.items() if count > 1]
    assert doubled == []
    assert {(await deployment.jobs.find(job_id)).record.state for job_id in USERS[5:]} == {JobState.STOPPED}


async def test_a_process_exits_within_its_grace_time_though_the_unit_in_hand_does_not_end(
    deployment: Deployment,
) -> None:
    """What was interrupted is asked for by the next process, and not done twice."""
    service, job_id = deployment.service, USERS[0]
    service.takes = 600
    process = await deployment.start()
    await deployment.jobs.start(job_id)
    await until(lambda: len(service.applied) == 1, within=60)
    process.terminate()
    assert await process.wait(60) == 0
    job = await deployment.jobs.find(job_id)
    assert (job.record.state, job.record.iteration, len(service.applied)) == (JobState.RUNNING, 0, 1)
    service.takes = 0.0
    await deployment.start()

    async def has_ended() -> bool:
        return (await deployment.jobs.find(job_id)).record.iteration > 0

    await until(has_ended, within=60, every=0.1)
    deployment.check_that_nothing_was_done_twice()


@pytest.mark.parametrize("blow", ["interrupt", "terminate"])
async def test_after_ctrl_c_or_sigterm_the_unit_in_hand_is_finished_and_no_other_begins(
    deployment: Deployment, blow: str
) -> None:
    service, job_id = deployment.service, USERS[0]
    service.offers, service.takes = 20, 0.5
    process = await deployment.start()
    await deployment.jobs.start(job_id)
    await until(lambda: len(service.applied) >= 2, within=60)
    before = len(service.applied)
    await deployment.strike(process, blow)
    assert before <= len(service.applied) < service.offers, "the rest waits"
    (status,) = await deployment.jobs.storage.units(job_id, [f"effect:item-{len(service.applied) - 1}"])
    assert status is not None
    assert '"status":"done"' in status, "the unit in hand was finished"
    job = await deployment.jobs.find(job_id)
    assert (job.record.state, job.record.iteration) == (JobState.RUNNING, 0)
    service.takes = 0.0
    again = await deployment.start()
    await until(lambda: "jobs that were interrupted and go on: 1;" in again.output)

    async def has_ended() -> bool:
        return (await deployment.jobs.find(job_id)).record.iteration > 0

    await until(has_ended, within=60, every=0.1)
    deployment.check_that_nothing_was_done_twice()
