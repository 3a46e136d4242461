"""Two tenants with equal deliveries side by side: each sees and changes its own only."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from core.errors import Forbidden, NotFound
from core.model.history_key import HistoryKey
from core.model.states import DeliveryState, Status
from tests.support.delivery_progress import GONE, statuses
from tests.support.stack import HOUR, TENANT, FakeCourier, Stack, people
from tests.support.waiting import until

THEIRS = "another"
SELECTORS = {"sender": "7", "user": "1", "lane": "lane", "kind_prefix": "exam.", "tag": "tag"}

Call = Callable[[Stack, HistoryKey, str], Awaitable[object]]
CALLS: dict[str, Call] = {
    "read": lambda stack, key, tenant: stack.deliveries.read(key, tenant),
    "track": lambda stack, key, tenant: stack.tracker.wait(key, tenant, 0, 0),
    "follow": lambda stack, key, tenant: anext(stack.tracker.follow(key, tenant)),
    "reschedule": lambda stack, key, tenant: stack.deliveries.reschedule(key, tenant, stack.now() + 2 * HOUR),
    "cancel": lambda stack, key, tenant: stack.deliveries.cancel(key, tenant),
    "cancel one": lambda stack, key, tenant: stack.deliveries.cancel(key, tenant, ["1"]),
    "retry": lambda stack, key, tenant: stack.deliveries.retry(key, tenant, [Status.FAILED]),
}


async def side_by_side(stack: Stack, **options: Any) -> tuple[HistoryKey, HistoryKey]:
    """Our delivery and theirs, equal but for the tenant."""
    options = {"lane": "lane", "kind": "exam.mark", "tags": ["tag"], **options}
    ours = await stack.deliver(*people(2), **options)
    theirs = await stack.deliver(*people(2), tenant=THEIRS, **options)
    return ours.key, theirs.key


@pytest.mark.parametrize("name", CALLS)
async def test_a_delivery_of_another_tenant_is_refused_as_unknown_and_not_changed(stack: Stack, name: str) -> None:
    if name == "retry":
        await stack.courier(FakeCourier(respond=lambda message: GONE))
        ours, theirs = await side_by_side(stack)
        await until(lambda: have_finished(stack, (ours, TENANT), (theirs, THEIRS)))
    else:
        ours, theirs = await side_by_side(stack, deliver_at=stack.now() + HOUR)
    before = await stack.deliveries.read(theirs, THEIRS)
    for key, tenant in ((theirs, TENANT), (ours, THEIRS)):
        with pytest.raises(NotFound) as refused:
            await CALLS[name](stack, key, tenant)
        assert refused.value.code == "HISTORY_NOT_FOUND"
    if name != "follow":  # it would wait for a change
        await CALLS[name](stack, ours, TENANT)
    assert await stack.deliveries.read(theirs, THEIRS) == before
    await stack.deliveries.cancel(theirs, THEIRS)


async def have_finished(stack: Stack, *deliveries: tuple[HistoryKey, str]) -> bool:
    return all([(await stack.deliveries.read(*delivery)).finished_at is not None for delivery in deliveries])


async def test_each_tenant_lists_its_own_deliveries(stack: Stack) -> None:
    ours, theirs = await side_by_side(stack, deliver_at=stack.now() + HOUR)
    for tenant, key in ((TENANT, ours), (THEIRS, theirs)):
        assert [one.key for one in (await stack.deliveries.list(tenant))[0]] == [key]
        assert [one.key for one in (await stack.deliveries.list(tenant, sender="7"))[0]] == [key]
    await stack.deliveries.cancel(theirs, THEIRS)


@pytest.mark.parametrize("selector", SELECTORS)
async def test_cancelling_by_a_property_leaves_equal_deliveries_of_another_tenant(stack: Stack, selector: str) -> None:
    ours, theirs = await side_by_side(stack, deliver_at=stack.now() + HOUR)
    assert await stack.deliveries.cancel_by(TENANT, selector, SELECTORS[selector]) == 1
    assert (await stack.history(ours)).state is DeliveryState.CANCELLED
    assert (await stack.deliveries.read(theirs, THEIRS)).state is DeliveryState.SCHEDULED
    await stack.deliveries.cancel(theirs, THEIRS)


async def test_a_key_reserved_by_another_tenant_beside_ours_is_refused(stack: Stack) -> None:
    ours = await stack.deliveries.reserve(TENANT, 7)
    theirs = await stack.deliveries.reserve(THEIRS, 7)
    with pytest.raises(NotFound):
        await stack.tracker.wait(theirs, TENANT, 0, 0)
    with pytest.raises(Forbidden):
        await stack.deliver(*people(1), history_key=theirs)
    assert (await stack.deliver(*people(1), history_key=ours, deliver_at=stack.now() + HOUR)).key == ours
    assert statuses(await stack.history(ours)) == {1: "queued"}
