"""Tubes are created from code at run time, and their options are kept by every process and script."""

from collections import Counter
from datetime import timedelta

import pytest

from core.errors import Invalid, NotFound
from core.model.backoff import Backoff
from core.queue.queue import Queue
from core.queue.tubes import Tube, Tubes
from core.redis.store import Store
from tests.support.servers import on_both_servers
from tests.support.stack import HOUR, Stack

pytestmark = on_both_servers

MINUTE = timedelta(minutes=1)
WHOLE = Tube("t", MINUTE, 3, "park", 20.0, HOUR, Backoff(timedelta(seconds=2), timedelta(seconds=9)))


async def served(stack: Stack, turns: int) -> Counter[str]:
    """Which tenant got how many of the next turns."""
    count: Counter[str] = Counter()
    for _ in range(turns):
        (task,) = await stack.take()
        count[task.tenant] += 1
        await stack.queue.settle(task)
    return count


async def put(stack: Stack, tenant: str, count: int, lane: str = "") -> None:
    for number in range(count):
        await stack.queue.put("t", str(number), tenant=tenant, lane=lane)


@pytest.mark.row("K-01")
async def test_a_tube_is_known_to_other_processes_with_all_its_options(stack: Stack) -> None:
    await Tubes(stack.store).create(WHOLE)
    other = await Store.open(stack.server.url)
    assert await Tubes(other).get("t") == WHOLE
    assert await Tubes(other).known() == [WHOLE]
    await other.close()


@pytest.mark.row("K-01")
async def test_a_tube_that_is_created_again_has_its_new_options_and_no_other(stack: Stack) -> None:
    tubes = Tubes(stack.store)
    await tubes.create(WHOLE)
    await tubes.create(Tube("t"))
    assert await tubes.get("t") == Tube("t") == await tubes.get("t")
    assert await tubes.get("never created") == Tube("never created")


@pytest.mark.row("K-01")
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
async def test_nonsense_is_refused(stack: Stack, tube: Tube) -> None:
    with pytest.raises(Invalid, match="can not be"):
        await Tubes(stack.store).create(tube)


@pytest.mark.row("K-02", "K-03")
async def test_a_task_has_the_expiry_of_its_tube_unless_it_brings_its_own(stack: Stack) -> None:
    await Tubes(stack.store).create(Tube("t", expires=MINUTE))
    await stack.queue.put("t", "stale")
    await stack.queue.put("t", "lasts", expires=stack.now() + HOUR)
    stack.passes(10 * MINUTE)
    assert await stack.finish_all() == ["lasts"]
    assert (await stack.queue.stats())["tubes"]["t"]["expired"] == 1


@pytest.mark.row("K-02")
async def test_the_expiry_of_a_tube_counts_from_the_due_moment(stack: Stack) -> None:
    await Tubes(stack.store).create(Tube("t", expires=MINUTE))
    await stack.queue.put("t", "deferred", due=stack.now() + 5 * MINUTE)
    stack.passes(timedelta(minutes=5, seconds=30))
    assert await stack.finish_all() == ["deferred"]


@pytest.mark.row("K-43")
async def test_a_task_is_buried_after_as_many_attempts_as_its_tube_allows(stack: Stack) -> None:
    await Tubes(stack.store).create(Tube("t", attempts=2))
    task_id = await stack.queue.put("t", "poison")
    for _ in range(2):
        await stack.take()
        stack.passes(MINUTE)
        await stack.tick()
    assert await stack.state(task_id) == "buried"


@pytest.mark.row("K-25")
async def test_a_retry_keeps_its_place_in_the_lane_and_is_counted(stack: Stack) -> None:
    for body in ("a", "b"):
        await stack.queue.put("t", body, lane="lane", attempts=3)
    (task,) = await stack.take()
    assert await stack.queue.settle(task, result="retry") == "ready"
    (again,) = await stack.take()
    assert (again.body, again.attempts) == ("a", 2)
    await stack.queue.settle(again)


@pytest.mark.row("K-25", "K-17")
@pytest.mark.parametrize("pause", [timedelta(0), MINUTE])
async def test_a_retry_that_parks_goes_behind_all_the_others_of_its_lane(stack: Stack, pause: timedelta) -> None:
    await Tubes(stack.store).create(Tube("t", retry="park"))
    for body in ("a", "b"):
        await stack.queue.put("t", body, lane="lane")
    (task,) = await stack.take()
    due = int((stack.now() + pause).timestamp() * 1000) if pause else 0
    await stack.queue.settle(task, result="retry", due=due)
    (second,) = await stack.take(lease=HOUR)
    assert second.body == "b"
    await stack.audit()
    stack.passes(2 * pause)
    await stack.tick()
    await stack.queue.put("t", "c", lane="lane")
    await stack.queue.settle(second)
    assert await stack.finish_all() == ["a", "c"]


@pytest.mark.row("K-25", "K-34")
async def test_a_retry_beyond_the_last_attempt_is_buried_and_frees_the_lane(stack: Stack) -> None:
    task_id = await stack.queue.put("t", "a", lane="lane", attempts=1)
    await stack.queue.put("t", "b", lane="lane")
    (task,) = await stack.take()
    assert await stack.queue.settle(task, result="retry") == "buried"
    assert await stack.state(task_id) == "buried"
    assert await stack.finish_all() == ["b"]


