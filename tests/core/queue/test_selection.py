"""Tasks are found, listed and cancelled by what they have in common, in every state."""

import asyncio
import time
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from core.errors import Invalid
from core.model.history_key import DEFAULT_TENANT
from core.monitoring import BulkChanges
from core.queue import CancelResult, NewTask, Settled, Settlement, SettleResult, TaskFilter, Tube, Tubes
from core.queue.task_search import SearchPosition, TaskSearch
from tests.support.servers import on_both_servers
from tests.support.stack import HOUR, Stack, people, person

pytestmark = on_both_servers

MINE: dict[str, Any] = {"user": "u", "tenant": "uni", "lane": "l", "kind": "timer.exam", "tags": ["a", "exam"]}
CHOICES = [
    TaskFilter(user="u"),
    TaskFilter(tenant="uni"),
    TaskFilter(lane="l"),
    TaskFilter(kind="timer."),
    TaskFilter(tag="exam"),
    TaskFilter(user="u", kind="timer", tenant="uni", tube="t", tag="a"),
]


async def in_every_state(stack: Stack, **common: Any) -> dict[str, str]:
    """Put tasks in every state, and one of another user. Returns state → id."""
    put, apart = stack.queue.put, {**common, "lane": "l"}
    ids = {"taken": await put("t", NewTask("taken", priority=1, **apart))}
    await stack.take(lease=HOUR)
    ids["locked"] = await put("t", NewTask("locked", **apart))
    ids["waiting"] = await put("t", NewTask("waiting", due=stack.now() + HOUR, **apart))
    ids["off"] = await put("u", NewTask("off", **apart))
    (off,) = await stack.take("u")
    await stack.queue.settle(off, result=SettleResult.RETRY, due=int((stack.now() + HOUR).timestamp() * 1000))
    ids["behind"] = await put("u", NewTask("behind", **apart))
    ids["buried"] = await put("t", NewTask("buried", **apart))
    await stack.queue.bury(ids["buried"])
    await put("t", NewTask("other", user="v", tenant="school", lane="m", kind="text", tags=["b"]))
    return ids


@pytest.mark.parametrize("selected", CHOICES, ids=str)
async def test_search_finds_all_live_tasks_that_match_and_no_others(stack: Stack, selected: TaskFilter) -> None:
    ids = await in_every_state(stack, **{**MINE, "lane": "l"})
    wanted = [ids[name] for name in ids if not selected.tube or name not in ("off", "behind")]
    if selected.index()[0] == "lane":  # the tasks that stand in it, tube by tube, then those put aside
        wanted = [ids[name] for name in ("taken", "locked", "off", "behind", "waiting", "buried")]
    assert [task.id for task in await stack.queue.inspector.select(selected)] == wanted


async def test_a_task_that_moves_while_its_lane_is_listed_is_not_missed(stack: Stack) -> None:
    """Tasks are deferred, parked, kicked and promoted between two pages: each is listed at least once."""
    await Tubes(stack.store).create(Tube("t", retry="park"))
    put = partial(stack.queue.put, "t")
    ids = {await put(NewTask(str(n), lane="l")) for n in range(4)}
    ids |= {await put(NewTask("later", lane="l", due=stack.now() + HOUR / 2)), await put(NewTask("last", lane="l"))}
    ids.add(buried := await put(NewTask("buried", lane="l")))
    await stack.queue.bury(buried)
    (taken,) = await stack.take()
    cursor, listed = None, list[str]()
    for step in range(20):
        tasks, cursor = await stack.queue.inspector.page(TaskFilter(lane="l"), cursor, 1)
        listed += [task.id for task in tasks]
        if cursor is None:
            break
        if step == 0:
            await stack.queue.settle(taken, result=SettleResult.RETRY)
        if step == 1:
            stack.advance_clock(HOUR)
            (taken,) = await stack.take()
        if step == 2:
            await stack.queue.kick(buried)
            await stack.queue.settle(taken, result=SettleResult.RETRY, due=int((stack.now() + HOUR).timestamp() * 1000))
        if step == 3:
            await put(NewTask("new", lane="l"))
    assert ids <= set(listed)


