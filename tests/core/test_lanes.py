"""Lanes are strict: within a tube one task of a lane is taken at a time, in the order of submission."""

from datetime import timedelta
from typing import Any

import pytest

from core.queue import Draft
from core.words import DeliveryState, Status
from tests.core.deliveries import GONE, by_address
from tests.core.house import HOUR, TENANT, House, Played, people, person
from tests.servers import on_both_servers

pytestmark = [on_both_servers, pytest.mark.row("K-12", "K-15", "K-17")]


async def put_all(house: House, *bodies: str, lane: str = "lane", **options: Any) -> list[str]:
    return [await house.queue.put("t", body, lane=lane, **options) for body in bodies]


async def bodies_taken(house: House, limit: int = 10) -> list[str]:
    return [task.body for task in await house.take(limit=limit)]


async def test_only_the_head_of_a_lane_is_taken_however_much_is_asked_for(house: House) -> None:
    await put_all(house, "a", "b", "c")
    assert await bodies_taken(house) == ["a"]
    assert await bodies_taken(house) == []


async def test_a_lane_goes_on_in_the_order_of_submission(house: House) -> None:
    await put_all(house, "a", "b", "c")
    assert await house.finish_all() == ["a", "b", "c"]


async def test_lanes_do_not_wait_for_each_other(house: House) -> None:
    for lane in ("x", "y", "z"):
        await put_all(house, f"{lane}1", f"{lane}2", lane=lane)
    assert sorted(await bodies_taken(house)) == ["x1", "y1", "z1"]


async def test_the_same_lane_in_another_tube_is_another_lane(house: House) -> None:
    for tube in ("t", "u"):
        await house.queue.put(tube, tube, lane="same")
    assert await bodies_taken(house) == ["t"]
    assert [task.body for task in await house.take("u")] == ["u"]


async def test_a_lane_keeps_its_order_when_several_tenants_write_to_it(house: House) -> None:
    for number, tenant in enumerate(["one", "two", "one", "three", "two"]):
        await put_all(house, str(number), tenant=tenant)
    assert await house.finish_all() == ["0", "1", "2", "3", "4"]


async def test_a_task_behind_another_says_whom_it_waits_for(house: House) -> None:
    first, second = await put_all(house, "a", "b")
    assert (await house.queue.peek(first))["state"] == "ready"
    told = await house.queue.peek(second)
    assert (told["state"], told["waits_for"]) == ("locked", first)


async def test_when_the_head_is_cancelled_the_next_is_offered(house: House) -> None:
    first, *_ = await put_all(house, "a", "b", "c")
    await house.queue.cancel(first)
    assert await house.finish_all() == ["b", "c"]


async def test_what_is_cancelled_in_the_middle_is_passed_over(house: House) -> None:
    _, second, _ = await put_all(house, "a", "b", "c")
    await house.queue.cancel(second)
    assert await house.finish_all() == ["a", "c"]


async def test_cancelling_a_taken_head_leaves_the_lane_held_until_its_worker_speaks(house: House) -> None:
    first, *_ = await put_all(house, "a", "b")
    (task,) = await house.take()
    assert await house.queue.cancel(first) == {"cancelled": 0, "flagged": 1}
    assert await bodies_taken(house) == []
    assert (await house.queue.extend(task, HOUR)).cancelled
    assert await house.queue.settle(task, result="retry") == "cancelled"
    assert await bodies_taken(house) == ["b"]


async def test_a_cancelled_task_that_is_released_is_not_tried_again(house: House) -> None:
    """I11. `release` knew nothing of the flag, and the task went on with its next holder."""
    first, *_ = await put_all(house, "a", "b")
    (task,) = await house.take()
    await house.queue.cancel(first)
    assert await house.queue.release(task) == "cancelled"
    assert await house.finish_all() == ["b"]


async def test_a_buried_head_lets_the_lane_go_on_and_comes_back_at_the_tail(house: House) -> None:
    first, *_ = await put_all(house, "a", "b")
    assert (await house.queue.bury(first))["state"] == "buried"
    assert await bodies_taken(house) == ["b"]
    assert (await house.queue.kick(first))["state"] == "locked"


async def test_what_is_released_until_later_keeps_the_lane_and_its_place(house: House) -> None:
    await put_all(house, "a", "b")
    (task,) = await house.take()
    due = int(house.now().timestamp() * 1000) + 60_000
    assert await house.queue.release(task, due) == "waiting"
    assert await bodies_taken(house) == []
    house.passes(timedelta(seconds=61))
    assert await house.finish_all() == ["a", "b"]


async def test_a_retry_keeps_the_lane_and_its_place(house: House) -> None:
    await put_all(house, "a", "b")
    (task,) = await house.take()
    due = int(house.now().timestamp() * 1000) + 60_000
    assert await house.queue.settle(task, result="retry", due=due) == "waiting"
    assert await bodies_taken(house) == []
    house.passes(timedelta(seconds=61))
    assert await house.finish_all() == ["a", "b"]


async def test_a_released_task_is_the_next_one_again(house: House) -> None:
    await put_all(house, "a", "b")
    (task,) = await house.take()
    assert await house.queue.release(task) == "ready"
    assert await house.finish_all() == ["a", "b"]


