"""Lanes are strict: within a tube one task of a lane is taken at a time, in the order of the puts."""

from datetime import timedelta
from typing import Any

import pytest

from core.model.states import DeliveryState, Status
from core.queue import CancelResult, NewTask, SettleResult
from tests.support.delivery_progress import GONE, by_address
from tests.support.servers import on_both_servers
from tests.support.stack import HOUR, TENANT, FakeCourier, Stack, people, person

pytestmark = on_both_servers


async def put_all(stack: Stack, *bodies: str, lane: str = "lane", **options: Any) -> list[str]:
    return [await stack.queue.put("t", NewTask(body, lane=lane, **options)) for body in bodies]


async def bodies_taken(stack: Stack, limit: int = 10) -> list[str]:
    return [task.body for task in await stack.take(limit=limit)]


async def test_only_the_head_of_a_lane_is_taken_whatever_the_limit(stack: Stack) -> None:
    await put_all(stack, "a", "b", "c")
    assert await bodies_taken(stack) == ["a"]
    assert await bodies_taken(stack) == []


async def test_a_lane_is_taken_in_the_order_of_the_puts(stack: Stack) -> None:
    await put_all(stack, "a", "b", "c")
    assert await stack.finish_all() == ["a", "b", "c"]


async def test_lanes_do_not_wait_for_each_other(stack: Stack) -> None:
    for lane in ("x", "y", "z"):
        await put_all(stack, f"{lane}1", f"{lane}2", lane=lane)
    assert sorted(await bodies_taken(stack)) == ["x1", "y1", "z1"]


async def test_the_same_lane_in_another_tube_is_another_lane(stack: Stack) -> None:
    for tube in ("t", "u"):
        await stack.queue.put(tube, NewTask(tube, lane="same"))
    assert await bodies_taken(stack) == ["t"]
    assert [task.body for task in await stack.take("u")] == ["u"]


async def test_a_lane_keeps_its_order_when_several_tenants_put_into_it(stack: Stack) -> None:
    for number, tenant in enumerate(["one", "two", "one", "three", "two"]):
        await put_all(stack, str(number), tenant=tenant)
    assert await stack.finish_all() == ["0", "1", "2", "3", "4"]


async def test_a_locked_task_names_the_task_it_waits_for(stack: Stack) -> None:
    first, second = await put_all(stack, "a", "b")
    assert (await stack.queue.inspector.peek(first)).state == "ready"
    task = await stack.queue.inspector.peek(second)
    assert (task.state, task.waits_for) == ("locked", first)


async def test_when_the_head_of_a_lane_is_cancelled_the_next_task_is_ready(stack: Stack) -> None:
    first, *_ = await put_all(stack, "a", "b", "c")
    await stack.queue.cancel(first)
    assert await stack.finish_all() == ["b", "c"]


async def test_a_task_cancelled_in_the_middle_of_a_lane_is_skipped(stack: Stack) -> None:
    _, second, _ = await put_all(stack, "a", "b", "c")
    await stack.queue.cancel(second)
    assert await stack.finish_all() == ["a", "c"]


async def test_a_lane_whose_taken_head_is_cancelled_waits_until_its_worker_settles(stack: Stack) -> None:
    first, *_ = await put_all(stack, "a", "b")
    (task,) = await stack.take()
    assert await stack.queue.cancel(first) == CancelResult(0, 1)
    assert await bodies_taken(stack) == []
    assert (await stack.queue.extend(task, HOUR)).cancelled
    assert await stack.queue.settle(task, result=SettleResult.RETRY) == "cancelled"
    assert await bodies_taken(stack) == ["b"]


async def test_a_cancelled_task_that_is_released_is_not_attempted_again(stack: Stack) -> None:
    """I11. `release` ignored the flag, and another worker attempted the task."""
    first, *_ = await put_all(stack, "a", "b")
    (task,) = await stack.take()
    await stack.queue.cancel(first)
    assert await stack.queue.release(task) == "cancelled"
    assert await stack.finish_all() == ["b"]


async def test_a_buried_head_lets_the_lane_go_on_and_comes_back_at_the_tail(stack: Stack) -> None:
    first, *_ = await put_all(stack, "a", "b")
    assert (await stack.queue.bury(first)).state == "buried"
    assert await bodies_taken(stack) == ["b"]
    assert (await stack.queue.kick(first)).state == "locked"


async def test_a_task_released_with_a_delay_keeps_its_lane_and_its_place(stack: Stack) -> None:
    await put_all(stack, "a", "b")
    (task,) = await stack.take()
    due = int(stack.now().timestamp() * 1000) + 60_000
    assert await stack.queue.release(task, due) == "waiting"
    assert await bodies_taken(stack) == []
    stack.advance_clock(timedelta(seconds=61))
    assert await stack.finish_all() == ["a", "b"]


async def test_a_retry_keeps_the_lane_and_its_place(stack: Stack) -> None:
    await put_all(stack, "a", "b")
    (task,) = await stack.take()
    due = int(stack.now().timestamp() * 1000) + 60_000
    assert await stack.queue.settle(task, result=SettleResult.RETRY, due=due) == "waiting"
    assert await bodies_taken(stack) == []
    stack.advance_clock(timedelta(seconds=61))
    assert await stack.finish_all() == ["a", "b"]


async def test_a_released_task_is_the_next_one_again(stack: Stack) -> None:
    await put_all(stack, "a", "b")
    (task,) = await stack.take()
    assert await stack.queue.release(task) == "ready"
    assert await stack.finish_all() == ["a", "b"]


