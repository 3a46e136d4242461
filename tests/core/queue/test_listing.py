"""Tasks are listed by state and tube from the indexes of their states, never by reading all tasks."""

from collections import Counter
from datetime import timedelta

import pytest

from core.queue import NewTask, SettleResult, TaskFilter, Tube, Tubes
from tests.support.servers import on_both_servers
from tests.support.stack import HOUR, Stack

pytestmark = on_both_servers


async def listed(stack: Stack, selected: TaskFilter, limit: int = 7) -> list[str]:
    """Return the bodies of all tasks of a list, read in pages."""
    found: list[str] = []
    cursor: str | None = None
    while True:
        page = await stack.queue.inspector.list(selected, cursor, limit)
        assert len(page.tasks) <= limit
        found += [task.body or "" for task in page.tasks]
        cursor = page.cursor
        if cursor is None:
            return found


async def put_in_every_state(stack: Stack, tube: str, count: int) -> None:
    """Put `count` tasks into each state of a tube; the body of a task is its state."""
    await Tubes(stack.store).create(Tube(tube, keep=HOUR))
    put = stack.queue.put
    for n in range(count):
        await put(tube, NewTask("done"))
        await put(tube, NewTask("taken", lane=f"{n % 3}", priority=9))
    for task in await stack.take(tube, 2 * count, lease=HOUR):
        if task.body == "done":
            await stack.queue.settle(task)
    for task in await stack.take(tube, count, lease=HOUR):
        assert task.body == "taken"
    for n in range(count):
        await put(tube, NewTask("locked", lane=f"{n % 3}"))
        await put(tube, NewTask("waiting", due=stack.now() + HOUR))
        await stack.queue.bury(await put(tube, NewTask("buried")))
        await put(tube, NewTask("ready", tenant=f"tenant {n % 2}", lane=f"free {n}" if n % 2 else ""))


async def test_each_state_is_listed_in_pages_that_neither_skip_nor_repeat_a_task(stack: Stack) -> None:
    await put_in_every_state(stack, "t", 20)
    await put_in_every_state(stack, "u", 3)
    assert await listed(stack, TaskFilter(tube="t", state="taken")) == ["taken"] * 3  # one of each lane
    assert Counter(await listed(stack, TaskFilter(tube="t", state="locked"))) == {"taken": 17, "locked": 20}
    for state in ("ready", "waiting", "buried", "done"):
        assert await listed(stack, TaskFilter(tube="t", state=state)) == [state] * 20
        assert await listed(stack, TaskFilter(state=state)) == [state] * 23
    assert await listed(stack, TaskFilter(tube="t", state="failed")) == []
    assert await listed(stack, TaskFilter(tube="t", state="ready", tenant="tenant 1")) == ["ready"] * 10
    everything = Counter(await listed(stack, TaskFilter()))
    assert everything == dict.fromkeys(("taken", "locked", "waiting", "buried", "ready", "done"), 23)


@pytest.mark.parametrize("apart", [timedelta(0), timedelta(minutes=1)], ids=["one moment", "each its own"])
async def test_a_task_that_leaves_between_two_pages_does_not_hide_others(stack: Stack, apart: timedelta) -> None:
    """Also where many tasks are due at one moment: a page ends between two of them, and its last one leaves."""
    due = stack.now() + HOUR
    ids = await stack.queue.put_many("t", [NewTask(str(n), due=due + n * apart) for n in range(250)])
    page = await stack.queue.inspector.list(TaskFilter(state="waiting"), None, 120)
    await stack.queue.cancel(page.tasks[-1].id)
    rest = await stack.queue.inspector.list(TaskFilter(state="waiting"), page.cursor, 250)
    assert {task.id for task in (*page.tasks, *rest.tasks)} == set(ids)


async def test_a_page_reads_a_bounded_number_of_tasks_and_goes_on_after_them(stack: Stack) -> None:
    """3000 deferred tasks of another tube lie before the task that is searched for."""
    await stack.queue.put_many("t", [NewTask("", due=stack.now() + HOUR)] * 3000)
    await stack.queue.put("u", NewTask("late", due=stack.now() + 2 * HOUR))
    page = await stack.queue.inspector.list(TaskFilter(tube="u", state="waiting"), None, 10)
    assert (page.tasks, page.cursor is None) == ([], False)
    assert await listed(stack, TaskFilter(tube="u", state="waiting")) == ["late"]


async def test_the_locked_tasks_of_many_lanes_are_listed_lane_by_lane(stack: Stack) -> None:
    """Also if a page has more than one read of the only lane."""
    for lane in range(300):
        await stack.queue.put_many("t", [NewTask(f"{lane}", lane=f"lane {lane}")] * 3)
    for tube in ("t", "u"):
        await stack.queue.put_many(tube, [NewTask("long", lane="long")] * 251)
    found = await listed(stack, TaskFilter(tube="t", state="locked"), 50)
    assert Counter(found) == {"long": 250, **{str(lane): 2 for lane in range(300)}}
    assert len(await listed(stack, TaskFilter(tube="u", state="locked"), 120)) == 250


async def test_retried_tasks_and_parcels_are_in_the_list_of_their_state(stack: Stack) -> None:
    await stack.queue.put("t", NewTask("off", lane="l"))
    (task,) = await stack.take()
    due = int((stack.now() + timedelta(minutes=5)).timestamp() * 1000)
    await stack.queue.settle(task, result=SettleResult.RETRY, due=due)
    assert await listed(stack, TaskFilter(tube="t", state="waiting")) == ["off"]
