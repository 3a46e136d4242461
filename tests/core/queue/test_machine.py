"""The queue against its model: random sequences of verbs with any options, several workers and tubes, workers that die,
a server that is killed, and passing time. The audit runs after every step.

`./ada prove histories` runs many more examples.
"""

import asyncio
from collections.abc import Iterable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule, run_state_machine_as_test

from core.queue import CancelResult, StateCounts, TaskFilter, TaskView
from core.redis.keys import KEYS, Lifetime, kind_of
from tests.core.queue.model import LANES, TUBES
from tests.core.queue.state_machine import MINUTE, WorkMachine, clients, minutes, rarely, tubes
from tests.support import limits
from tests.support.hypothesis_settings import SETTINGS, WITHOUT_SHRINKING
from tests.support.servers import Server, on_both_servers

EXAMPLES, LONG_EXAMPLES, STEPS = 4, 300, 60
COUNTED = (
    *("put", "claimed", "done", "failed", "cancelled", "expired"),
    *("buried", "kicked", "released", "retried", "lost", "promoted"),
)
LIVE = ("waiting", "ready", "taken", "buried")
NO_TASKS = StateCounts(waiting=0, ready=0, locked=0, taken=0, buried=0)

filters = st.one_of(
    st.builds(TaskFilter, user=st.sampled_from("vw")),
    st.builds(TaskFilter, tenant=st.sampled_from("ab"), tube=st.sampled_from(["", *TUBES])),
    st.builds(TaskFilter, lane=st.sampled_from(LANES)),
    st.builds(TaskFilter, kind=st.sampled_from(["timer.", "timer.a", "m"])),
    st.builds(TaskFilter, tag=st.sampled_from("pq"), user=st.sampled_from(["", "v"])),
)


