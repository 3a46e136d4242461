"""The audit finds every record and index of a job that another contradicts (I22 to I24)."""

from datetime import timedelta

import pytest

from core.audit.invariants.jobs import JobStanding, count_violations
from core.jobs import Actor, JobId, Jobs, Schedule
from tests.core.audit.damages import Scene
from tests.support.servers import Server
from tests.support.stack import HOUR, TENANT, Stack

RUNNING, LIMITED, STOPPED, TASK = "<running>", "<limited>", "<stopped>", "queue:{0}:task:<task>"
JOB, DUE, COUNTS, LISTED = "job:{0}:", "jobs:{0}:due", "jobs:{0}:counts:university", "jobs:{0}:of:university"
ENDED = "jobs:{0}:ended"

# The invariant that reports it, and the damage.
DAMAGES = [
    ("I22", ["DEL", TASK]),
    ("I22", ["TASK", "<task>", "tube", "other"]),
    ("I22", ["DEL", "queue:{0}:task:<wait>"]),
    ("I23", ["HSET", JOB + RUNNING, "record", "no JSON"]),
    ("I23", ["HSET", JOB + RUNNING, "state", "paused"]),
    ("I23", ["ZREM", DUE, RUNNING]),
    ("I23", ["ZREM", DUE, LIMITED]),
    ("I23", ["ZADD", DUE, "1", RUNNING]),
    ("I23", ["ZADD", DUE, "1", STOPPED]),
    ("I23", ["ZADD", DUE, "1", "university/hunt.9"]),
    ("I23", ["ZADD", ENDED, "1", RUNNING]),
    ("I23", ["ZADD", ENDED, "1", STOPPED]),
    ("I23", ["ZADD", ENDED, "1", "university/hunt.9"]),
    ("I23", ["ZREM", LISTED, RUNNING]),
    ("I23", ["ZADD", LISTED, "1", "university/hunt.9"]),
    ("I23", ["HINCRBY", COUNTS, "running", "1"]),
    ("I23", ["HINCRBY", COUNTS, "stopped", "-1"]),
    ("I23", ["HSET", COUNTS, "failed", "1"]),
    ("I23", ["HDEL", COUNTS, "paused"]),
    ("I23", ["DEL", COUNTS]),
    ("I24", ["HSET", "job-steps:{0}:" + RUNNING, "search", "[]"]),
    ("I24", ["HSET", "job-steps:{0}:university/hunt.9", "search", "[]"]),
    ("I24", ["HSET", "job-steps:{0}:" + STOPPED, "search", "[]"]),
    ("I24", ["ZADD", "job-order:{0}:" + RUNNING, "1", "search"]),
    ("I24", ["ZADD", "job-order:{0}:" + STOPPED, "1", "search"]),
    ("I24", ["ZADD", "job-order:{0}:university/hunt.9", "1", "search"]),
]


@pytest.fixture
async def damaged(server: Server) -> Scene:
    """A job that runs, another that waits for the end of a limit, and a stopped one."""
    stack = await Stack.open(server)
    jobs = Jobs(stack.store)
    await jobs.kinds.publish({"hunt": Schedule(timedelta(hours=1))})
    ids = {name: JobId(TENANT, "hunt", name) for name in ("running", "limited", "stopped")}
    running = await jobs.start(ids["running"])
    for name in ("limited", "stopped"):
        await jobs.start(ids[name])
    limited = await jobs.pause(ids["limited"], Actor.LIMIT, "enough", jobs.now() + HOUR)
    await jobs.stop(ids["stopped"], Actor.USER)
    names = {name: f"{TENANT}/{job_id.name}" for name, job_id in ids.items()}
    tasks = {"task": running.record.task, "wait": limited.record.task}
    return Scene(stack, names | {name: task.partition(".")[2] for name, task in tasks.items()})


async def test_every_damage_of_a_job_is_found(damaged: Scene) -> None:
    await damaged.check_each(DAMAGES)
    await damaged.stack.close()


def test_a_job_that_changes_while_jobs_are_counted_may_count_either_way() -> None:
    before = {"a": JobStanding(1, "running"), "b": JobStanding(1, "running")}
    after = {"a": JobStanding(1, "running"), "b": JobStanding(2, "paused"), "c": JobStanding(1, "running")}
    sound = ({"running": "2"}, {"running": "1", "paused": "1"}, {"running": "2", "paused": "1"})
    assert not [one for stored in sound for one in count_violations(0, TENANT, stored, before, after)]
    for stored in ({"running": "0", "paused": "0"}, {"running": "4"}):
        assert [one.rule for one in count_violations(0, TENANT, stored, before, after)] == ["I23"]


def test_a_job_that_leaves_its_state_and_returns_to_it_has_changed() -> None:
    before, after = {"a": JobStanding(1, "running")}, {"a": JobStanding(3, "running")}
    assert not list(count_violations(0, TENANT, {"paused": "1", "running": "0"}, before, after))
