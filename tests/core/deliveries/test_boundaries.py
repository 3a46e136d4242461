"""Counts around the size of a page: recipients, deliveries, outcomes of one parcel."""

import pytest

from core.model.history_key import HistoryKey, Id
from core.model.states import Status
from tests.support.stack import HOUR, TENANT, FakeCourier, Stack, order, people


@pytest.mark.parametrize("count", [199, 200, 201, 401])
@pytest.mark.parametrize("limit", [1000, 200, 199, 67])
async def test_the_pages_of_a_history_have_every_recipient_once(stack: Stack, count: int, limit: int) -> None:
    key = (await stack.deliver(*people(count), deliver_at=stack.now() + HOUR)).key
    sizes, found, cursor = list[int](), list[Id](), None
    while not sizes or cursor is not None:
        history = await stack.deliveries.read(key, TENANT, cursor, limit)
        sizes.append(len(history.recipients))
        found += [one.id for one in history.recipients]
        cursor = history.next
    assert found == list(range(1, count + 1))
    assert set(sizes[:-1]) <= {limit}
    assert 0 < sizes[-1] <= limit


@pytest.mark.parametrize("count", [499, 500, 501, 1001])
async def test_any_number_of_outcomes_of_one_parcel_is_written(stack: Stack, count: int) -> None:
    courier = FakeCourier(parcel=2000, batch=count)
    await stack.courier(courier)
    history = await stack.finished((await stack.deliver(*people(count))).key)
    assert history.counts[Status.SENT] == count
    assert len(courier.attempted) == count


@pytest.mark.parametrize("count", [199, 200, 201])
async def test_the_pages_of_the_list_have_every_delivery_once(stack: Stack, count: int) -> None:
    orders = [(order(*people(1), deliver_at=stack.now() + HOUR), None) for _ in range(count)]
    keys = {getattr(accepted, "key", None) for accepted in await stack.deliveries.enqueue_many(orders)}
    for limit in (count - 1, count, count + 1, 200):
        found, cursor, pages = list[HistoryKey](), None, 0
        while not pages or cursor is not None:
            page, cursor = await stack.deliveries.list(TENANT, cursor=cursor, limit=limit)
            found += [one.key for one in page]
            pages += 1
            assert len(page) <= limit
        assert len(found) == count
        assert set(found) == keys


async def test_more_deliveries_than_a_page_are_cancelled_by_their_sender(stack: Stack) -> None:
    orders = [(order(*people(1), deliver_at=stack.now() + HOUR), None) for _ in range(501)]
    await stack.deliveries.enqueue_many(orders)
    assert await stack.deliveries.cancel_by(TENANT, "sender", "7") == 501
