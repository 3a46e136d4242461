"""The machine of `test_machine.py`, as those see the queue who put and work: each rule is a verb with any options, done
to the queue and to its model.
"""

import asyncio
from collections import defaultdict
from collections.abc import Coroutine, Sequence
from datetime import timedelta
from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from core.model.clock import from_ms
from core.queue.queue import NewTask, Task
from core.queue.tubes import Tube, Tubes
from core.redis.store import Store
from tests.queue.model import LANES, TUBES, Job, Model, Options
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
verbs = st.sampled_from(["finish", "retry", "retry", "release", "give_up", "extend"])
drafts = st.fixed_dictionaries(
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
    """Remembers the last put, to say it again as the pump does when the connection broke before the answer."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.last_put: tuple[Any, ...] = ()

    async def run(self, name: str, shard: int, *arguments: Any) -> Any:
        if name == "put":
            self.last_put = arguments
        return await super().run(name, shard, *arguments)


class Working(RuleBasedStateMachine):
    """Each example has the server for itself."""

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
        return self.runner.run(doing)

    def at(self, time: int) -> int:
        """The ms of a model's minute, half a minute later."""
        return self.base + time * 60_000 + 30_000

    def later(self, time: int | None) -> Any:
        return from_ms(self.at(self.model.time + time)) if time else None

    def pick(self, data: st.DataObject, *states: str) -> Job:
        """A task; one that is taken only if its worker still knows of it."""
        return data.draw(st.sampled_from([job for job in self.model.jobs.values() if job.state in states]))

    def has(self, *states: str) -> bool:
        return any(job.state in states for job in self.model.jobs.values())

    def in_hand(self, data: st.DataObject) -> tuple[Job, Task]:
        job = data.draw(st.sampled_from([job for job in self.model.jobs.values() if job.task]))
        assert job.task
        return job, job.task

    @property
    def has_in_hand(self) -> bool:
        return any(job.task for job in self.model.jobs.values())

    # tubes, tenants, accounts

    @initialize(wanted=st.tuples(options, options), drafts=st.lists(drafts, min_size=2, max_size=6))
    def begin(self, wanted: tuple[Options, Options], drafts: list[dict[str, Any]]) -> None:
        for tube, those in zip(TUBES, wanted, strict=True):
            self.create(tube, those)
            self.put(tube, drafts)

    @rule(data=st.data(), tube=tubes, time=minutes)
    def set_up(self, data: st.DataObject, tube: str, time: int) -> None:
        """What an operator or a provider says of a whole tube, tenant or account."""
        what = data.draw(st.sampled_from(["create", "weigh", "hold", "resign"]))
        if what == "create":
            self.create(tube, data.draw(options))
        elif what == "weigh":
            self.wait(Tubes(self.store).set_weight(data.draw(st.sampled_from("ab")), time))
        elif what == "hold":
            self.wait(self.queue.throttle(tube, "account:account", time * MINUTE + HALF))
            self.model.held_until[tube] = max(self.model.held_until[tube], self.model.time + time)
        else:
            self.wait(self.queue.release_timer("one", 0))

    def create(self, tube: str, wanted: Options) -> None:
        spans = {name: getattr(wanted, name) * MINUTE + HALF for name in ("expires", "keep") if getattr(wanted, name)}
        facts: dict[str, Any] = {"attempts": wanted.attempts, "retry": "park" if wanted.parks else "keep", **spans}
        self.wait(Tubes(self.store).create(Tube(tube, pace=1 / 60 if wanted.paced else None, **facts)))
        self.model.options[tube] = wanted

    # putting

    @rule(tube=tubes, wanted=st.lists(drafts, min_size=1, max_size=4))
    def put(self, tube: str, wanted: list[dict[str, Any]]) -> None:
        facts = [{**one, "due": self.later(one["due"]), "expires": self.later(one["expires"])} for one in wanted]
        ids = self.wait(self.queue.put_many(tube, [NewTask(**one) for one in facts]))
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
        self.model.tick()  # what expired in somebody's hands and came back since
        expected = self.model.may_take(tube, limit, account)
        claim = self.wait(self.stack.claim(tube, limit, owner=owner, lease=lease * MINUTE + HALF, account=account))
        assert len(claim.tasks) == expected
        for task in claim.tasks:
            self.was_taken(task, lease)
            self.speak_with_old_tokens(task.name)
            self.tokens[task.name].append(task)
        if not claim.tasks and self.model.candidates(tube):
            assert claim.opens_at > claim.now

    @rule(data=st.data(), tube=tubes, owner=owners, fates=st.lists(verbs, min_size=1, max_size=4))
    def work(self, data: st.DataObject, tube: str, owner: str, fates: list[str]) -> None:
        """Hypothesis leaves rules out at random: this one brings work and does it, one after the other."""
        self.put(tube, [data.draw(drafts)])
        for fate in fates:
            self.claim(data, owner, 1, 1, "")
            if self.has_in_hand:
                self.speak(data, fate)

    def busy_tube(self, data: st.DataObject) -> str:
        """One with something to be taken, if there is any."""
        return data.draw(st.sampled_from([tube for tube in TUBES if self.model.candidates(tube)] or TUBES))

    def was_taken(self, task: Task, lease: int) -> None:
        job = self.model.jobs[task.name]
        free = self.model.candidates(job.tube)
        assert job in free, f"{job} was not to be taken"
        better = [other for other in free if other.tenant == job.tenant and other.score < job.score]
        assert not better, f"{job} was taken before {better}"
        self.model.take(job, lease)
        job.task = task
        seen = (task.attempts, task.body, task.checkpoint, task.lane, task.user, task.kind, task.tenant)
        assert seen == (job.attempts, job.body, job.checkpoint, job.lane, job.user, job.kind, job.tenant)

    @precondition(lambda self: self.has_in_hand)
    @rule(data=st.data(), verb=verbs)
    def speak(self, data: st.DataObject, verb: str) -> None:
        """A worker's word about a task in its hands."""
        job, task = self.in_hand(data)
        getattr(self, verb)(data, job, task)

    def finish(self, data: st.DataObject, job: Job, task: Task) -> None:
        result, answer = data.draw(st.sampled_from(["done", "failed"])), data.draw(bodies)
        assert self.wait(self.queue.settle(task, result=result, answer=answer)) == result
        self.model.end(job, result, answer)

    def retry(self, data: st.DataObject, job: Job, task: Task) -> None:
        due, body, checkpoint = data.draw(times), data.draw(bodies), data.draw(bodies)
        at = self.at(self.model.time + due) if due else 0
        told = self.wait(self.queue.settle(task, result="retry", due=at, body=body, checkpoint=checkpoint))
        assert told == self.model.retry(job, due)
        if told != "cancelled":
            job.checkpoint = checkpoint or job.checkpoint
        if told in ("ready", "waiting"):
            job.body = body or job.body

    def release(self, data: st.DataObject, job: Job, task: Task) -> None:
        due, body = data.draw(times), data.draw(bodies)
        told = self.wait(self.queue.release(task, self.at(self.model.time + due) if due else 0, body))
        assert told == self.model.release(job, due)
        job.body = body or job.body

    def give_up(self, data: st.DataObject, job: Job, task: Task) -> None:
        told = self.wait(self.queue.settle(task, result="bury"))
        assert told == (self.model.end(job, "cancelled") if job.flagged else self.model.bury(job))

    def extend(self, data: st.DataObject, job: Job, task: Task) -> None:
        lease, checkpoint = data.draw(minutes), data.draw(bodies)
        extension = self.wait(self.queue.extend(task, lease * MINUTE + HALF, checkpoint=checkpoint))
        assert (extension.lease_valid, extension.cancelled) == (True, job.flagged)
        job.lease, job.checkpoint = self.model.time + lease, checkpoint or job.checkpoint

    @precondition(lambda self: self.tokens)
    @rule(data=st.data())
    def somebody_wakes_up(self, data: st.DataObject) -> None:
        """What he had may have ended, gone to another, or be his still."""
        task_id = data.draw(st.sampled_from(list(self.tokens)))
        job = self.model.jobs.get(task_id)
        is_his = job is not None and job.state == "taken"
        self.speak_with_old_tokens(task_id, self.tokens[task_id][:-1] if is_his else self.tokens[task_id])

    def speak_with_old_tokens(self, task_id: str, old: Sequence[Task] | None = None) -> None:
        """Nothing comes of it: the invariants are asked next."""
        for task in self.tokens[task_id] if old is None else old:
            for result in ("done", "retry", "bury"):
                assert self.wait(self.queue.settle(task, result=result, body="old", answer="old")) == "stale"
            assert self.wait(self.queue.release(task, body="old")) == "stale"
            assert not self.wait(self.queue.extend(task, MINUTE, checkpoint="old")).lease_valid

    @precondition(lambda self: self.has_in_hand)
    @rule(owner=owners)
    def a_worker_forgets_all(self, owner: str) -> None:
        """Killed: what it has is taken until its lease is over."""
        for job in self.model.jobs.values():
            told = self.wait(self.queue.peek(job.id)) if job.task else {}
            if told.get("owner") == owner:
                job.task = None