@pytest.mark.parametrize("selected", CHOICES, ids=str)
async def test_cancel_by_ends_tasks_in_every_state_and_flags_the_taken_one(stack: Stack, selected: TaskFilter) -> None:
    await in_every_state(stack, **MINE)
    result = await stack.queue.cancel_by(selected)
    assert result == (CancelResult(3, 1) if selected.tube else CancelResult(5, 1))
    await stack.audit()
    assert await stack.finish_all() == ["other"]


async def test_a_cancelled_taken_task_is_reported_at_its_next_extend_and_not_retried(stack: Stack) -> None:
    for _ in range(2):
        await stack.queue.put("t", NewTask("", user="u"))
    one, other = await stack.take(limit=2)
    assert await stack.queue.cancel_by(TaskFilter(user="u")) == CancelResult(0, 2)
    assert (await stack.queue.extend(one, HOUR)).cancelled
    assert await stack.queue.settle(other, result=SettleResult.RETRY) == "cancelled"
    assert await stack.queue.release(one) == "cancelled"


async def test_a_cancelled_task_whose_lease_is_lost_is_not_claimed_again(stack: Stack) -> None:
    await stack.queue.put("t", NewTask("", user="u"))
    await stack.take()
    await stack.queue.cancel_by(TaskFilter(user="u"))
    stack.advance_clock(HOUR)
    assert await stack.take() == []


async def test_other_tasks_are_served_while_the_many_tasks_of_a_user_are_cancelled(stack: Stack) -> None:
    await stack.queue.put_many("t", [NewTask(str(n), user="u", lane=f"l{n % 7}") for n in range(3000)])
    cancelling = asyncio.create_task(stack.queue.cancel_by(TaskFilter(user="u")))
    served = 0
    while not cancelling.done():
        await stack.queue.put("t", NewTask("other", priority=0))
        taken = await stack.take()
        served += [task.body for task in taken] == ["other"]
        await stack.settle_all([(task, Settlement()) for task in taken])
    assert (await cancelling).cancelled == 3000
    assert served >= 10


async def test_a_task_put_during_a_cancel_is_not_cancelled(stack: Stack) -> None:
    await stack.queue.put_many("t", [NewTask("old", user="u")] * 3000)
    cancelling = asyncio.create_task(stack.queue.cancel_by(TaskFilter(user="u")))
    await asyncio.sleep(0)
    while not (await stack.queue.inspector.stats()).tubes["t"].cancelled:
        assert not cancelling.done()
    await stack.queue.put("t", NewTask("new", user="u"))
    await cancelling
    assert await stack.finish_all() == ["new"]


async def test_a_search_leaves_out_a_task_put_into_a_lane_that_became_empty_meanwhile(stack: Stack) -> None:
    ids = await stack.queue.put_many("t", [NewTask("old", lane="l")] * 3)
    pages = TaskSearch(stack.store).pages(TaskFilter(lane="l"), SearchPosition(), 2)
    listed = [f"0.{name}" for name in (await anext(pages))[1]]
    for one in ids:
        await stack.queue.cancel(one)
    await stack.queue.put("t", NewTask("new", lane="l"))
    listed += [f"0.{name}" async for _, names in pages for name in names]
    assert listed == ids[1:]


async def test_a_kind_distinguishes_a_timer_from_a_message(stack: Stack) -> None:
    for kind in ("message", "timer.a", "timer.b", "timers"):
        await stack.queue.put("t", NewTask(kind, user="u", kind=kind))
    assert [task.body for task in await stack.queue.inspector.select(TaskFilter(user="u", kind="timer."))] == [
        "timer.a",
        "timer.b",
    ]
    assert [task.kind for task in await stack.take()] == ["message"]


async def test_a_deferred_task_can_be_cancelled_by_user_and_kind_before_it_is_due(stack: Stack) -> None:
    minute = stack.now() + timedelta(minutes=1)
    for user in ("moves on", "stays"):
        await stack.queue.put("t", NewTask(user, user=user, kind="timer", due=minute))
    await stack.queue.put("t", NewTask("message", user="moves on", kind="message", due=minute))
    await stack.queue.cancel_by(TaskFilter(user="moves on", kind="timer"))
    stack.advance_clock(HOUR)
    assert await stack.finish_all() == ["stays", "message"]


