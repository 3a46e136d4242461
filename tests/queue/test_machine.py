"""The queue against its model: any sequence of verbs with any options, several workers and tubes, workers that forget,
a server that is killed, and passing time; the audit is asked after every step.

`pytest tests/queue/test_machine.py --examples 1000` looks longer.
"""

import asyncio
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule, run_state_machine_as_test

from core.queue.queue import TaskFilter
from core.redis.keys import KEYS, Lifetime, kind_of
from tests.queue.model import LANES, TUBES
from tests.queue.state_machine import MINUTE, Working, clients, minutes, rarely, tubes
from tests.support.hypothesis_settings import SETTINGS
from tests.support.servers import Server, on_both_servers

EXAMPLES, STEPS = 16, 70
COUNTED = (
    *("put", "claimed", "done", "failed", "cancelled", "expired"),
    *("buried", "kicked", "released", "retried", "lost", "promoted"),
)
LIVE = ("waiting", "ready", "taken", "buried")

selections = st.one_of(
    st.builds(TaskFilter, user=st.sampled_from("vw")),
    st.builds(TaskFilter, tenant=st.sampled_from("ab"), tube=st.sampled_from(["", *TUBES])),
    st.builds(TaskFilter, lane=st.sampled_from(LANES)),
    st.builds(TaskFilter, kind=st.sampled_from(["timer.", "timer.a", "m"])),
    st.builds(TaskFilter, tag=st.sampled_from("pq"), user=st.sampled_from(["", "v"])),
)


class Machine(Working):
    """With the operators, those who wait, and what befalls all of them."""

    # operators

    @precondition(lambda self: self.model.jobs)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        job = self.pick(data, *LIVE)
        assert self.wait(self.queue.cancel(job.id)) == self.model.cancel([job])

    @rule(selection=selections, cancels=rarely)
    def look_up_and_cancel(self, selection: TaskFilter, cancels: bool) -> None:
        chosen = self.model.chosen(selection)
        found = [task["id"] for task in self.wait(self.queue.select(selection))]
        if selection.index()[0] == "lane":  # those that stand in it, then the others
            chosen.sort(key=lambda job: found.index(job.id) if job.id in found else -1)
        assert found == [job.id for job in chosen]
        if not cancels:
            return
        assert self.wait(self.queue.cancel_by(selection)) == self.model.cancel(chosen)

    @precondition(lambda self: self.has("ready", "waiting"))
    @rule(data=st.data())
    def bury(self, data: st.DataObject) -> None:
        job = self.pick(data, "ready", "waiting")
        assert self.wait(self.queue.bury(job.id))["state"] == "buried"
        self.model.bury(job)

    @precondition(lambda self: self.has("buried"))
    @rule(tube=tubes, data=st.data())
    def kick(self, tube: str, data: st.DataObject) -> None:
        """One by its id, then those of a tube, which were buried first."""
        one = self.pick(data, "buried")
        self.wait(self.queue.kick(one.id))
        self.model.kick(one)
        buried = self.wait(self.store.command("ZRANGE", KEYS["buried"].at(0), 0, -1))
        jobs = [job for name in buried if (job := self.model.jobs[f"0.{name}"]).tube == tube]
        assert self.wait(self.queue.kick_some(tube, 100)) == len(jobs)
        for job in jobs:
            self.model.kick(job)
        self.tick()

    # those who wait

    @precondition(lambda self: self.model.jobs)
    @rule(data=st.data(), client=clients)
    def wait_for_an_end(self, data: st.DataObject, client: str) -> None:
        job = self.pick(data, *LIVE)
        assert self.wait(self.queue.wait(job.id, client)) == ("live", "")
        if client not in job.clients:
            job.clients.append(client)

    # what has ended

    @precondition(lambda self: self.model.kept)
    @rule(data=st.data(), tube=st.sampled_from(["", *TUBES]))
    def touch_what_is_kept(self, data: st.DataObject, tube: str) -> None:
        """It can be waited for and not be cancelled; then it is forgotten."""
        task_id, kept = data.draw(st.sampled_from(list(self.model.kept.items())))
        assert self.wait(self.queue.cancel(task_id)) == {"cancelled": 0, "flagged": 0}
        assert self.wait(self.queue.wait(task_id, "late")) == (kept.state, kept.answer)
        gone = [task_id for task_id, kept in self.model.kept.items() if tube in ("", kept.tube)]
        assert self.wait(self.queue.purge(tube)) == len(gone)
        for task_id in gone:
            del self.model.kept[task_id]

    # what befalls all

    @rule(time=minutes)
    def time_passes(self, time: int) -> None:
        self.stack.passes(time * MINUTE)
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
        for job, told in zip(jobs, self.wait(self.peek_all([job.id for job in jobs])), strict=True):
            before = self.model.waits_for(job)
            seen = told["state"], told.get("waits_for"), told.get("attempts", 0), told.get("body", "")
            assert seen == ("locked" if before else job.state, before and before.id, job.attempts, job.body)
            assert (told.get("checkpoint", ""), "cancel" in told) == (job.checkpoint, job.flagged)

    @invariant()
    def what_is_kept_is_as_it_ended(self) -> None:
        for kept, told in zip(self.model.kept.values(), self.wait(self.peek_all(self.model.kept)), strict=True):
            assert (told["state"], told.get("answer", "")) == (kept.state, kept.answer)

    async def peek_all(self, ids: Any) -> list[dict[str, Any]]:
        return await asyncio.gather(*(self.queue.peek(task_id) for task_id in ids))

    @invariant()
    def the_statistics_are_those_of_the_model(self) -> None:
        told = self.wait(self.queue.stats())
        assert told["finished"] == len(self.model.kept)
        for tube in TUBES:
            of_tube = told["tubes"].get(tube, {})
            assert {name: of_tube.get(name, 0) for name in COUNTED} == {
                name: self.model.counts[tube, name] for name in COUNTED
            }
            assert of_tube.get("states", self.model.states(tube)) == self.model.states(tube)

    @invariant()
    def who_waits_was_told_of_every_end_once(self) -> None:
        for client in ("caller", "waiter", "late"):
            name = KEYS["reply"].at(0, client)
            entries = self.wait(self.store.command("XRANGE", name, "-", "+"))
            ends = [dict(zip(fields[::2], fields[1::2], strict=True)) for _, fields in entries]
            told = [(f"0.{end['task']}", end["state"], end["answer"]) for end in ends]
            assert sorted(told) == sorted(self.model.told[client])

    def teardown(self) -> None:
        """After everything has ended only what is declared permanent remains."""
        try:
            self.wait(self.stack.end_everything())
            self.wait(self.queue.purge())
            left = {key: kind_of(key) for key in self.server.all_keys() if key.startswith("queue:")}
            stays = (Lifetime.FOREVER, Lifetime.TTL)
            assert [key for key, kind in left.items() if kind is None or kind.lifetime not in stays] == []
        finally:
            self.wait(self.stack.close())
            self.runner.close()


@on_both_servers
@pytest.mark.timeout(0)
@pytest.mark.row("K-06", "K-09", "K-12", "K-15", "K-16", "K-17", "K-25", "K-30", "K-31", "K-34", "K-35", "K-36", "K-37")
def test_the_queue_does_what_the_model_does(server: Server, request: pytest.FixtureRequest) -> None:
    machine = type("Machine", (Machine,), {"server": server})
    examples = request.config.getoption("--examples") or EXAMPLES
    wanted = settings(SETTINGS, max_examples=examples, stateful_step_count=STEPS)
    run_state_machine_as_test(machine, settings=wanted)
