"""Tubes are created from code at run time, and every process and script applies their options."""

from collections import Counter
from datetime import timedelta

import pytest

from core.errors import Invalid, NotFound
from core.model.clock import Backoff
from core.queue import CancelResult, NewTask, Queue, SettleResult, Tube, Tubes
from core.queue.task import ClaimRequest
from core.redis.store import Store
from tests.support.servers import on_both_servers
from tests.support.stack import HOUR, Stack

pytestmark = on_both_servers

MINUTE = timedelta(minutes=1)
WHOLE = Tube("t", MINUTE, 3, "park", 20.0, HOUR, Backoff(timedelta(seconds=2), timedelta(seconds=9)))


async def served(stack: Stack, turns: int) -> Counter[str]:
    """Return tenant → how many of the next turns it got."""
    count: Counter[str] = Counter()
    for _ in range(turns):
        (task,) = await stack.take()
        count[task.tenant] += 1
        await stack.queue.settle(task)
    return count


async def put(stack: Stack, tenant: str, count: int, lane: str = "") -> None:
    for number in range(count):
        await stack.queue.put("t", NewTask(str(number), tenant=tenant, lane=lane))


async def test_a_tube_and_all_its_options_are_visible_to_other_processes(stack: Stack) -> None:
    await Tubes(stack.store).create(WHOLE)
    other = await Store.open(stack.server.url)
    assert await Tubes(other).get("t") == WHOLE
    assert await Tubes(other).known() == [WHOLE]
    await other.close()


async def test_creating_a_tube_again_replaces_all_its_options(stack: Stack) -> None:
    tubes = Tubes(stack.store)
    await tubes.create(WHOLE)
    await tubes.create(Tube("t"))
    assert await tubes.get("t") == Tube("t") == await tubes.get("t")
    assert await tubes.get("never created") == Tube("never created")


@pytest.mark.parametrize(
    "tube",
    [
        Tube(""),
        Tube("t", expires=timedelta(0)),
        Tube("t", attempts=-1),
        Tube("t", retry="hope"),
        Tube("t", pace=0.0),
        Tube("t", keep=timedelta(0)),
    ],
)
async def test_invalid_tube_options_are_refused(stack: Stack, tube: Tube) -> None:
    with pytest.raises(Invalid, match="can not be"):
        await Tubes(stack.store).create(tube)


async def test_a_task_expires_after_the_time_of_its_tube_unless_it_has_its_own(stack: Stack) -> None:
    await Tubes(stack.store).create(Tube("t", expires=MINUTE))
    await stack.queue.put("t", NewTask("stale"))
    await stack.queue.put("t", NewTask("lasts", expires=stack.now() + HOUR))
    stack.advance_clock(10 * MINUTE)
    assert await stack.finish_all() == ["lasts"]
    assert (await stack.queue.inspector.stats()).tubes["t"].expired == 1


async def test_the_expiry_of_a_tube_counts_from_when_a_task_is_due(stack: Stack) -> None:
    await Tubes(stack.store).create(Tube("t", expires=MINUTE))
    await stack.queue.put("t", NewTask("deferred", due=stack.now() + 5 * MINUTE))
    stack.advance_clock(timedelta(minutes=5, seconds=30))
    assert await stack.finish_all() == ["deferred"]


async def test_a_task_is_buried_after_as_many_attempts_as_its_tube_allows(stack: Stack) -> None:
    await Tubes(stack.store).create(Tube("t", attempts=2))
    task_id = await stack.queue.put("t", NewTask("poison"))
    for _ in range(2):
        await stack.take()
        stack.advance_clock(MINUTE)
        await stack.tick()
    assert await stack.state(task_id) == "buried"


async def test_a_retry_keeps_its_place_in_the_lane_and_is_counted(stack: Stack) -> None:
    for body in ("a", "b"):
        await stack.queue.put("t", NewTask(body, lane="lane", attempts=3))
    (task,) = await stack.take()
    assert await stack.queue.settle(task, result=SettleResult.RETRY) == "ready"
    (again,) = await stack.take()
    assert (again.body, again.attempts) == ("a", 2)
    await stack.queue.settle(again)


@pytest.mark.parametrize("pause", [timedelta(0), MINUTE])
async def test_a_parked_retry_goes_to_the_tail_of_its_lane(stack: Stack, pause: timedelta) -> None:
    await Tubes(stack.store).create(Tube("t", retry="park"))
    for body in ("a", "b"):
        await stack.queue.put("t", NewTask(body, lane="lane"))
    (task,) = await stack.take()
    due = int((stack.now() + pause).timestamp() * 1000) if pause else 0
    await stack.queue.settle(task, result=SettleResult.RETRY, due=due)
    (second,) = await stack.take(lease=HOUR)
    assert second.body == "b"
    await stack.audit()
    stack.advance_clock(2 * pause)
    await stack.tick()
    await stack.queue.put("t", NewTask("c", lane="lane"))
    await stack.queue.settle(second)
    assert await stack.finish_all() == ["a", "c"]


