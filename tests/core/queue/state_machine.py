"""Producers and workers of the state machine of `test_machine.py`. Each rule does one verb, with any options, to the
queue and to its model.
"""

import asyncio
from collections import defaultdict
from collections.abc import Coroutine, Sequence
from datetime import timedelta
from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from core.model.clock import from_ms
from core.queue import NewTask, Settled, SettleResult, Task, Tube, Tubes
from core.redis.store import Store
from tests.core.queue.model import LANES, TUBES, Job, Model, Options
from tests.support.limits import bounded
from tests.support.servers import Server
from tests.support.stack import Stack

T = TypeVar("T")

MINUTE, HALF = timedelta(minutes=1), timedelta(seconds=30)
tubes, lanes = st.sampled_from(TUBES), st.sampled_from(["", *LANES, LANES[0]])
minutes = st.integers(1, 3)
times = st.sampled_from([None, None, 1, 2, 3])
rarely = st.sampled_from([False, False, False, True])
seldom = st.sampled_from([0, 0, 0, 1, 2])
bodies = st.sampled_from(["", "one", "two"])
clients = st.sampled_from(["caller", "waiter"])
options = st.builds(Options, seldom, st.integers(0, 3), st.booleans(), rarely, seldom)
owners, accounts = st.sampled_from(["one", "two"]), st.sampled_from(["", "", "account"])
token_uses = st.sampled_from(["finish", "retry", "retry", "release", "suspend", "bury_own", "extend"])
new_tasks = st.fixed_dictionaries(
    {
        "body": bodies,
        "lane": lanes,
        "tenant": st.sampled_from("ab"),
        "priority": st.sampled_from([0, 5]),
        "due": times,
        "expires": st.one_of(st.none(), times),
        "attempts": st.integers(0, 3),
        "kind": st.sampled_from(["", "message", "timer.a", "timer.b"]),
        "user": st.sampled_from(["", "v", "w"]),
        "tags": st.sampled_from([(), ("p",), ("p", "q")]),
        "reply": st.sampled_from(["", "caller"]),
    }
)