@pytest.mark.row("K-26")
async def test_a_tube_with_a_pace_gives_no_more_than_that_whoever_asks(stack: Stack) -> None:
    await Tubes(stack.store).create(Tube("t", pace=2))
    other = Queue(stack.store)
    await put(stack, "default", 9)
    given = 0
    for _ in range(21):  # 2 seconds, both ask every tenth
        for queue in (stack.queue, other):
            claim = await queue.claim(
                "t", queue.ids.client, shard=0, limit=5, lease=HOUR, floor=timedelta(seconds=1), account=""
            )
            given += len(claim.tasks)
            assert claim.tasks or claim.opens_at > claim.now
        stack.passes(timedelta(milliseconds=100))
    assert 4 <= given <= 6


@pytest.mark.row("K-26")
async def test_a_fast_pace_is_kept_in_small_bursts(stack: Stack) -> None:
    await Tubes(stack.store).create(Tube("t", pace=100))
    await put(stack, "default", 50)
    assert len(await stack.take(limit=50)) == 10
    stack.passes(timedelta(milliseconds=200))
    assert 10 <= len(await stack.take(limit=50)) <= 12


@pytest.mark.row("K-26")
async def test_an_empty_tube_with_a_pace_opens_at_no_moment(stack: Stack) -> None:
    await Tubes(stack.store).create(Tube("t", pace=1))
    await put(stack, "default", 1)
    await stack.finish_all()
    assert (await stack.claim()).opens_at == -1


@pytest.mark.row("K-34")
async def test_what_ended_is_kept_for_a_while_with_its_end_and_changed_by_nothing(stack: Stack) -> None:
    await Tubes(stack.store).create(Tube("t", keep=10 * MINUTE))
    task_id = await stack.queue.put("t", "a", user="u", lane="lane", kind="k")
    (task,) = await stack.take()
    await stack.queue.settle(task, answer="42")
    told = await stack.queue.peek(task_id)
    assert (told["state"], told["answer"], told["body"]) == ("done", "42", "a")
    assert (await stack.queue.stats())["finished"] == 1
    assert await stack.queue.cancel(task_id) == {"cancelled": 0, "flagged": 0}
    assert await stack.queue.settle(task) == "stale"
    await stack.audit()
    stack.passes(11 * MINUTE)
    await stack.tick()
    with pytest.raises(NotFound):
        await stack.queue.peek(task_id)


@pytest.mark.row("K-34")
async def test_purge_forgets_what_ended_of_one_tube_and_nothing_that_lives(stack: Stack) -> None:
    for tube in ("t", "u"):
        await Tubes(stack.store).create(Tube(tube, keep=HOUR / 2))
        await stack.queue.put(tube, "ended")
        await stack.finish_all(tube)
        await stack.queue.put(tube, "lives", due=stack.now() + HOUR)
    assert await stack.queue.purge("t") == 1
    assert await stack.queue.purge("t") == 0
    assert (await stack.queue.stats())["finished"] == 1
    assert await stack.queue.purge() == 1
    assert (await stack.queue.stats())["due"] == 2


@pytest.mark.row("K-34")
async def test_kick_takes_those_of_its_tube_that_were_buried_first(stack: Stack) -> None:
    ids = [await stack.queue.put(tube, str(n)) for n, tube in enumerate("tutt")]
    for task_id in ids:
        await stack.queue.bury(task_id)
        stack.passes(timedelta(milliseconds=2))
    assert await stack.queue.kick_some("t", 2) == 2
    assert await stack.finish_all() == ["0", "2"]
    assert await stack.queue.kick_some("t", 10) == 1


@pytest.mark.row("K-05")
@pytest.mark.parametrize("lanes", [("", ""), ("one", ""), ("", "two")])
async def test_tenants_get_turns_by_their_weights(stack: Stack, lanes: tuple[str, str]) -> None:
    await Tubes(stack.store).set_weight("heavy", 3)
    await put(stack, "heavy", 45, lanes[0])
    await put(stack, "light", 45, lanes[1])
    count = await served(stack, 40)
    assert abs(count["heavy"] - 30) <= 2


@pytest.mark.row("K-05")
async def test_a_heavy_tenant_who_comes_and_goes_does_not_starve_a_light_one(stack: Stack) -> None:
    """I15: it joins one turn of its own behind the one served last, so the others' turns come."""
    await Tubes(stack.store).set_weight("heavy", 100)
    await put(stack, "light", 3)
    waited = 0
    for number in range(320):
        await stack.queue.put("t", str(number), tenant="heavy")
        (task,) = await stack.take()
        waited += task.tenant == "light"
        await stack.queue.settle(task)
    assert waited == 3


@pytest.mark.row("K-05")
@pytest.mark.parametrize("weight", [0, 101])
async def test_a_weight_is_from_1_to_100(stack: Stack, weight: int) -> None:
    with pytest.raises(Invalid):
        await Tubes(stack.store).set_weight("t", weight)