async def test_a_retry_beyond_the_last_attempt_is_buried_and_frees_the_lane(stack: Stack) -> None:
    task_id = await stack.queue.put("t", NewTask("a", lane="lane", attempts=1))
    await stack.queue.put("t", NewTask("b", lane="lane"))
    (task,) = await stack.take()
    assert await stack.queue.settle(task, result=SettleResult.RETRY) == "buried"
    assert await stack.state(task_id) == "buried"
    assert await stack.finish_all() == ["b"]


async def test_the_pace_of_a_tube_limits_all_claims_together(stack: Stack) -> None:
    await Tubes(stack.store).create(Tube("t", pace=2))
    other = Queue(stack.store)
    await put(stack, "default", 9)
    given = 0
    for _ in range(21):  # 2 seconds, both claim ten times a second
        for queue in (stack.queue, other):
            claim = await queue.claim(0, ClaimRequest("t", queue.ids.client, 5, HOUR, timedelta(seconds=1)))
            given += len(claim.tasks)
            assert claim.tasks or claim.opens_at > claim.now
        stack.advance_clock(timedelta(milliseconds=100))
    assert 4 <= given <= 6


async def test_a_fast_pace_allows_small_bursts(stack: Stack) -> None:
    await Tubes(stack.store).create(Tube("t", pace=100))
    await put(stack, "default", 50)
    assert len(await stack.take(limit=50)) == 10
    stack.advance_clock(timedelta(milliseconds=200))
    assert 10 <= len(await stack.take(limit=50)) <= 12


async def test_an_empty_tube_with_a_pace_gives_no_time_to_wake(stack: Stack) -> None:
    await Tubes(stack.store).create(Tube("t", pace=1))
    await put(stack, "default", 1)
    await stack.finish_all()
    assert (await stack.claim()).opens_at == -1


async def test_an_ended_task_is_kept_for_a_while_and_nothing_changes_it(stack: Stack) -> None:
    await Tubes(stack.store).create(Tube("t", keep=10 * MINUTE))
    task_id = await stack.queue.put("t", NewTask("a", user="u", lane="lane", kind="k"))
    (task,) = await stack.take()
    await stack.queue.settle(task, answer="42")
    task_view = await stack.queue.inspector.peek(task_id)
    assert (task_view.state, task_view.answer, task_view.body) == ("done", "42", "a")
    assert (await stack.queue.inspector.stats()).finished == 1
    assert await stack.queue.cancel(task_id) == CancelResult(0, 0)
    assert await stack.queue.settle(task) == "stale"
    await stack.audit()
    stack.advance_clock(11 * MINUTE)
    await stack.tick()
    with pytest.raises(NotFound):
        await stack.queue.inspector.peek(task_id)


async def test_purge_deletes_the_ended_tasks_of_a_tube_and_no_live_ones(stack: Stack) -> None:
    for tube in ("t", "u"):
        await Tubes(stack.store).create(Tube(tube, keep=HOUR / 2))
        await stack.queue.put(tube, NewTask("ended"))
        await stack.finish_all(tube)
        await stack.queue.put(tube, NewTask("lives", due=stack.now() + HOUR))
    assert await stack.queue.purge("t") == 1
    assert await stack.queue.purge("t") == 0
    assert (await stack.queue.inspector.stats()).finished == 1
    assert await stack.queue.purge() == 1
    assert (await stack.queue.inspector.stats()).due == 2


async def test_kick_some_kicks_the_tasks_of_its_tube_that_were_buried_first(stack: Stack) -> None:
    ids = [await stack.queue.put(tube, NewTask(str(n))) for n, tube in enumerate("tutt")]
    for task_id in ids:
        await stack.queue.bury(task_id)
        stack.advance_clock(timedelta(milliseconds=2))
    assert await stack.queue.kick_some("t", 2) == 2
    assert await stack.finish_all() == ["0", "2"]
    assert await stack.queue.kick_some("t", 10) == 1


@pytest.mark.parametrize("lanes", [("", ""), ("one", ""), ("", "two")])
async def test_tenants_get_turns_by_their_weights(stack: Stack, lanes: tuple[str, str]) -> None:
    await Tubes(stack.store).set_weight("heavy", 3)
    await put(stack, "heavy", 45, lanes[0])
    await put(stack, "light", 45, lanes[1])
    count = await served(stack, 40)
    assert abs(count["heavy"] - 30) <= 2


async def test_a_heavy_tenant_that_comes_and_goes_does_not_starve_a_light_one(stack: Stack) -> None:
    """I15: it joins one turn behind the tenant served last, so the others get their turns."""
    await Tubes(stack.store).set_weight("heavy", 100)
    await put(stack, "light", 3)
    waited = 0
    for number in range(320):
        await stack.queue.put("t", NewTask(str(number), tenant="heavy"))
        (task,) = await stack.take()
        waited += task.tenant == "light"
        await stack.queue.settle(task)
    assert waited == 3


@pytest.mark.parametrize("weight", [0, 101])
async def test_a_weight_is_from_1_to_100(stack: Stack, weight: int) -> None:
    with pytest.raises(Invalid):
        await Tubes(stack.store).set_weight("t", weight)