class RepeatingStore(Store):
    """Remembers the last put, so that it can be repeated as after a connection that broke before the reply."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.last_put: tuple[Any, ...] = ()

    async def run(self, name: str, shard: int, *arguments: Any) -> Any:
        if name == "put":
            self.last_put = arguments
        return await super().run(name, shard, *arguments)


class WorkMachine(RuleBasedStateMachine):
    """Each example has the server to itself."""

    server: Server

    def __init__(self) -> None:
        super().__init__()
        self.server.empty()
        self.runner = asyncio.Runner()
        store = self.wait(RepeatingStore.open(self.server.url))
        assert isinstance(store, RepeatingStore)
        self.store = store
        self.stack = Stack(self.store, self.server)
        self.queue = self.stack.queue
        self.base = self.wait(self.stack.claim(limit=0)).now
        self.model = Model()
        self.crashes = 0
        self.tokens: dict[str, list[Task]] = defaultdict(list)

    def wait(self, doing: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(bounded(doing))

    def at(self, time: int) -> int:
        """Return the ms half a minute after a minute of the model."""
        return self.base + time * 60_000 + 30_000

    def later(self, time: int | None) -> Any:
        return from_ms(self.at(self.model.time + time)) if time else None

    def pick(self, data: st.DataObject, *states: str) -> Job:
        """Draw a task in one of these states."""
        return data.draw(st.sampled_from([job for job in self.model.jobs.values() if job.state in states]))

    def has(self, *states: str) -> bool:
        return any(job.state in states for job in self.model.jobs.values())

    def draw_running(self, data: st.DataObject) -> tuple[Job, Task]:
        job = data.draw(st.sampled_from([job for job in self.model.jobs.values() if job.task]))
        assert job.task
        return job, job.task

    @property
    def has_running(self) -> bool:
        return any(job.task for job in self.model.jobs.values())

    # tubes, tenants, accounts

    @initialize(wanted=st.tuples(options, options), new_tasks=st.lists(new_tasks, min_size=2, max_size=6))
    def begin(self, wanted: tuple[Options, Options], new_tasks: list[dict[str, Any]]) -> None:
        for tube, those in zip(TUBES, wanted, strict=True):
            self.create(tube, those)
            self.put(tube, new_tasks)

    @rule(data=st.data(), tube=tubes, time=minutes)
    def set_up(self, data: st.DataObject, tube: str, time: int) -> None:
        """Change a tube, a tenant's weight or an account's throttle, or release the timer."""
        what = data.draw(st.sampled_from(["create", "weight", "throttle", "release timer"]))
        if what == "create":
            self.create(tube, data.draw(options))
        elif what == "weight":
            self.wait(Tubes(self.store).set_weight(data.draw(st.sampled_from("ab")), time))
        elif what == "throttle":
            self.wait(self.queue.throttle(tube, "account:account", time * MINUTE + HALF))
            self.model.throttled_until[tube] = max(self.model.throttled_until[tube], self.model.time + time)
        else:
            self.wait(self.queue.release_timer("one", 0))

    def create(self, tube: str, wanted: Options) -> None:
        spans = {name: getattr(wanted, name) * MINUTE + HALF for name in ("expires", "keep") if getattr(wanted, name)}
        fields: dict[str, Any] = {"attempts": wanted.attempts, "retry": "park" if wanted.parks else "keep", **spans}
        self.wait(Tubes(self.store).create(Tube(tube, pace=1 / 60 if wanted.paced else None, **fields)))
        self.model.options[tube] = wanted

    # putting

    @rule(tube=tubes, wanted=st.lists(new_tasks, min_size=1, max_size=4))
    def put(self, tube: str, wanted: list[dict[str, Any]]) -> None:
        fields = [{**one, "due": self.later(one["due"]), "expires": self.later(one["expires"])} for one in wanted]
        ids = self.wait(self.queue.put_many(tube, [NewTask(**one) for one in fields]))
        for one, task_id in zip(wanted, ids, strict=True):
            number = self.model.next_number()
            own = {name: one[name] for name in ("body", "lane", "tenant", "priority", "kind", "user", "tags")}
            job = Job(task_id, number, number, tube, "waiting" if one["due"] else "ready", most=one["attempts"], **own)
            job.clients += [one["reply"]] if one["reply"] else []
            self.model.put(job, one["due"], one["expires"])

    @precondition(lambda self: self.store.last_put)
    @rule()
    def repeat_the_last_put(self) -> None:
        assert self.wait(self.store.run("put", 0, *self.store.last_put)) == ["known"]

    # workers

    @rule(data=st.data(), owner=owners, limit=st.integers(1, 3), lease=minutes, account=accounts)
    def claim(self, data: st.DataObject, owner: str, limit: int, lease: int, account: str) -> None:
        tube = self.busy_tube(data)
        self.model.tick()  # a task that expired while it was taken may be ready again
        expected = self.model.may_take(tube, limit, account)
        claim = self.wait(self.stack.claim(tube, limit, owner=owner, lease=lease * MINUTE + HALF, account=account))
        assert len(claim.tasks) == expected
        for task in claim.tasks:
            self.check_taken(task, lease)
            self.use_old_tokens(task.task_id)
            self.tokens[task.task_id].append(task)
        if not claim.tasks and self.model.candidates(tube):
            assert claim.opens_at > claim.now

    @rule(data=st.data(), tube=tubes, owner=owners, uses=st.lists(token_uses, min_size=1, max_size=4))
    def work(self, data: st.DataObject, tube: str, owner: str, uses: list[str]) -> None:
        """Put a task, claim and work. Hypothesis leaves rules out at random; this one makes sure of progress."""
        self.put(tube, [data.draw(new_tasks)])
        for use in uses:
            self.claim(data, owner, 1, 1, "")
            if self.has_running:
                self.use_token(data, use)

    def busy_tube(self, data: st.DataObject) -> str:
        """Draw a tube with a ready task, if there is any."""
        return data.draw(st.sampled_from([tube for tube in TUBES if self.model.candidates(tube)] or TUBES))

    def check_taken(self, task: Task, lease: int) -> None:
        job = self.model.jobs[task.task_id]
        free = self.model.candidates(job.tube)
        assert job in free, f"{job} should not have been taken"
        better = [other for other in free if other.tenant == job.tenant and other.score < job.score]
        assert not better, f"{job} was taken before {better}"
        self.model.take(job, lease)
        job.task = task
        seen = (task.attempts, task.body, task.checkpoint, task.lane, task.user, task.kind, task.tenant)
        assert seen == (job.attempts, job.body, job.checkpoint, job.lane, job.user, job.kind, job.tenant)

    @precondition(lambda self: self.has_running)
    @rule(data=st.data(), verb=token_uses)
    def use_token(self, data: st.DataObject, verb: str) -> None:
        """A worker settles, releases, suspends or extends one of its tasks."""
        job, task = self.draw_running(data)
        getattr(self, verb)(data, job, task)

    def finish(self, data: st.DataObject, job: Job, task: Task) -> None:
        result = data.draw(st.sampled_from([SettleResult.DONE, SettleResult.FAILED]))
        answer = data.draw(bodies)
        assert self.wait(self.queue.settle(task, result=result, answer=answer)) == Settled(result)
        self.model.end(job, result, answer)

    def retry(self, data: st.DataObject, job: Job, task: Task) -> None:
        due, body, checkpoint = data.draw(times), data.draw(bodies), data.draw(bodies)
        at = self.at(self.model.time + due) if due else 0
        state = self.wait(self.queue.settle(task, result=SettleResult.RETRY, due=at, body=body, checkpoint=checkpoint))
        assert state == self.model.retry(job, due)
        if state != "cancelled":
            job.checkpoint = checkpoint or job.checkpoint
        if state in ("ready", "waiting"):
            job.body = body or job.body

    def release(self, data: st.DataObject, job: Job, task: Task) -> None:
        due, body = data.draw(times), data.draw(bodies)
        state = self.wait(self.queue.release(task, self.at(self.model.time + due) if due else 0, body))
        assert state == self.model.release(job, due)
        job.body = body or job.body

    def suspend(self, data: st.DataObject, job: Job, task: Task) -> None:
        due, leaves_lane, checkpoint = data.draw(minutes), data.draw(st.booleans()), data.draw(bodies)
        at = self.at(self.model.time + due)
        state = self.wait(self.queue.suspend(task, at, leaves_lane=leaves_lane, checkpoint=checkpoint))
        assert state == self.model.suspend(job, due, leaves_lane)
        if state != "cancelled":
            job.checkpoint = checkpoint or job.checkpoint

    def bury_own(self, data: st.DataObject, job: Job, task: Task) -> None:
        state = self.wait(self.queue.settle(task, result=SettleResult.BURY))
        assert state == (self.model.end(job, "cancelled") if job.flagged else self.model.bury(job))

    def extend(self, data: st.DataObject, job: Job, task: Task) -> None:
        lease, checkpoint = data.draw(minutes), data.draw(bodies)
        extension = self.wait(self.queue.extend(task, lease * MINUTE + HALF, checkpoint=checkpoint))
        assert (extension.lease_valid, extension.cancelled) == (True, job.flagged)
        job.lease, job.checkpoint = self.model.time + lease, checkpoint or job.checkpoint

    @precondition(lambda self: self.tokens)
    @rule(data=st.data())
    def a_frozen_worker_continues(self, data: st.DataObject) -> None:
        """Its task may have ended, gone to another worker, or still be its own."""
        task_id = data.draw(st.sampled_from(list(self.tokens)))
        job = self.model.jobs.get(task_id)
        is_its_own = job is not None and job.state == "taken"
        self.use_old_tokens(task_id, self.tokens[task_id][:-1] if is_its_own else self.tokens[task_id])

    def use_old_tokens(self, task_id: str, old: Sequence[Task] | None = None) -> None:
        """Old tokens change nothing; the invariants check it after the rule."""
        for task in self.tokens[task_id] if old is None else old:
            for result in (SettleResult.DONE, SettleResult.RETRY, SettleResult.BURY):
                assert self.wait(self.queue.settle(task, result=result, body="old", answer="old")) == "stale"
            assert self.wait(self.queue.release(task, body="old")) == "stale"
            assert self.wait(self.queue.suspend(task, self.at(self.model.time), checkpoint="old")) == "stale"
            assert not self.wait(self.queue.extend(task, MINUTE, checkpoint="old")).lease_valid

    @precondition(lambda self: self.has_running)
    @rule(owner=owners)
    def a_worker_dies(self, owner: str) -> None:
        """Its tasks stay taken until their leases end."""
        for job in self.model.jobs.values():
            if job.task and self.wait(self.queue.inspector.peek(job.id)).owner == owner:
                job.task = None
