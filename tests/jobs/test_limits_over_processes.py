"""Limits hold over two real processes, also if one of them is killed, and its slots come back (U-27)."""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from core.jobs import Actor, JobId, Jobs, JobState
from core.redis.server_checks import sign_layout
from core.redis.store import Store
from tests.jobs.limited import ACCOUNT, KIND, PER, RATE, USER, Order, Query
from tests.jobs.shop import Shop, shortest
from tests.support.servers import Server
from tests.support.waiting import until
from tests.system.crash.process import AdaProcess

TOLERANCE = 0.7
"""Seconds by which a call may come later than another that has begun later, on a busy machine."""


class Market:
    """Processes of `./ada jobs` with limits against one shop."""

    def __init__(self, server: Server, folder: Path, shop: Shop, jobs: Jobs) -> None:
        self.shop = shop
        self.jobs = jobs
        self._server = server
        self._folder = folder
        self.processes: list[AdaProcess] = []

    async def start_process(self) -> AdaProcess:
        environment = {
            "ADA_REDIS_URL": self._server.url,
            "ADA_DATA": str(self._folder / "data"),
            "ADA_LEASE": "1s",
            "ADA_JOBS": "tests.jobs.limited",
            "SHOP_URL": self.shop.url,
        }
        process = AdaProcess(("jobs",), environment, self._folder / f"jobs-{len(self.processes)}.log")
        self.processes.append(process)
        await process.ready()
        return process

    async def start_jobs(self, kind: str, jobs: Mapping[JobId, str]) -> None:
        """Start jobs with these accounts."""
        for job_id, account in jobs.items():
            await self.jobs.start(job_id, {"account": account})

    async def all_have_ended(self, jobs: Mapping[JobId, str]) -> bool:
        found = [await self.jobs.find(job_id) for job_id in jobs]
        assert all(job.record.state is not JobState.FAILED for job in found)
        return all(job.record.state is JobState.FINISHED for job in found)


@pytest.fixture
async def market(own_server: Server, tmp_path: Path) -> AsyncIterator[Market]:
    shop = Shop()
    await shop.start()
    store = await Store.open(own_server.url)
    await sign_layout(store)
    jobs = Jobs(store)
    await jobs.kinds.publish({"order": Order.schedule, "query": Query.schedule})
    market = Market(own_server, tmp_path, shop, jobs)
    yield market
    for process in market.processes:
        process.kill()
    await store.close()
    await shop.stop()


def jobs_of(kind: str) -> dict[JobId, str]:
    """Eight jobs of each of three users, several with each account."""
    return {JobId("default", kind, str(n % 3), f"k{n}"): "xyz"[n % 9 // 3] for n in range(24)}


async def test_no_more_iterations_run_at_once_than_the_limits_of_kind_person_and_account_say(market: Market) -> None:
    jobs = jobs_of("order")
    victim, _ = [await market.start_process() for _ in range(2)]
    await market.start_jobs("order", jobs)
    await until(lambda: sum(map(len, market.shop.calls.values())) >= 6, within=60)
    victim.kill()
    await until(lambda: market.all_have_ended(jobs), within=120, every=0.1)
    most = market.shop.most
    assert most[""] == KIND
    assert max(most[f"user {user}"] for user in range(3)) <= USER
    assert max(most[f"account {account}"] for account in "xyz") == ACCOUNT


async def test_the_slots_of_a_killed_process_come_back_to_those_who_wait(market: Market) -> None:
    """Its jobs are stopped, so that they do not take their slots again."""
    market.shop.takes = 3600
    held = {JobId("default", "order", "1", f"h{n}"): "x" for n in range(ACCOUNT)}
    waiting = {JobId("default", "order", "2", f"w{n}"): "x" for n in range(ACCOUNT)}
    victim = await market.start_process()
    await market.start_jobs("order", held)
    await until(lambda: market.shop.open == ACCOUNT, within=60)
    await market.start_process()
    await market.start_jobs("order", waiting)

    async def reasons() -> bool:
        jobs = [await market.jobs.find(one) for one in waiting]
        return all("waits for a slot" in job.record.reason for job in jobs)

    await until(reasons, within=60)
    for job_id in held:
        await market.jobs.pause(job_id, Actor.ADMIN)
    victim.kill()
    market.shop.takes = 0.1
    await until(lambda: market.all_have_ended(waiting), within=60, every=0.1)
    assert market.shop.most["account x"] == ACCOUNT


async def test_an_outside_account_gets_no_more_calls_in_a_time_than_its_rate(market: Market) -> None:
    market.shop.takes = 0.0
    jobs = {JobId("default", "query", str(n)): "x" if n < 8 else "y" for n in range(9)}
    victim, _ = [await market.start_process() for _ in range(2)]
    await market.start_jobs("query", jobs)
    await until(lambda: len(market.shop.calls["account x"]) >= 2 * RATE, within=60)
    victim.kill()
    await until(lambda: market.all_have_ended(jobs), within=120, every=0.1)
    calls = market.shop.calls
    assert len(calls["account x"]) >= 24
    assert shortest(calls["account x"], RATE) > PER.total_seconds() - TOLERANCE
    assert len(calls["account y"]) >= 3, "another account does not wait for it"