async def test_after_a_lost_lease_the_same_task_is_first_in_its_lane(stack: Stack) -> None:
    await put_all(stack, "a", "b")
    await stack.take()
    stack.advance_clock(HOUR)
    assert await stack.finish_all() == ["a", "b"]


async def test_when_the_head_of_a_lane_expires_the_next_task_is_ready(stack: Stack) -> None:
    await stack.queue.put("t", NewTask("a", lane="lane", expires=stack.now() + timedelta(minutes=1)))
    await put_all(stack, "b")
    stack.advance_clock(HOUR)
    assert await stack.finish_all() == ["b"]


async def test_a_task_that_expires_while_it_backs_off_frees_its_lane(stack: Stack) -> None:
    await stack.queue.put("t", NewTask("a", lane="lane", expires=stack.now() + timedelta(minutes=1)))
    await put_all(stack, "b")
    (task,) = await stack.take()
    await stack.queue.release(task, int((stack.now() + 5 * HOUR).timestamp() * 1000))
    stack.advance_clock(timedelta(minutes=2))
    assert await stack.finish_all() == ["b"]


async def test_a_deferred_task_enters_its_lane_when_due_behind_the_tasks_already_there(stack: Stack) -> None:
    await stack.queue.put("t", NewTask("deferred", lane="lane", due=stack.now() + timedelta(minutes=1)))
    await put_all(stack, "a", "b")
    (task,) = await stack.take(lease=HOUR)
    assert task.body == "a"
    stack.advance_clock(timedelta(minutes=2))
    await stack.tick()
    await put_all(stack, "c")
    await stack.queue.settle(task)
    assert await stack.finish_all() == ["b", "deferred", "c"]


async def test_a_deferred_task_of_an_empty_lane_is_taken_when_it_is_due_and_not_before(stack: Stack) -> None:
    task_id = await stack.queue.put("t", NewTask("deferred", lane="lane", due=stack.now() + timedelta(minutes=1)))
    assert await stack.state(task_id) == "waiting"
    assert await bodies_taken(stack) == []
    stack.advance_clock(timedelta(minutes=2))
    assert await bodies_taken(stack) == ["deferred"]


async def test_cancelling_a_deferred_task_does_not_change_its_lane(stack: Stack) -> None:
    task_id = await stack.queue.put("t", NewTask("deferred", lane="lane", due=stack.now() + timedelta(minutes=1)))
    await put_all(stack, "a", "b")
    await stack.queue.cancel(task_id)
    assert await stack.finish_all() == ["a", "b"]


@pytest.mark.parametrize("moved", [False, True])
async def test_a_delivery_does_not_overtake_one_that_fell_due_without_a_courier(stack: Stack, moved: bool) -> None:
    """Only claims promoted, so a delivery for now stood before another that had been due for an hour."""
    courier, soon = FakeCourier(), stack.now() + HOUR / 2
    await stack.deliver(person(1), lane="lane", deliver_at=soon)
    in_time = await stack.deliver(person(2), lane="lane", deliver_at=soon + HOUR) if moved else None
    stack.advance_clock(HOUR)
    later = in_time or await stack.deliver(person(2), lane="lane")
    if moved:
        await stack.deliveries.reschedule(later.key, TENANT, soon)
    await stack.audit()
    await stack.courier(courier)
    await stack.finished(later.key)
    assert courier.addresses == ["p1", "p2"]


@pytest.mark.parametrize("moved", [False, True])
async def test_a_delivery_waits_its_turn_behind_more_due_tasks_than_one_script_promotes(
    stack: Stack, moved: bool
) -> None:
    courier, soon = FakeCourier(), stack.now() + HOUR / 2
    await stack.queue.put_many("t", [NewTask("", due=soon) for _ in range(150)])
    await stack.deliver(person(1), lane="lane", deliver_at=soon + timedelta(minutes=1))
    in_time = await stack.deliver(person(2), lane="lane", deliver_at=soon + HOUR) if moved else None
    stack.advance_clock(HOUR)
    if in_time is None:
        second = await stack.deliver(person(2), lane="lane")
    else:
        second = await stack.deliveries.reschedule(in_time.key, TENANT, soon)
    assert second.state is DeliveryState.SCHEDULED
    assert second.deliver_at <= stack.now() + timedelta(milliseconds=1)
    assert (await stack.history(second.key)).state is DeliveryState.SCHEDULED
    await stack.audit()
    await stack.courier(courier)
    await stack.finished(second.key)
    assert courier.addresses == ["p1", "p2"]


async def test_a_retried_delivery_does_not_overtake_one_that_fell_due_without_a_courier(stack: Stack) -> None:
    running = await stack.courier(FakeCourier(respond=by_address(p2=GONE)))
    key = (await stack.deliver(person(2), lane="lane")).key
    await stack.finished(key)
    await stack.stop(running)
    await stack.queue.put_many("t", [NewTask("", due=stack.now() + HOUR / 2) for _ in range(150)])
    await stack.deliver(person(1), lane="lane", deliver_at=stack.now() + HOUR / 2 + timedelta(minutes=1))
    stack.advance_clock(HOUR)
    assert await stack.deliveries.retry(key, TENANT, [Status.FAILED]) == 1
    await stack.audit()
    again = FakeCourier()
    await stack.courier(again)
    await stack.finished(key)
    assert again.addresses == ["p1", "p2"]


async def test_a_delivery_without_a_lane_does_not_promote_due_deliveries(stack: Stack) -> None:
    first = await stack.deliver(*people(1), deliver_at=stack.now() + HOUR / 2)
    stack.advance_clock(HOUR)
    await stack.deliver(*people(1))
    assert (await stack.history(first.key)).state is DeliveryState.SCHEDULED
