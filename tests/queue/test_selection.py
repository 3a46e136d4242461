"""Tasks are found, listed and cancelled by what they have in common, in whatever state they are."""

import asyncio
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from core.errors import Invalid
from core.queue.queue import NewTask, Settlement, TaskFilter
from core.queue.task_search import SearchPosition, TaskSearch
from core.queue.tubes import Tube, Tubes
from tests.support.servers import on_both_servers
from tests.support.stack import HOUR, Stack, person

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
    """State → id: taken, locked, waiting, backing off, buried, ready; `other` tasks of somebody else are there, too."""
    put, apart = stack.queue.put, {**common, "lane": "l"}
    ids = {"taken": await put("t", "taken", priority=1, **apart)}
    await stack.take(lease=HOUR)
    ids["locked"] = await put("t", "locked", **apart)
    ids["waiting"] = await put("t", "waiting", due=stack.now() + HOUR, **apart)
    ids["off"] = await put("u", "off", **apart)
    (off,) = await stack.take("u")
    await stack.queue.settle(off, result="retry", due=int((stack.now() + HOUR).timestamp() * 1000))
    ids["behind"] = await put("u", "behind", **apart)
    ids["buried"] = await put("t", "buried", **apart)
    await stack.queue.bury(ids["buried"])
    await put("t", "other", user="v", tenant="school", lane="m", kind="text", tags=["b"])
    return ids


@pytest.mark.row("K-09", "K-10")
@pytest.mark.parametrize("selection", CHOICES, ids=str)
async def test_look_up_finds_all_that_live_and_nothing_else(stack: Stack, selection: TaskFilter) -> None:
    ids = await in_every_state(stack, **{**MINE, "lane": "l"})
    wanted = [ids[name] for name in ids if not selection.tube or name not in ("off", "behind")]
    if selection.index()[0] == "lane":  # those who stand in it, tube by tube, and who was put aside
        wanted = [ids[name] for name in ("taken", "locked", "off", "behind", "waiting", "buried")]
    assert [task["id"] for task in await stack.queue.select(selection)] == wanted


@pytest.mark.row("K-09", "K-10")
async def test_who_moves_while_a_lane_is_read_is_not_missed(stack: Stack) -> None:
    """Deferred, parked, kicked and moved up between one page and the next: each is told at least once."""
    await Tubes(stack.store).create(Tube("t", retry="park"))
    put = partial(stack.queue.put, "t", lane="l")
    ids = {await put(str(n)) for n in range(4)}
    ids |= {await put("later", due=stack.now() + HOUR / 2), buried := await put("buried"), await put("last")}
    await stack.queue.bury(buried)
    (taken,) = await stack.take()
    cursor, told = None, list[str]()
    for step in range(20):
        tasks, cursor = await stack.queue.page(TaskFilter(lane="l"), cursor, 1)
        told += [task["id"] for task in tasks]
        if cursor is None:
            break
        if step == 0:
            await stack.queue.settle(taken, result="retry")
        if step == 1:
            stack.passes(HOUR)
            (taken,) = await stack.take()
        if step == 2:
            await stack.queue.kick(buried)
            await stack.queue.settle(taken, result="retry", due=int((stack.now() + HOUR).timestamp() * 1000))
        if step == 3:
            await put("new")
    assert ids <= set(told)


@pytest.mark.row("K-09", "K-17")
@pytest.mark.parametrize("selection", CHOICES, ids=str)
async def test_cancel_ends_them_in_every_state_and_flags_what_is_taken(stack: Stack, selection: TaskFilter) -> None:
    await in_every_state(stack, **MINE)
    told = await stack.queue.cancel_by(selection)
    assert told == ({"cancelled": 3, "flagged": 1} if selection.tube else {"cancelled": 5, "flagged": 1})
    await stack.audit()
    assert await stack.finish_all() == ["other"]


@pytest.mark.row("K-09")
async def test_a_taken_task_hears_at_its_next_word_that_it_was_cancelled_and_is_not_tried_again(stack: Stack) -> None:
    for _ in range(2):
        await stack.queue.put("t", "", user="u")
    one, other = await stack.take(limit=2)
    assert await stack.queue.cancel_by(TaskFilter(user="u")) == {"cancelled": 0, "flagged": 2}
    assert (await stack.queue.extend(one, HOUR)).cancelled
    assert await stack.queue.settle(other, result="retry") == "cancelled"
    assert await stack.queue.release(one) == "cancelled"


@pytest.mark.row("K-09")
async def test_a_lost_task_that_was_cancelled_is_not_given_to_the_next(stack: Stack) -> None:
    await stack.queue.put("t", "", user="u")
    await stack.take()
    await stack.queue.cancel_by(TaskFilter(user="u"))
    stack.passes(HOUR)
    assert await stack.take() == []


