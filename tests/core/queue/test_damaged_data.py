"""A key that another program has overwritten is set aside: it stops nothing else, is reported, and is repaired."""

from datetime import timedelta

import pytest

from core.errors import NotFound
from core.model.states import Status
from core.queue import NewTask, TaskFilter
from tests.core.audit.damages import Scene, scene
from tests.support.servers import Server, on_both_servers
from tests.support.stack import HOUR, LEASE, TENANT, FakeCourier, Stack, people, person

pytestmark = on_both_servers

TASKS = {
    "a": "first of a lane",
    "b": "locked in a lane",
    "c": "ready",
    "d": "deferred",
    "e": "buried",
    "f": "taken",
    "h": "backing off",
    "k": "ended and kept",
}


BEHIND = {"f": "g", "h": "i"}
"""The lane of a task that was under way waits for the repair, because what became of that task is unknown."""


@pytest.fixture
async def damaged(server: Server) -> Scene:
    """Tasks and deliveries in every state."""
    return await scene(await Stack.open(server))


async def overwrite(made: Scene, name: str) -> str:
    """Put a text in the place of a task; return its public id."""
    key = made.filled(f"queue:{{0}}:task:<{name}>")
    await made.damage(["DEL", key], ["SET", key, "not a task"])
    return "0." + made.names[name]


async def pass_two_hours(stack: Stack) -> None:
    stack.advance_clock(2 * HOUR)
    await stack.tick()


@pytest.mark.parametrize("name", TASKS, ids=TASKS.get)
async def test_an_overwritten_task_stops_no_other_task(damaged: Scene, name: str) -> None:
    """Regression: every claim of the shard failed, in all tubes."""
    stack = damaged.stack
    await overwrite(damaged, name)
    await pass_two_hours(stack)
    await stack.queue.put("u", NewTask("another tube"))
    assert [task.body for task in await stack.take("u")] == ["another tube"]
    await stack.queue.put("t", NewTask("new", lane="lane"))
    done = await stack.finish_all("t")
    assert {"b", "c", "d", "g", "i", "new"} - {name, BEHIND.get(name)} <= set(done)
    await damaged.repair()
    assert BEHIND.get(name, "") in "".join([*done, *await stack.finish_all("t")])
    await stack.close()


@pytest.mark.parametrize("name", TASKS, ids=TASKS.get)
async def test_operators_see_the_other_tasks_beside_an_overwritten_one(damaged: Scene, name: str) -> None:
    """Regression: status 500."""
    stack = damaged.stack
    task_id = await overwrite(damaged, name)
    with pytest.raises(NotFound):
        await stack.queue.inspector.peek(task_id)
    assert (await stack.queue.inspector.stats()).tubes["t"].put
    listed = (await stack.queue.inspector.list(TaskFilter(), None, 1000)).tasks
    assert task_id not in [task.id for task in listed]
    assert len(listed) > 5
    for selected in (TaskFilter(tenant="default"), TaskFilter(lane="lane"), TaskFilter(user="u")):
        assert task_id not in [task.id for task in await stack.queue.inspector.select(selected)]
    await stack.queue.kick_some("t", 10)
    await stack.queue.cancel_by(TaskFilter(tenant="default"))
    await stack.close()


@pytest.mark.parametrize("is_met", [False, True], ids=["not met", "met by a script"])
@pytest.mark.parametrize("name", [*TASKS, "parcel"])
async def test_an_overwritten_task_is_reported_and_repaired(damaged: Scene, name: str, is_met: bool) -> None:
    """Repaired: the text is kept aside for a month, and nothing else remains of the task."""
    stack = damaged.stack
    await overwrite(damaged, name)
    if is_met:
        await stack.store.run("bury", 0, damaged.names[name])
    found = [violation for violation in await damaged.violations() if "not" not in violation.why]
    assert any("in the place of" in violation.found for violation in found)
    await damaged.repair()
    assert await damaged.violations() == []
    (kept,) = await stack.redis.keys("damaged:*")
    assert await stack.redis.get(kept) == "not a task"
    assert 0 < await stack.redis.pttl(kept) <= 30 * 86_400_000
    await stack.close()


async def test_the_recipients_of_an_overwritten_parcel_are_unknown_after_the_repair(stack: Stack) -> None:
    """What its courier did is not known. Recipients of other parcels keep their outcomes."""
    courier = FakeCourier(parcel=2)
    await stack.stop(await stack.courier(courier))
    key = (await stack.deliver(*people(4))).key
    taken = await stack.take("echo", 1)
    name = f"queue:{{0}}:task:{taken[0].id}"
    await stack.redis.delete(name)
    await stack.redis.set(name, "not a task")
    await stack.courier(courier)
    await made_of(stack).repair()
    history = await stack.finished(key)
    statuses = [record.outcomes["echo"].status for record in history.recipients]
    assert sorted(statuses) == [Status.SENT, Status.SENT, Status.UNKNOWN, Status.UNKNOWN]


def made_of(stack: Stack) -> Scene:
    return Scene(stack)


async def test_a_lost_task_does_not_stop_its_lane(stack: Stack) -> None:
    """Regression: a lane whose first task another program had deleted was never taken again."""
    ids = await stack.queue.put_many("t", [NewTask(str(n), lane="lane") for n in range(4)])
    names = [task_id.partition(".")[2] for task_id in ids]
    await stack.redis.delete(f"queue:{{0}}:task:{names[0]}", f"queue:{{0}}:task:{names[2]}")
    assert await stack.finish_all() == ["1", "3"]
    await made_of(stack).repair()


async def test_a_worker_whose_task_is_overwritten_loses_only_that_lease(stack: Stack) -> None:
    await stack.queue.put_many("t", [NewTask("a"), NewTask("b")])
    first, second = await stack.take(limit=2)
    await stack.redis.delete(f"queue:{{0}}:task:{first.id}")
    await stack.redis.set(f"queue:{{0}}:task:{first.id}", "not a task")
    assert not (await stack.queue.extend(first, LEASE)).lease_valid
    assert await stack.queue.settle(first) == "stale"
    assert (await stack.queue.extend(second, LEASE)).lease_valid
    assert await stack.queue.settle(second) == "done"
    await made_of(stack).repair()


async def test_an_overwritten_history_stops_no_other_delivery(stack: Stack) -> None:
    """Regression: the due moment of one such delivery stopped all claims."""
    await stack.courier(FakeCourier())
    bad = (await stack.deliver(*people(2), deliver_at=stack.now() + timedelta(seconds=0.3))).key
    name = f"history:{{0}}:{bad.suffix}"
    await stack.redis.delete(name)
    await stack.redis.set(name, "not a history")
    good = [(await stack.deliver(person(n), deliver_at=stack.now() + timedelta(seconds=0.3))).key for n in (1, 2)]
    for key in good:
        await stack.finished(key)
    await made_of(stack).repair()


async def test_overwritten_outcomes_stop_no_other_delivery(stack: Stack) -> None:
    """Regression: the end of the lease of one such parcel stopped all claims."""
    stack.abandon(await stack.courier(FakeCourier()))
    bad = (await stack.deliver(*people(2))).key
    await stack.deliver(person(9))
    assert await stack.take("echo", 1)
    await stack.deliveries.cancel(bad, TENANT, ["1"])
    name = f"history:{{0}}:{bad.suffix}:outcomes"
    await stack.redis.delete(name)
    await stack.redis.set(name, "not outcomes")
    stack.advance_clock(timedelta(minutes=2))
    await stack.courier(FakeCourier())
    good = (await stack.deliver(*people(2))).key
    await stack.finished(good)
    await made_of(stack).repair()
