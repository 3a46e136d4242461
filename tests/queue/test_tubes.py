"""Tubes are created from code at run time, and their options are kept by every process and script."""

from collections import Counter
from datetime import timedelta

import pytest

from core.errors import Invalid, NotFound
from core.queue import Queue
from core.retry import Backoff
from core.store import Store
from core.tubes import Tube, Tubes
from tests.core.house import HOUR, House
from tests.servers import on_both_servers

pytestmark = on_both_servers

MINUTE = timedelta(minutes=1)
WHOLE = Tube("t", MINUTE, 3, "park", 20.0, HOUR, Backoff(timedelta(seconds=2), timedelta(seconds=9)))


async def served(house: House, turns: int) -> Counter[str]:
    """Which tenant got how many of the next turns."""
    count: Counter[str] = Counter()
    for _ in range(turns):
        (task,) = await house.take()
        count[task.tenant] += 1
        await house.queue.settle(task)
    return count


async def put(house: House, tenant: str, count: int, lane: str = "") -> None:
    for number in range(count):
        await house.queue.put("t", str(number), tenant=tenant, lane=lane)


@pytest.mark.row("K-01")
async def test_a_tube_is_known_to_other_processes_with_all_its_options(house: House) -> None:
    await Tubes(house.store).create(WHOLE)
    other = await Store.open(house.server.url)
    assert await Tubes(other).get("t") == WHOLE
    assert await Tubes(other).known() == [WHOLE]
    await other.close()


@pytest.mark.row("K-01")
async def test_a_tube_that_is_created_again_has_its_new_options_and_no_other(house: House) -> None:
    tubes = Tubes(house.store)
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
async def test_nonsense_is_refused(house: House, tube: Tube) -> None:
    with pytest.raises(Invalid, match="can not be"):
        await Tubes(house.store).create(tube)


@pytest.mark.row("K-02", "K-03")
async def test_a_task_has_the_expiry_of_its_tube_unless_it_brings_its_own(house: House) -> None:
    await Tubes(house.store).create(Tube("t", expires=MINUTE))
    await house.queue.put("t", "stale")
    await house.queue.put("t", "lasts", expires=house.now() + HOUR)
    house.passes(10 * MINUTE)
    assert await house.finish_all() == ["lasts"]
    assert (await house.queue.stats())["tubes"]["t"]["expired"] == 1


@pytest.mark.row("K-02")
async def test_the_expiry_of_a_tube_counts_from_the_due_moment(house: House) -> None:
    await Tubes(house.store).create(Tube("t", expires=MINUTE))
    await house.queue.put("t", "deferred", due=house.now() + 5 * MINUTE)
    house.passes(timedelta(minutes=5, seconds=30))
    assert await house.finish_all() == ["deferred"]


@pytest.mark.row("K-43")
async def test_a_task_is_buried_after_as_many_attempts_as_its_tube_allows(house: House) -> None:
    await Tubes(house.store).create(Tube("t", attempts=2))
    task_id = await house.queue.put("t", "poison")
    for _ in range(2):
        await house.take()
        house.passes(MINUTE)
        await house.tick()
    assert await house.state(task_id) == "buried"


@pytest.mark.row("K-25")
async def test_a_retry_keeps_its_place_in_the_lane_and_is_counted(house: House) -> None:
    for body in ("a", "b"):
        await house.queue.put("t", body, lane="lane", attempts=3)
    (task,) = await house.take()
    assert await house.queue.settle(task, result="retry") == "ready"
    (again,) = await house.take()
    assert (again.body, again.attempts) == ("a", 2)
    await house.queue.settle(again)


@pytest.mark.row("K-25", "K-17")
@pytest.mark.parametrize("pause", [timedelta(0), MINUTE])
async def test_a_retry_that_parks_goes_behind_all_the_others_of_its_lane(house: House, pause: timedelta) -> None:
    await Tubes(house.store).create(Tube("t", retry="park"))
    for body in ("a", "b"):
        await house.queue.put("t", body, lane="lane")
    (task,) = await house.take()
    due = int((house.now() + pause).timestamp() * 1000) if pause else 0
    await house.queue.settle(task, result="retry", due=due)
    (second,) = await house.take(lease=HOUR)
    assert second.body == "b"
    await house.audit()
    house.passes(2 * pause)
    await house.tick()
    await house.queue.put("t", "c", lane="lane")
    await house.queue.settle(second)
    assert await house.finish_all() == ["a", "c"]


@pytest.mark.row("K-25", "K-34")
async def test_a_retry_beyond_the_last_attempt_is_buried_and_frees_the_lane(house: House) -> None:
    task_id = await house.queue.put("t", "a", lane="lane", attempts=1)
    await house.queue.put("t", "b", lane="lane")
    (task,) = await house.take()
    assert await house.queue.settle(task, result="retry") == "buried"
    assert await house.state(task_id) == "buried"
    assert await house.finish_all() == ["b"]