async def test_the_rest_of_a_mailing_in_deferred_chunks_is_cancelled_by_its_tag(stack: Stack) -> None:
    chunks = [
        NewTask(f"chunk {n}", due=stack.now() + n * timedelta(minutes=10), tags=["mailing 7"]) for n in range(1, 7)
    ]
    await stack.queue.put_many("t", chunks)
    stack.advance_clock(timedelta(minutes=25))
    assert await stack.finish_all() == ["chunk 1", "chunk 2"]
    assert (await stack.queue.cancel_by(TaskFilter(tag="mailing 7"))).cancelled == 4
    stack.advance_clock(HOUR)
    assert await stack.finish_all() == []


async def test_a_filter_without_an_index_is_refused(stack: Stack) -> None:
    with pytest.raises(Invalid):
        await stack.queue.inspector.select(TaskFilter(tube="t"))
    with pytest.raises(Invalid):
        await stack.queue.cancel_by(TaskFilter())


async def test_reading_the_queue_changes_nothing(stack: Stack) -> None:
    ids = await in_every_state(stack, **MINE)
    before = await stack.dump()
    await stack.queue.inspector.select(TaskFilter(user="u"))
    await stack.queue.inspector.stats()
    for one in ids.values():
        await stack.queue.inspector.peek(one)
    after = await stack.dump()
    assert {key: kept.value for key, kept in after.items()} == {key: kept.value for key, kept in before.items()}


async def test_parcels_of_deliveries_are_in_no_index(stack: Stack) -> None:
    await stack.deliver(person(1), tags=["exam"], lane="l", kind="message")
    assert not [key for key in stack.server.all_keys() if ":by:" in key]


async def test_what_waits_in_a_tube_of_a_tenant_is_cancelled_with_parcels_and_few_commands(stack: Stack) -> None:
    """Regression: by the default tenant all keys were scanned, for 53 s, and parcels were left in silence."""
    await stack.queue.put_many("echo", [NewTask("", lane=f"l{n % 150}" if n % 2 else "") for n in range(2000)])
    await stack.queue.put_many("other", [NewTask("other")] * 2000)
    delivery = await stack.deliver(*people(150), tenant=DEFAULT_TENANT)
    before = stack.store.pipelines.commands
    result = await stack.queue.cancel_by(TaskFilter(tenant=DEFAULT_TENANT, tube="echo"))
    assert (result.flagged, result.left) == (0, 0)
    assert result.cancelled > 2000
    assert stack.store.pipelines.commands - before < 400
    assert (await stack.deliveries.read(delivery.key, DEFAULT_TENANT)).counts["cancelled"] == 150
    assert len(await stack.finish_all("other")) == 2000
    await stack.audit()


@pytest.mark.parametrize("marks", [{"tenant": DEFAULT_TENANT}, {"user": "u"}], ids=str)
async def test_tasks_of_jobs_are_cancelled_only_by_the_name_of_their_tube(stack: Stack, marks: dict[str, str]) -> None:
    for tube in ("jobs.hunt", "job-notices", "t"):
        await stack.queue.put(tube, NewTask("", user="u"))
    await stack.deliver(person(1), tenant=DEFAULT_TENANT)
    parcels = int("tenant" in marks)  # a parcel of the delivery is found by its tenant, and has no user
    assert await stack.queue.cancel_by(TaskFilter(**marks)) == CancelResult(1, 0, left=2, left_parcels=parcels)
    assert await stack.queue.cancel_by(TaskFilter(**marks)) == CancelResult(0, 0, left=2, left_parcels=parcels)
    in_bulk = await BulkChanges(stack.queue).change("cancel", TaskFilter(**marks), int(time.time() * 1000), 9, None)
    assert in_bulk.unchanged == 2
    assert await stack.queue.cancel_by(TaskFilter(**marks, tube="jobs.hunt")) == CancelResult(1, 0)


async def test_tasks_that_change_their_state_during_a_cancel_by_tenant_are_not_missed(stack: Stack) -> None:
    await stack.queue.put_many("t", [NewTask("old", lane=f"l{n % 7}", priority=9 - n % 3) for n in range(3000)])
    cancelling = asyncio.create_task(stack.queue.cancel_by(TaskFilter(tenant=DEFAULT_TENANT, tube="t")))
    served = 0
    while not cancelling.done():
        taken = await stack.take(limit=5)
        served += [await stack.queue.settle(task, result=SettleResult.DONE) for task in taken].count(Settled.DONE)
        await stack.queue.put("t", NewTask("new"))
    assert (await cancelling).cancelled + (await cancelling).flagged + served >= 3000
    assert set(await stack.finish_all()) <= {"new"}
