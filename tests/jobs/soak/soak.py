"""A soak of jobs: users and their jobs, blows in random order, then a verdict.

people ─▶ API ─▶ server ◀─ processes of ./ada jobs ─▶ sandbox: its book ──────────┐
                   ▲              ▲           ▲                                     verdict
                   └──────────  blows  ───────┘     server: its append-only file ──┘
"""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import ClientSession

from core.redis.cancel_and_wait import cancel_and_wait
from tests.jobs.soak.append_only_file import read_writes
from tests.jobs.soak.blows import Blows
from tests.jobs.soak.installation import Installation
from tests.jobs.soak.job_histories import JobHistory, findings_of, histories
from tests.jobs.soak.people import HOLIDAY, People
from tests.jobs.soak.plan import Plan, job_of
from tests.jobs.soak.verdict import (
    Recorded,
    book_findings,
    pause_findings,
    repeats,
    resume_findings,
    round_findings,
)
from tests.system.soak.nemesis import Log

_FIRST_VACANCIES = 10


@dataclass
class Outcome:
    """`late_calls`: of processes that were frozen with a call in hand; the service has refused them."""

    plan: Plan
    blows: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)
    applications: int = 0
    unknown: int = 0
    iterations: int = 0
    takeovers: int = 0
    late_calls: int = 0
    pauses: int = 0
    sign_ins: int = 0
    rounds: int = 0
    tickets: int = 0
    seconds: float = 0.0

    @property
    def is_good(self) -> bool:
        return not self.findings

    def __str__(self) -> str:
        blows = ", ".join(f"{count} {kind}" for kind, count in sorted(self.blows.items()))
        return (
            f"seed {self.plan.seed}: {len(self.findings)} findings; {self.plan.jobs} jobs, "
            f"{self.iterations} iterations, {self.applications} applications, {self.unknown} unknown, "
            f"{self.takeovers} takeovers, {self.late_calls} late calls refused, {self.pauses} pauses, "
            f"{self.sign_ins} sign-ins, {self.rounds} rounds with {self.tickets} signals; blows: {blows}; "
            f"{self.seconds:.0f} s"
        )


class Soak:
    """One soak in a directory of its own. `log` gets a line for each blow."""

    def __init__(self, directory: Path, plan: Plan, log: Log) -> None:
        self._plan = plan
        self._log = log
        self._installation = Installation(directory, plan)
        self._outcome = Outcome(plan)

    async def run(self) -> Outcome:
        begun = time.monotonic()
        try:
            await self._installation.start()
            async with ClientSession() as session:
                await self._play(People(session, self._installation.api_url, self._plan))
        finally:
            await self._installation.close()
        self._outcome.seconds = time.monotonic() - begun
        return self._outcome

    async def _play(self, people: People) -> None:
        blows = Blows(self._installation, self._plan, self._log)
        self._installation.service.vacancies = _FIRST_VACANCIES
        self._log("users sign in and start their jobs")
        await people.begin()
        async with _beside(people.sign_in_again):
            async with _beside(self._offer_more):
                await asyncio.gather(blows.run(self._plan.seconds), people.live(self._plan.seconds))
            self._log("no more blows; every job goes on")
            await self._check_after_the_blows(people)
            self._log("users who have left come back")
            await people.come_back()
            await self._all_go_on(people, 2)
            ended = {int(job["user"]): int(job["iterations"]) for job in await people.jobs() if job["kind"] == "round"}
        self._log("all processes end")
        self._outcome.findings += await self._installation.stop_workers()
        self._outcome.findings += round_findings(self._installation.ledger.keys, ended, people.tickets)
        self._outcome.rounds, self._outcome.tickets = sum(ended.values()), people.tickets.total()
        self._outcome.findings += await self._installation.audit("audit-at-rest")
        self._outcome.blows = blows.counts
        self._judge(people)

    async def _offer_more(self) -> None:
        """New vacancies appear at equal times, until all are there."""
        more = self._plan.vacancies - _FIRST_VACANCIES
        service = self._installation.service
        while service.vacancies < self._plan.vacancies:
            await asyncio.sleep(self._plan.seconds / more * 0.9)
            service.vacancies += 1

    # what must hold after the blows

    async def _check_after_the_blows(self, people: People) -> None:
        await self._all_go_on(people, 1)
        found = {job["id"]: (job["state"], job.get("reason")) for job in await people.jobs()}
        wanted: dict[int, tuple[str, str | None]] = dict.fromkeys(people.on_holiday, ("paused", HOLIDAY))
        wanted |= dict.fromkeys(people.gone, ("stopped", None))
        for user, state in wanted.items():
            if found[job_of(user)] != state:
                self._found(f"{job_of(user)} was left {state} and is {found[job_of(user)]}")
        self._outcome.findings += await self._installation.audit("audit-at-work")

    async def _all_go_on(self, people: People, iterations: int) -> None:
        """Wait until every job that should work has ended `iterations` more iterations."""
        before = {job["id"]: job["iterations"] for job in await people.jobs() if "parent" not in job}
        deadline = time.monotonic() + self._plan.patience
        while waiting := _standing_still(await people.jobs(), before, iterations):
            if time.monotonic() > deadline:
                for job in waiting:
                    self._found(f"does not go on: {job}")
                return
            await asyncio.sleep(0.2)

    def _found(self, finding: str) -> None:
        self._outcome.findings.append(finding)

    # the verdict

    def _judge(self, people: People) -> None:
        outcome, installation = self._outcome, self._installation
        stored = histories(read_writes(installation.append_only_file))
        by_user = {user: stored[job_of(user)] for user in self._plan.users}
        recorded = {user: Recorded.of(history) for user, history in by_user.items()}
        book, lease = installation.service.book, self._plan.lease
        wrong, outcome.late_calls = repeats(book, {one.port: one.frozen for one in installation.workers}, lease)
        outcome.findings += [*book_findings(book, recorded), *wrong, *pause_findings(book, people.pauses)]
        outcome.findings += resume_findings(by_user, people.resumed)
        for history in by_user.values():
            outcome.findings += findings_of(history, installation.cuts)
        outcome.applications = sum(not one.is_repeat for one in book)
        outcome.unknown = sum(len(one.unknown) for one in recorded.values())
        outcome.pauses, outcome.sign_ins = len(people.pauses), people.sign_ins
        self._count(list(by_user.values()))

    def _count(self, found: list[JobHistory]) -> None:
        self._outcome.iterations = sum(history.iterations for history in found)
        self._outcome.takeovers = sum(history.takeovers for history in found)


def _standing_still(jobs: list[dict[str, Any]], before: dict[str, int], iterations: int) -> list[dict[str, Any]]:
    """Jobs that have failed, have ended fewer than `iterations` since, or wait for a user who is about to act. Children
    end with their first.
    """
    return [
        job
        for job in jobs
        if job["state"] == "failed"
        or (job["state"] == "running" and job["iterations"] < before.get(job["id"], -iterations) + iterations)
        or (job["state"] == "paused" and job["paused_by"] != "user")
    ]


@asynccontextmanager
async def _beside(what: Callable[[], Awaitable[None]]) -> Any:
    """Runs something until the block ends; if it raises, the block raises that."""
    running = asyncio.ensure_future(what())
    try:
        yield
        if running.done():
            running.result()
    finally:
        await cancel_and_wait(running)
