"""A real process of jobs is killed with kill -9 while jobs are at each point at which an iteration can be."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from core.jobs import Actor, JobId, Jobs, JobState, StoredJob
from core.jobs.record import ResetPoint
from core.jobs.views import view_of
from core.redis.server_checks import sign_layout
from core.redis.store import Store
from tests.jobs.ledger import Ledger
from tests.jobs.walking import ATTEMPTS, ITEMS, POINTS, Errand, Walk
from tests.support.audited import violations_in
from tests.support.servers import Server
from tests.support.waiting import until
from tests.system.crash.process import AdaProcess

HELD = {
    "branches": ("branches", "held branch"),
    "child start": ("child start", "held step"),
    "child wait": ("held", "held errand"),
    "state": ("state", f"held item {ITEMS // 2}"),
    "reset": ("reset", "held second"),
}
"""The call in hand at the points that have one: whose it is, and its name."""

SUSPENDED: dict[str, list[str]] = {"wait": ["go"], "sleep": [], "retry": []}
"""The signals for which a job waits at the other points."""

EXPECTED = {
    "sleep": None,
    "wait": "away",
    "branches": ["branch done", "held branch done", "branch that has slept done"],
    "child start": ["errand done", "errand done"],
    "child wait": "held errand done",
    "retry": "failing done",
    "state": ITEMS,
    "reset": "first done",
}


@dataclass
class Walks:
    """Processes of `./ada jobs`, and the jobs that walk to their points."""

    server: Server
    folder: Path
    ledger: Ledger
    store: Store
    jobs: Jobs
    processes: list[AdaProcess] = field(default_factory=list)

    async def start_process(self) -> AdaProcess:
        environment = {
            "ADA_REDIS_URL": self.server.url,
            "ADA_DATA": str(self.folder / "data"),
            "ADA_LEASE": "1s",
            "ADA_JOBS": "tests.jobs.walking",
            "LEDGER_URL": self.ledger.url,
        }
        self.processes.append(AdaProcess(("jobs",), environment, self.folder / f"jobs-{len(self.processes)}.log"))
        await self.processes[-1].ready()
        return self.processes[-1]

    async def job(self, point: str) -> StoredJob:
        return await self.jobs.find(id_of(point))

    async def is_at(self, point: str) -> bool:
        if point in HELD:
            return self.ledger.waiting[HELD[point]] > 0
        record = (await self.job(point)).record
        return record.suspended and record.waits_for == SUSPENDED[point]

    async def go_to(self, point: str) -> None:
        await self.jobs.start(id_of(point), {"point": point})
        await until(lambda: self.is_at(point))

    async def have_ended(self) -> bool:
        found = [(await self.job(point)).record for point in POINTS]
        assert all(one.state is not JobState.FAILED for one in found), found
        return all(one.state is JobState.FINISHED for one in found)


def id_of(point: str) -> JobId:
    return JobId("default", "walk", "1", point.replace(" ", "-"))


@pytest.fixture
async def path(own_server: Server, tmp_path: Path) -> AsyncIterator[Walks]:
    ledger = Ledger(frozenset(name for _, name in HELD.values()))
    await ledger.start()
    store = await Store.open(own_server.url)
    await sign_layout(store)
    jobs = Jobs(store)
    await jobs.kinds.publish({"walk": Walk.schedule, "errand": Errand.schedule})
    path = Walks(own_server, tmp_path, ledger, store, jobs)
    yield path
    for process in path.processes:
        process.kill()
    await store.close()
    await ledger.stop()


async def test_jobs_go_on_from_every_point_after_their_process_was_killed(path: Walks) -> None:
    path.ledger.failures["failing"] = ATTEMPTS - 1
    victim = await path.start_process()
    for point in (*HELD, *SUSPENDED):
        await path.go_to(point)
    await path.jobs.reset(id_of("reset"), ResetPoint("step:first"), Actor.ADMIN)
    victim.kill()
    await path.jobs.signal(id_of("wait"), "go", "away")
    path.ledger.gate.set()
    await path.start_process()
    await until(path.have_ended, within=60, every=0.05)
    ends: dict[str, Any] = {point: view_of(await path.job(point)).result for point in POINTS}
    assert ends == EXPECTED
    assert path.ledger.doubled() == {}
    calls = path.ledger.keys
    assert [name for point in POINTS for name in ("before", "after") if (point, name) not in calls] == []
    assert len(calls["retry", "failing"]) == ATTEMPTS, "the attempts before the kill count"
    assert len(calls["reset", "first"]) == 2, "the reset step is made again"
    assert {name: len(calls["state", name]) for name in ("item 0", f"item {ITEMS - 1}")} == {
        "item 0": 1,
        f"item {ITEMS - 1}": 1,
    }
    assert await violations_in(path.store) == []