@pytest.mark.row("K-09")
async def test_a_user_with_many_tasks_is_cancelled_in_pages_while_others_are_served(stack: Stack) -> None:
    await stack.queue.put_many("t", [NewTask(str(n), user="u", lane=f"l{n % 7}") for n in range(3000)])
    cancelling = asyncio.create_task(stack.queue.cancel_by(TaskFilter(user="u")))
    served = 0
    while not cancelling.done():
        await stack.queue.put("t", "other", priority=0)
        taken = await stack.take()
        served += [task.body for task in taken] == ["other"]
        await stack.queue.settle_many([(task, Settlement()) for task in taken])
    assert (await cancelling)["cancelled"] == 3000
    assert served >= 10


@pytest.mark.row("K-09")
async def test_what_is_put_while_a_cancel_is_at_work_stays(stack: Stack) -> None:
    await stack.queue.put_many("t", [NewTask("old", user="u")] * 300)
    cancelling = asyncio.create_task(stack.queue.cancel_by(TaskFilter(user="u")))
    await asyncio.sleep(0)
    while not (await stack.queue.stats())["tubes"]["t"].get("cancelled"):
        assert not cancelling.done()
    await stack.queue.put("t", "new", user="u")
    await cancelling
    assert await stack.finish_all() == ["new"]


@pytest.mark.row("K-09")
async def test_what_is_put_first_into_a_lane_that_became_empty_meanwhile_is_not_seen(stack: Stack) -> None:
    ids = await stack.queue.put_many("t", [NewTask("old", lane="l")] * 3)
    pages = TaskSearch(stack.store).pages(TaskFilter(lane="l"), SearchPosition(), 2)
    told = [f"0.{name}" for name in (await anext(pages))[1]]
    for one in ids:
        await stack.queue.cancel(one)
    await stack.queue.put("t", "new", lane="l")
    told += [f"0.{name}" async for _, names in pages for name in names]
    assert told == ids[1:]


@pytest.mark.row("K-28")
async def test_a_kind_tells_a_timer_from_a_message(stack: Stack) -> None:
    for kind in ("message", "timer.a", "timer.b", "timers"):
        await stack.queue.put("t", kind, user="u", kind=kind)
    assert [task["body"] for task in await stack.queue.select(TaskFilter(user="u", kind="timer."))] == [
        "timer.a",
        "timer.b",
    ]
    assert [task.kind for task in await stack.take()] == ["message"]


@pytest.mark.row("K-29")
async def test_in_one_minute_unless_the_scenario_moved_on(stack: Stack) -> None:
    minute = stack.now() + timedelta(minutes=1)
    for user in ("moves on", "stays"):
        await stack.queue.put("t", user, user=user, kind="timer", due=minute)
    await stack.queue.put("t", "message", user="moves on", kind="message", due=minute)
    await stack.queue.cancel_by(TaskFilter(user="moves on", kind="timer"))
    stack.passes(HOUR)
    assert await stack.finish_all() == ["stays", "message"]


@pytest.mark.row("K-27")
async def test_a_mailing_in_chunks_over_time_is_cancelled_as_one(stack: Stack) -> None:
    drafts = [
        NewTask(f"chunk {n}", due=stack.now() + n * timedelta(minutes=10), tags=["mailing 7"]) for n in range(1, 7)
    ]
    await stack.queue.put_many("t", drafts)
    stack.passes(timedelta(minutes=25))
    assert await stack.finish_all() == ["chunk 1", "chunk 2"]
    assert (await stack.queue.cancel_by(TaskFilter(tag="mailing 7")))["cancelled"] == 4
    stack.passes(HOUR)
    assert await stack.finish_all() == []


@pytest.mark.row("K-10")
async def test_a_selection_that_no_index_knows_is_refused(stack: Stack) -> None:
    with pytest.raises(Invalid):
        await stack.queue.select(TaskFilter(tube="t"))
    with pytest.raises(Invalid):
        await stack.queue.cancel_by(TaskFilter())


@pytest.mark.row("K-11")
async def test_looking_changes_nothing(stack: Stack) -> None:
    ids = await in_every_state(stack, **MINE)
    before = await stack.dump()
    await stack.queue.select(TaskFilter(user="u"))
    await stack.queue.stats()
    for one in ids.values():
        await stack.queue.peek(one)
    after = await stack.dump()
    assert {key: kept.value for key, kept in after.items()} == {key: kept.value for key, kept in before.items()}


@pytest.mark.row("K-10")
async def test_parcels_of_deliveries_are_in_no_index(stack: Stack) -> None:
    await stack.deliver(person(1), tags=["exam"], lane="l", kind="message")
    assert not [key for key in stack.server.all_keys() if ":by:" in key]