async def test_a_lost_lease_frees_the_lane_for_the_same_task(house: House) -> None:
    await put_all(house, "a", "b")
    await house.take()
    house.passes(HOUR)
    assert await house.finish_all() == ["a", "b"]


async def test_when_the_head_expires_the_next_is_offered(house: House) -> None:
    await house.queue.put("t", "a", lane="lane", expires=house.now() + timedelta(minutes=1))
    await put_all(house, "b")
    house.passes(HOUR)
    assert await house.finish_all() == ["b"]


async def test_what_expires_while_it_backs_off_frees_the_lane(house: House) -> None:
    await house.queue.put("t", "a", lane="lane", expires=house.now() + timedelta(minutes=1))
    await put_all(house, "b")
    (task,) = await house.take()
    await house.queue.release(task, int((house.now() + 5 * HOUR).timestamp() * 1000))
    house.passes(timedelta(minutes=2))
    assert await house.finish_all() == ["b"]


async def test_a_deferred_task_enters_its_lane_when_it_is_due_behind_those_already_there(house: House) -> None:
    await house.queue.put("t", "deferred", lane="lane", due=house.now() + timedelta(minutes=1))
    await put_all(house, "a", "b")
    (task,) = await house.take(lease=HOUR)
    assert task.body == "a"
    house.passes(timedelta(minutes=2))
    await house.tick()
    await put_all(house, "c")
    await house.queue.settle(task)
    assert await house.finish_all() == ["b", "deferred", "c"]


async def test_a_deferred_task_of_an_empty_lane_is_taken_when_it_is_due_and_not_before(house: House) -> None:
    task_id = await house.queue.put("t", "deferred", lane="lane", due=house.now() + timedelta(minutes=1))
    assert await house.state(task_id) == "waiting"
    assert await bodies_taken(house) == []
    house.passes(timedelta(minutes=2))
    assert await bodies_taken(house) == ["deferred"]


async def test_cancelling_a_deferred_task_leaves_its_lane_as_it_is(house: House) -> None:
    task_id = await house.queue.put("t", "deferred", lane="lane", due=house.now() + timedelta(minutes=1))
    await put_all(house, "a", "b")
    await house.queue.cancel(task_id)
    assert await house.finish_all() == ["a", "b"]


@pytest.mark.parametrize("moved", [False, True])
async def test_a_delivery_does_not_overtake_what_fell_due_without_a_courier(house: House, moved: bool) -> None:
    """Only claims released, so what was sent now, or moved to now, stood before what had been due for an hour."""
    courier, soon = Played(), house.now() + HOUR / 2
    await house.deliver(person(1), lane="lane", deliver_at=soon)
    in_time = await house.deliver(person(2), lane="lane", deliver_at=soon + HOUR) if moved else None
    house.passes(HOUR)
    later = in_time or await house.deliver(person(2), lane="lane")
    if moved:
        await house.histories.reschedule(later.key, TENANT, soon)
    await house.audit()
    await house.courier(courier)
    await house.finished(later.key)
    assert courier.addresses == ["p1", "p2"]


@pytest.mark.parametrize("moved", [False, True])
async def test_behind_more_than_a_page_of_what_fell_due_a_delivery_waits_its_turn(house: House, moved: bool) -> None:
    courier, soon = Played(), house.now() + HOUR / 2
    await house.queue.put_many("t", [Draft("", due=soon) for _ in range(150)])
    await house.deliver(person(1), lane="lane", deliver_at=soon + timedelta(minutes=1))
    in_time = await house.deliver(person(2), lane="lane", deliver_at=soon + HOUR) if moved else None
    house.passes(HOUR)
    if in_time is None:
        told = await house.deliver(person(2), lane="lane")
    else:
        told = await house.histories.reschedule(in_time.key, TENANT, soon)
    assert told.state is DeliveryState.SCHEDULED
    assert told.deliver_at <= house.now() + timedelta(milliseconds=1)
    assert (await house.history(told.key)).state is DeliveryState.SCHEDULED
    await house.audit()
    await house.courier(courier)
    await house.finished(told.key)
    assert courier.addresses == ["p1", "p2"]


async def test_what_is_tried_again_does_not_overtake_what_fell_due_without_a_courier(house: House) -> None:
    running = await house.courier(Played(answer=by_address(p2=GONE)))
    key = (await house.deliver(person(2), lane="lane")).key
    await house.finished(key)
    await house.stop(running)
    await house.queue.put_many("t", [Draft("", due=house.now() + HOUR / 2) for _ in range(150)])
    await house.deliver(person(1), lane="lane", deliver_at=house.now() + HOUR / 2 + timedelta(minutes=1))
    house.passes(HOUR)
    assert await house.histories.retry(key, TENANT, [Status.FAILED]) == 1
    await house.audit()
    again = Played()
    await house.courier(again)
    await house.finished(key)
    assert again.addresses == ["p1", "p2"]


async def test_a_delivery_without_a_lane_leaves_time_to_the_couriers(house: House) -> None:
    first = await house.deliver(*people(1), deliver_at=house.now() + HOUR / 2)
    house.passes(HOUR)
    await house.deliver(*people(1))
    assert (await house.history(first.key)).state is DeliveryState.SCHEDULED
