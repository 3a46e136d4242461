"""The queue against a small model: any sequence of verbs and of passing time, the audit as invariant.

The model counts time in minutes. What it hands to the server lies half a minute beside, so that the milliseconds a test
really takes decide nothing. Examples that failed are kept in `failures/`.
"""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.database import DirectoryBasedExampleDatabase
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from core.keys import Lifetime, kind_of
from core.orders import moment
from core.queue import Task
from tests.core.house import House
from tests.servers import Server, on_both_servers

T = TypeVar("T")

SETTINGS = settings(
    max_examples=16,
    stateful_step_count=40,
    deadline=None,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
    database=DirectoryBasedExampleDatabase(Path(__file__).parent / "failures"),
)
MINUTE = timedelta(minutes=1)
MOST_ATTEMPTS = 3

lanes = st.sampled_from(["", "", "x", "y"])
minutes = st.integers(1, 3)
times = st.one_of(st.none(), minutes)


@dataclass
class Job:
    """A task as the model sees it. Times in minutes; `order` is its place, None while it is in no lane yet."""

    id: str
    lane: str
    tenant: str
    priority: int
    order: int
    state: str
    due: int | None = None
    expires: int | None = None
    attempts: int = 0
    lease: int = 0
    flagged: bool = False
    task: Task | None = None
    holds: bool = False

    @property
    def in_lane(self) -> bool:
        return bool(self.lane) and (self.state in ("ready", "taken") or self.holds)

    @property
    def score(self) -> tuple[int, int]:
        return self.priority, self.order


class Model:
    """What the queue must do."""

    def __init__(self) -> None:
        self.time = 0
        self.order = 0
        self.jobs: dict[str, Job] = {}
        self.ended: dict[str, int] = {}

    def next_order(self) -> int:
        self.order += 1
        return self.order

    def lane(self, name: str) -> list[Job]:
        return sorted(
            (job for job in self.jobs.values() if job.lane == name and job.in_lane), key=lambda job: job.order
        )

    def candidates(self) -> list[Job]:
        """What may be taken now: the head of each lane that nobody holds, and whatever has no lane."""
        free = [job for job in self.jobs.values() if not job.lane and job.state == "ready"]
        for name in ("x", "y"):
            members = self.lane(name)
            if members and not any(member.holds for member in members):
                free.append(members[0])
        return free

    def take(self, job: Job, lease: int) -> None:
        job.state, job.holds, job.attempts, job.lease = "taken", bool(job.lane), job.attempts + 1, self.time + lease

    def give_back(self, job: Job) -> None:
        job.state, job.holds, job.due, job.task = "ready", False, None, None

    def put_off(self, job: Job, due: int) -> None:
        job.state, job.due, job.task = "waiting", self.time + due, None

    def end(self, job: Job, how: str) -> None:
        del self.jobs[job.id]
        self.ended[how] = self.ended.get(how, 0) + 1

    def bury(self, job: Job) -> None:
        job.state, job.holds, job.task, job.due = "buried", False, None, None

    def tick(self) -> None:
        for job in [job for job in self.jobs.values() if job.state == "taken" and job.lease < self.time]:
            self.lose(job)
        for job in [job for job in self.jobs.values() if job.state in ("ready", "waiting")]:
            if job.expires is not None and job.expires < self.time:
                self.end(job, "expired")
        for job in sorted(self.jobs.values(), key=lambda job: (job.due or 0, job.id)):
            if job.state == "waiting" and job.due is not None and job.due < self.time:
                self.promote(job)

    def lose(self, job: Job) -> None:
        if job.flagged:
            self.end(job, "cancelled")
        elif job.attempts >= MOST_ATTEMPTS:
            self.bury(job)
        else:
            self.give_back(job)

    def promote(self, job: Job) -> None:
        if job.lane and not job.holds:
            job.order = self.next_order()
        self.give_back(job)


