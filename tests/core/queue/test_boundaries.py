"""The last allowed value and the first refused one, and counts around the size of a page."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from core.errors import Invalid
from core.queue import CancelResult, NewTask, Settlement, TaskFilter, Tube, Tubes
from tests.support.servers import on_both_servers
from tests.support.stack import HOUR, Stack


@pytest.mark.parametrize(("weight", "stored"), [(1, {}), (100, {"t": 100})])
async def test_the_least_and_the_greatest_weight_are_accepted(
    stack: Stack, weight: int, stored: dict[str, int]
) -> None:
    await Tubes(stack.store).set_weight("t", weight)
    assert await Tubes(stack.store).weights() == stored


async def test_the_greatest_pace_is_accepted_and_a_greater_one_refused(stack: Stack) -> None:
    tubes = Tubes(stack.store)
    await tubes.create(Tube("t", pace=1_000_000))
    assert (await tubes.get("t")).pace == 1_000_000
    with pytest.raises(Invalid):
        await tubes.create(Tube("t", pace=1_000_001))


@pytest.mark.parametrize("count", [199, 200, 201, 401])
async def test_any_number_of_tasks_is_put_once_and_in_order(stack: Stack, count: int) -> None:
    ids = await stack.queue.put_many("t", [NewTask(str(n)) for n in range(count)])
    assert len(ids) == len(set(ids)) == count
    assert await stack.finish_all() == [str(n) for n in range(count)]


@pytest.mark.parametrize("count", [99, 100, 101, 201])
async def test_any_number_of_attempts_is_settled_together(stack: Stack, count: int) -> None:
    await stack.queue.put_many("t", [NewTask("")] * count)
    tasks = await stack.take(limit=count)
    assert len(tasks) == count
    assert await stack.settle_all([(task, Settlement()) for task in tasks]) == ["done"] * count
    assert (await stack.queue.inspector.stats()).tubes["t"].done == count


@pytest.mark.parametrize("count", [99, 100, 101, 200, 201])
async def test_any_number_of_tasks_is_cancelled_by_their_user(stack: Stack, count: int) -> None:
    await stack.queue.put_many("t", [NewTask("", user="u")] * count)
    assert await stack.queue.cancel_by(TaskFilter(user="u")) == CancelResult(count, 0)
    assert (await stack.queue.inspector.stats()).tubes["t"].live == 0


@pytest.mark.parametrize("limit", [1, 499, 500, 501, 502, 1000])
async def test_a_search_returns_up_to_its_limit_across_pages(stack: Stack, limit: int) -> None:
    ids = await stack.queue.put_many("t", [NewTask("", user="u")] * 502)
    assert [task.id for task in await stack.queue.inspector.select(TaskFilter(user="u"), limit)] == ids[:limit]


async def test_more_ended_tasks_than_a_page_are_purged(stack: Stack) -> None:
    await Tubes(stack.store).create(Tube("t", keep=HOUR))
    await stack.queue.put_many("t", [NewTask("")] * 501)
    await stack.finish_all()
    assert await stack.queue.purge("t") == 501
    assert (await stack.queue.inspector.stats()).finished == 0


async def test_a_filter_by_tenant_leaves_equal_tasks_of_another_tenant(stack: Stack) -> None:
    common: dict[str, Any] = {"user": "u", "kind": "k", "tags": ["x"]}
    ours = await stack.queue.put("t", NewTask("ours", tenant="uni", lane="l", **common))
    await stack.queue.put("t", NewTask("theirs", tenant="school", lane="l", **common))
    await stack.queue.put("t", NewTask("theirs", tenant="school", **common))
    for field, value in (("user", "u"), ("lane", "l"), ("kind", "k"), ("tag", "x")):
        selected = TaskFilter(tenant="uni", **{field: value})
        assert [task.id for task in await stack.queue.inspector.select(selected)] == [ours]
    page = await stack.queue.inspector.list(TaskFilter(tube="t", tenant="uni"), None, 100)
    assert [task.id for task in page.tasks] == [ours]
    assert await stack.queue.cancel_by(TaskFilter(tenant="uni", user="u")) == CancelResult(1, 0)
    assert await stack.finish_all() == ["theirs", "theirs"]


@on_both_servers
async def test_a_task_due_in_the_year_9999_keeps_its_times_to_the_millisecond(stack: Stack) -> None:
    last = datetime(9999, 12, 31, 23, 59, 59, 998_000, tzinfo=UTC)
    task_id = await stack.queue.put("t", NewTask("late", due=last, expires=last + timedelta(milliseconds=1)))
    await stack.audit()
    task = await stack.queue.inspector.peek(task_id)
    assert (task.due, task.expires) == (253_402_300_799_998, 253_402_300_799_999)


@pytest.mark.parametrize("name", ["tab\tand line\n", "100 %", "%41", "0", "Аня 🦉", "\x01", "a" * 5000])
async def test_a_tube_and_a_lane_may_have_any_name(stack: Stack, name: str) -> None:
    task_id = await stack.queue.put(name, NewTask("body\n\tof two lines", lane=name))
    await stack.audit()
    task = await stack.queue.inspector.peek(task_id)
    assert (task.tube, task.lane, task.body) == (name, name, "body\n\tof two lines")
    assert await stack.finish_all(name) == ["body\n\tof two lines"]