@pytest.mark.row("K-26")
async def test_a_tube_with_a_pace_gives_no_more_than_that_whoever_asks(house: House) -> None:
    await Tubes(house.store).create(Tube("t", pace=2))
    other = Queue(house.store)
    await put(house, "default", 9)
    given = 0
    for _ in range(21):  # 2 seconds, both ask every tenth
        for queue in (house.queue, other):
            claim = await queue.claim(
                "t", queue.ids.client, shard=0, limit=5, lease=HOUR, floor=timedelta(seconds=1), account=""
            )
            given += len(claim.tasks)
            assert claim.tasks or claim.opens_at > claim.now
        house.passes(timedelta(milliseconds=100))
    assert 4 <= given <= 6


@pytest.mark.row("K-26")
async def test_a_fast_pace_is_kept_in_small_bursts(house: House) -> None:
    await Tubes(house.store).create(Tube("t", pace=100))
    await put(house, "default", 50)
    assert len(await house.take(limit=50)) == 10
    house.passes(timedelta(milliseconds=200))
    assert 10 <= len(await house.take(limit=50)) <= 12


@pytest.mark.row("K-26")
async def test_an_empty_tube_with_a_pace_opens_at_no_moment(house: House) -> None:
    await Tubes(house.store).create(Tube("t", pace=1))
    await put(house, "default", 1)
    await house.finish_all()
    assert (await house.claim()).opens_at == -1


@pytest.mark.row("K-34")
async def test_what_ended_is_kept_for_a_while_with_its_end_and_changed_by_nothing(house: House) -> None:
    await Tubes(house.store).create(Tube("t", keep=10 * MINUTE))
    task_id = await house.queue.put("t", "a", user="u", lane="lane", kind="k")
    (task,) = await house.take()
    await house.queue.settle(task, answer="42")
    told = await house.queue.peek(task_id)
    assert (told["state"], told["answer"], told["body"]) == ("done", "42", "a")
    assert (await house.queue.stats())["finished"] == 1
    assert await house.queue.cancel(task_id) == {"cancelled": 0, "flagged": 0}
    assert await house.queue.settle(task) == "stale"
    await house.audit()
    house.passes(11 * MINUTE)
    await house.tick()
    with pytest.raises(NotFound):
        await house.queue.peek(task_id)


@pytest.mark.row("K-34")
async def test_purge_forgets_what_ended_of_one_tube_and_nothing_that_lives(house: House) -> None:
    for tube in ("t", "u"):
        await Tubes(house.store).create(Tube(tube, keep=HOUR / 2))
        await house.queue.put(tube, "ended")
        await house.finish_all(tube)
        await house.queue.put(tube, "lives", due=house.now() + HOUR)
    assert await house.queue.purge("t") == 1
    assert await house.queue.purge("t") == 0
    assert (await house.queue.stats())["finished"] == 1
    assert await house.queue.purge() == 1
    assert (await house.queue.stats())["due"] == 2


@pytest.mark.row("K-34")
async def test_kick_takes_those_of_its_tube_that_were_buried_first(house: House) -> None:
    ids = [await house.queue.put(tube, str(n)) for n, tube in enumerate("tutt")]
    for task_id in ids:
        await house.queue.bury(task_id)
        house.passes(timedelta(milliseconds=2))
    assert await house.queue.kick_some("t", 2) == 2
    assert await house.finish_all() == ["0", "2"]
    assert await house.queue.kick_some("t", 10) == 1


@pytest.mark.row("K-05")
@pytest.mark.parametrize("lanes", [("", ""), ("one", ""), ("", "two")])
async def test_tenants_get_turns_by_their_weights(house: House, lanes: tuple[str, str]) -> None:
    await Tubes(house.store).weigh("heavy", 3)
    await put(house, "heavy", 45, lanes[0])
    await put(house, "light", 45, lanes[1])
    count = await served(house, 40)
    assert abs(count["heavy"] - 30) <= 2


@pytest.mark.row("K-05")
async def test_a_heavy_tenant_who_comes_and_goes_does_not_starve_a_light_one(house: House) -> None:
    """I15: it joins one turn of its own behind the one served last, so the others' turns come."""
    await Tubes(house.store).weigh("heavy", 100)
    await put(house, "light", 3)
    waited = 0
    for number in range(320):
        await house.queue.put("t", str(number), tenant="heavy")
        (task,) = await house.take()
        waited += task.tenant == "light"
        await house.queue.settle(task)
    assert waited == 3


@pytest.mark.row("K-05")
@pytest.mark.parametrize("weight", [0, 101])
async def test_a_weight_is_from_1_to_100(house: House, weight: int) -> None:
    with pytest.raises(Invalid):
        await Tubes(house.store).weigh("t", weight)