class Machine(RuleBasedStateMachine):
    """Each example has the server for itself."""

    server: Server
    stale: Bundle[Task] = Bundle("stale")

    def __init__(self) -> None:
        super().__init__()
        self.server.empty()
        self.runner = asyncio.Runner()
        self.house = self.wait(House.open(self.server))
        self.base = self.wait(self.house.claim(limit=0)).now
        self.model = Model()

    def wait(self, doing: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(doing)

    def at(self, time: int) -> int:
        """The ms of a model's minute, half a minute later."""
        return self.base + time * 60_000 + 30_000

    def pick(self, data: st.DataObject, *states: str) -> Job:
        jobs = [job for job in self.model.jobs.values() if job.state in states]
        return data.draw(st.sampled_from(jobs))

    def has(self, *states: str) -> bool:
        return any(job.state in states for job in self.model.jobs.values())

    @rule(lane=lanes, tenant=st.sampled_from("ab"), priority=st.sampled_from([0, 5]), due=times, expires=times)
    def put(self, lane: str, tenant: str, priority: int, due: int | None, expires: int | None) -> None:
        now = self.model.time
        job_id = self.wait(
            self.house.queue.put(
                "t", "", tenant=tenant, lane=lane, priority=priority, attempts=MOST_ATTEMPTS,
                due=moment(self.at(now + due)) if due else None,
                expires=moment(self.at(now + expires)) if expires else None,
            )
        )  # fmt: skip
        job = Job(job_id, lane, tenant, priority, self.model.next_order(), "waiting" if due else "ready")
        job.due = now + due if due else None
        job.expires = now + expires if expires else None
        self.model.jobs[job_id] = job

    @rule(target=stale, limit=st.integers(1, 3), lease=minutes)
    def claim(self, limit: int, lease: int) -> Any:
        """Answers the tokens that this claim made: later ones make them old."""
        self.model.tick()  # what came back only after its time was over expires before anybody takes it
        tasks = self.wait(self.house.take(limit=limit, lease=lease * MINUTE + MINUTE / 2))
        assert len(tasks) == min(limit, len(self.model.candidates()))
        for task in tasks:
            job = self.model.jobs[f"0.{task.id}"]
            free = self.model.candidates()
            assert job in free, f"{job} was not to be taken"
            better = [other for other in free if other.tenant == job.tenant and other.score < job.score]
            assert not better, f"{job} was taken before {better}"
            self.model.take(job, lease)
            assert task.attempts == job.attempts
            job.task = task
        return tasks[0] if tasks else None

    @precondition(lambda self: self.has("taken"))
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        job = self.pick(data, "taken")
        assert job.task
        assert self.wait(self.house.queue.settle(job.task)) == "done"
        self.model.end(job, "done")

    @precondition(lambda self: self.has("taken"))
    @rule(data=st.data(), due=times, attempted=st.booleans())
    def return_task(self, data: st.DataObject, due: int | None, attempted: bool) -> None:
        job = self.pick(data, "taken")
        assert job.task
        at = self.at(self.model.time + due) if due else 0
        queue = self.house.queue
        doing = queue.settle(job.task, result="retry", due=at) if attempted else queue.release(job.task, at)
        told = self.wait(doing)
        if job.flagged:
            assert told == "cancelled"
            self.model.end(job, "cancelled")
            return
        if attempted and job.attempts >= MOST_ATTEMPTS:
            assert told == "buried"
            self.model.bury(job)
            return
        assert told == ("waiting" if due else "ready")
        job.attempts -= 0 if attempted else 1
        if due:
            self.model.put_off(job, due)
        else:
            self.model.give_back(job)

    @precondition(lambda self: self.has("taken"))
    @rule(data=st.data(), lease=minutes)
    def extend(self, data: st.DataObject, lease: int) -> None:
        job = self.pick(data, "taken")
        assert job.task
        extension = self.wait(self.house.queue.extend(job.task, lease * MINUTE + MINUTE / 2))
        assert (extension.held, extension.cancelled) == (True, job.flagged)
        job.lease = self.model.time + lease

    @precondition(lambda self: self.model.jobs)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        job = self.pick(data, "taken", "ready", "waiting", "buried")
        told = self.wait(self.house.queue.cancel(job.id))
        if job.state == "taken":
            assert told == {"cancelled": 0, "flagged": 1}
            job.flagged = True
        else:
            assert told == {"cancelled": 1, "flagged": 0}
            self.model.end(job, "cancelled")

    @precondition(lambda self: self.has("ready", "waiting"))
    @rule(data=st.data())
    def bury(self, data: st.DataObject) -> None:
        job = self.pick(data, "ready", "waiting")
        assert self.wait(self.house.queue.bury(job.id))["state"] == "buried"
        self.model.bury(job)

    @precondition(lambda self: self.has("buried"))
    @rule(data=st.data())
    def kick(self, data: st.DataObject) -> None:
        job = self.pick(data, "buried")
        self.wait(self.house.queue.kick(job.id))
        self.model.give_back(job)
        job.order, job.attempts = self.model.next_order(), 0
        self.tick()

    @rule(time=minutes)
    def time_passes(self, time: int) -> None:
        self.house.passes(time * MINUTE)
        self.model.time += time
        self.tick()

    def tick(self) -> None:
        self.wait(self.house.tick())
        self.model.tick()

    @rule(task=stale, verb=st.sampled_from(["settle", "retry", "release", "extend"]))
    def speak_with_an_old_token(self, task: Task | None, verb: str) -> None:
        if task is None or any(job.task is task for job in self.model.jobs.values()):
            return
        queue = self.house.queue
        if verb == "extend":
            assert not self.wait(queue.extend(task, MINUTE)).held
        elif verb == "release":
            assert self.wait(queue.release(task)) == "stale"
        else:
            assert self.wait(queue.settle(task, result=verb)) == "stale"

    @invariant()
    def the_audit_is_clean(self) -> None:
        self.wait(self.house.audit())

    @invariant()
    def every_task_is_in_the_state_of_the_model(self) -> None:
        for job, told in zip(self.model.jobs.values(), self.wait(self.peek_all()), strict=True):
            members = self.model.lane(job.lane) if job.lane else []
            free = not members or (members[0] is job and not any(member.holds for member in members))
            wanted = "locked" if job.state == "ready" and not free else job.state
            assert (told["state"], told.get("attempts", 0)) == (wanted, job.attempts)

    async def peek_all(self) -> list[dict[str, Any]]:
        return await asyncio.gather(*(self.house.queue.peek(job_id) for job_id in self.model.jobs))

    @invariant()
    def what_has_ended_is_counted(self) -> None:
        counts = self.wait(self.house.queue.stats())["tubes"].get("t", {})
        ends = ("done", "cancelled", "expired")
        assert {end: counts.get(end, 0) for end in ends} == {end: self.model.ended.get(end, 0) for end in ends}

    def teardown(self) -> None:
        """After everything has ended only what is declared permanent remains."""
        try:
            self.wait(self.house.end_everything())
            left = {key: kind_of(key) for key in self.server.all_keys() if key.startswith("queue:")}
            stays = (Lifetime.FOREVER, Lifetime.TTL)
            assert [key for key, kind in left.items() if kind is None or kind.lifetime not in stays] == []
        finally:
            self.wait(self.house.close())
            self.runner.close()


@on_both_servers
@pytest.mark.timeout(120)
@pytest.mark.row("K-12", "K-17", "K-30")
def test_the_queue_does_what_the_model_does(server: Server) -> None:
    machine = type("Machine", (Machine,), {"server": server})
    run_state_machine_as_test(machine, settings=SETTINGS)