class Machine(WorkMachine):
    """Adds operators, waiting clients, passing time and crashes of the server."""

    # operators

    @precondition(lambda self: self.model.jobs)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        job = self.pick(data, *LIVE)
        assert self.wait(self.queue.cancel(job.id)) == self.model.cancel([job])

    @rule(task_filter=filters, cancels=rarely)
    def search_and_cancel(self, task_filter: TaskFilter, cancels: bool) -> None:
        selected = self.model.selected(task_filter)
        found = [task.id for task in self.wait(self.queue.inspector.select(task_filter))]
        if task_filter.index()[0] == "lane":  # the tasks that stand in it, then the others
            selected.sort(key=lambda job: found.index(job.id) if job.id in found else -1)
        assert found == [job.id for job in selected]
        if not cancels:
            return
        assert self.wait(self.queue.cancel_by(task_filter)) == self.model.cancel(selected)

    @precondition(lambda self: self.has("waiting", "taken"))
    @rule(data=st.data())
    def wake(self, data: st.DataObject) -> None:
        self.tick()
        if self.has("waiting", "taken"):
            job = self.pick(data, "waiting", "taken")
            assert self.wait(self.queue.wake(job.id))
            self.model.wake(job)

    @precondition(lambda self: self.has("ready", "waiting"))
    @rule(data=st.data())
    def bury(self, data: st.DataObject) -> None:
        job = self.pick(data, "ready", "waiting")
        assert self.wait(self.queue.bury(job.id)).state == "buried"
        self.model.bury(job)

    @precondition(lambda self: self.has("buried"))
    @rule(tube=tubes, data=st.data())
    def kick(self, tube: str, data: st.DataObject) -> None:
        """Kick one task by its id, then those of a tube."""
        one = self.pick(data, "buried")
        self.wait(self.queue.kick(one.id))
        self.model.kick(one)
        buried = self.wait(self.store.command("ZRANGE", KEYS["buried"].at(0), 0, -1))
        jobs = [job for name in buried if (job := self.model.jobs[f"0.{name}"]).tube == tube]
        assert self.wait(self.queue.kick_some(tube, 100)) == len(jobs)
        for job in jobs:
            self.model.kick(job)
        self.tick()

    # waiting clients

    @precondition(lambda self: self.model.jobs)
    @rule(data=st.data(), client=clients)
    def wait_for_an_end(self, data: st.DataObject, client: str) -> None:
        job = self.pick(data, *LIVE)
        assert self.wait(self.queue.notify_end(job.id, client)) == ("live", "")
        if client not in job.clients:
            job.clients.append(client)

    # ended tasks

    @precondition(lambda self: self.model.kept)
    @rule(data=st.data(), tube=st.sampled_from(["", *TUBES]))
    def read_and_purge_ended_tasks(self, data: st.DataObject, tube: str) -> None:
        """An ended task that is kept can be waited for and not be cancelled; `purge` deletes it."""
        task_id, kept = data.draw(st.sampled_from(list(self.model.kept.items())))
        assert self.wait(self.queue.cancel(task_id)) == CancelResult(0, 0)
        assert self.wait(self.queue.notify_end(task_id, "late")) == (kept.state, kept.answer)
        gone = [task_id for task_id, kept in self.model.kept.items() if tube in ("", kept.tube)]
        assert self.wait(self.queue.purge(tube)) == len(gone)
        for task_id in gone:
            del self.model.kept[task_id]

    # time and crashes

    @rule(time=minutes)
    def time_passes(self, time: int) -> None:
        self.stack.advance_clock(time * MINUTE)
        self.model.time += time
        self.tick()

    def tick(self) -> None:
        self.wait(self.stack.tick())
        self.model.tick()

    @precondition(lambda self: self.crashes < 1 and len(self.model.jobs) > 3)
    @rule()
    def the_server_is_killed(self) -> None:
        self.crashes += 1
        self.server.kill()
        self.server.start()

    # what must hold after every step

    @invariant()
    def the_audit_is_clean(self) -> None:
        self.wait(self.stack.audit())

    @invariant()
    def every_task_is_as_in_the_model(self) -> None:
        jobs = list(self.model.jobs.values())
        for job, task in zip(jobs, self.wait(self.peek_all([job.id for job in jobs])), strict=True):
            first = self.model.waits_for(job)
            assert task.state == ("locked" if first else job.state)
            assert task.waits_for == (first and first.id)
            assert (task.attempts or 0, task.body or "") == (job.attempts, job.body)
            assert (task.checkpoint or "", task.cancel is not None) == (job.checkpoint, job.flagged)

    @invariant()
    def kept_tasks_show_how_they_ended(self) -> None:
        for kept, task in zip(self.model.kept.values(), self.wait(self.peek_all(self.model.kept)), strict=True):
            assert (task.state, task.answer or "") == (kept.state, kept.answer)

    async def peek_all(self, ids: Iterable[str]) -> list[TaskView]:
        return list(await asyncio.gather(*(self.queue.inspector.peek(task_id) for task_id in ids)))

    @invariant()
    def the_statistics_are_those_of_the_model(self) -> None:
        stats = self.wait(self.queue.inspector.stats())
        assert stats.finished == len(self.model.kept)
        for tube in TUBES:
            found, states = stats.tubes.get(tube), StateCounts(**self.model.states(tube))
            assert (found.states if found else NO_TASKS) == states
            for name in COUNTED:
                assert (getattr(found, name) if found else 0) == self.model.counts[tube, name], name

    @invariant()
    def clients_are_notified_of_every_end_once(self) -> None:
        for client in ("caller", "waiter", "late"):
            name = KEYS["reply"].at(0, client)
            entries = self.wait(self.store.command("XRANGE", name, "-", "+"))
            ends = [dict(zip(fields[::2], fields[1::2], strict=True)) for _, fields in entries]
            notified = [(f"0.{end['task']}", end["state"], end["answer"]) for end in ends]
            assert sorted(notified) == sorted(self.model.notified[client])

    def teardown(self) -> None:
        """When everything has ended, only keys that are declared permanent remain."""
        try:
            self.wait(self.stack.end_everything())
            self.wait(self.queue.purge())
            left = {key: kind_of(key) for key in self.server.all_keys() if key.startswith("queue:")}
            stays = (Lifetime.FOREVER, Lifetime.TTL)
            assert [key for key, kind in left.items() if kind is None or kind.lifetime not in stays] == []
        finally:
            self.wait(self.stack.close())
            limits.close(self.runner)


@on_both_servers
@pytest.mark.timeout(limits.MACHINE)
def test_the_queue_behaves_as_its_model(server: Server, request: pytest.FixtureRequest, long_form: bool) -> None:
    machine = type("Machine", (Machine,), {"server": server})
    examples = request.config.getoption("--examples") or (LONG_EXAMPLES if long_form else EXAMPLES)
    wanted = settings(SETTINGS if long_form else WITHOUT_SHRINKING, max_examples=examples, stateful_step_count=STEPS)
    run_state_machine_as_test(machine, settings=wanted)
