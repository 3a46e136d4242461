"""Which task is next: fairness between tenants, then priority, then the order of the puts."""

from collections import Counter

import pytest

from core.deliveries.channels import ChannelFacts, Channels
from core.model.delivery import Recipient
from core.queue import NewTask
from core.queue.task import ClaimRequest
from tests.support.servers import on_both_servers
from tests.support.stack import FLOOR, LEASE, Stack

pytestmark = on_both_servers


async def served(stack: Stack, turns: int) -> Counter[str]:
    """Return tenant → how many of the next turns it got; a body begins with its tenant."""
    count: Counter[str] = Counter()
    for _ in range(turns):
        (task,) = await stack.take()
        count[task.body.split(":")[0]] += 1
        await stack.queue.settle(task)
    return count


async def put(stack: Stack, tenant: str, count: int, lane: str = "") -> None:
    for number in range(count):
        await stack.queue.put("t", NewTask(f"{tenant}:{number}", tenant=tenant, lane=lane))


async def test_a_backlog_of_one_tenant_does_not_starve_another(stack: Stack) -> None:
    await put(stack, "big", 60)
    await put(stack, "small", 10)
    assert (await served(stack, 20))["small"] == 10


@pytest.mark.parametrize(("laned", "other"), [("a", "b"), ("b", "a")])
async def test_a_tenant_with_a_single_lane_does_not_starve_another(stack: Stack, laned: str, other: str) -> None:
    """I15. It left the rotation with each turn and came back at its front."""
    await put(stack, laned, 20, lane="lane")
    await put(stack, other, 20)
    count = await served(stack, 20)
    assert abs(count[laned] - count[other]) <= 2


async def test_a_claim_of_many_tasks_also_alternates_between_tenants(stack: Stack) -> None:
    """Only a tenant that is alone gives more than one task in a turn."""
    await put(stack, "one", 60)
    await put(stack, "other", 60)
    count = Counter(task.body.split(":")[0] for task in await stack.take(limit=20))
    assert count == {"one": 10, "other": 10}


async def test_each_of_many_tenants_gets_its_share(stack: Stack) -> None:
    for tenant in "abcdefgh":
        await put(stack, tenant, 10, lane="lane" + tenant if tenant in "aceg" else "")
    count = await served(stack, 40)
    assert max(count.values()) - min(count.values()) <= 2


async def test_a_tenant_that_starts_late_gets_its_share_at_once_and_no_more(stack: Stack) -> None:
    await put(stack, "early", 50)
    await served(stack, 30)
    await put(stack, "late", 20)
    count = await served(stack, 10)
    assert abs(count["early"] - count["late"]) <= 1


async def test_a_more_urgent_task_is_first_and_equal_ones_keep_their_order(stack: Stack) -> None:
    for number, priority in enumerate([5, 9, 0, 5, 0, 9]):
        await stack.queue.put("t", NewTask(f"{priority}:{number}", priority=priority))
    assert await stack.finish_all() == ["0:2", "0:4", "5:0", "5:3", "9:1", "9:5"]


async def test_an_urgent_task_does_not_overtake_in_its_lane(stack: Stack) -> None:
    for priority in (5, 9, 0):
        await stack.queue.put("t", NewTask(str(priority), priority=priority, lane="lane"))
    assert await stack.finish_all() == ["5", "9", "0"]


async def test_a_lane_is_as_urgent_as_its_head(stack: Stack) -> None:
    for body, priority, lane in [("calm", 9, "x"), ("urgent behind", 0, "x"), ("usual", 5, "y")]:
        await stack.queue.put("t", NewTask(body, priority=priority, lane=lane))
    assert [task.body for task in await stack.take(limit=1)] == ["usual"]
    assert [task.body for task in await stack.take(limit=1)] == ["calm"]


async def test_tasks_without_a_lane_do_not_wait_for_each_other(stack: Stack) -> None:
    await put(stack, "a", 5)
    assert len(await stack.take(limit=10)) == 5


async def test_a_claim_removes_only_the_tasks_it_returns_from_the_ready_index(stack: Stack) -> None:
    """It removed as many parcels as it wanted entries and put all but one back."""
    await Channels(stack.store).register("echo", ChannelFacts(parcel=100))
    people = [Recipient(number, contacts={"echo": [f"p{number}"]}) for number in range(2000)]
    await stack.deliver(*people, channels=("echo",))
    before = await written_to_sorted_sets(stack)
    claim = await stack.queue.claim(0, ClaimRequest("echo", "w", 64, LEASE, FLOOR, budget=200))
    assert [task.left for task in claim.tasks] == [100, 100]
    leases_of_both = 1
    assert await written_to_sorted_sets(stack) - before == leases_of_both
    await stack.queue.put_many("t", [NewTask(str(number)) for number in range(50)])
    assert [task.body for task in await stack.take("t", 40)] == [str(number) for number in range(40)]


async def written_to_sorted_sets(stack: Stack) -> int:
    stats = await stack.redis.info("commandstats")
    return int(stats.get("cmdstat_zadd", {"calls": 0})["calls"])
