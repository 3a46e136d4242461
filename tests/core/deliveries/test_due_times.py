"""The due time of a delivery: kept, rescheduled, cancelled before it, and met after a restart."""

from datetime import timedelta

import pytest

from core.errors import Conflict, Invalid, NotFound
from core.model.states import DeliveryState, Status
from tests.support.delivery_progress import SECOND, pending
from tests.support.servers import Server, on_both_servers
from tests.support.stack import HOUR, TENANT, FakeCourier, Stack, order, people, person
from tests.support.waiting import until


class TestDueTime:
    @on_both_servers
    async def test_a_delivery_is_released_when_it_is_due_and_not_before(self, stack: Stack) -> None:
        courier = FakeCourier()
        await stack.courier(courier)
        due = stack.now() + 0.6 * SECOND
        accepted = await stack.deliver(person(1), deliver_at=due)
        assert accepted.state is DeliveryState.SCHEDULED
        assert await pending(stack, accepted.key)
        history = await stack.finished(accepted.key)
        assert history.released_at is not None
        assert (
            timedelta(0) <= history.released_at - due.replace(microsecond=due.microsecond // 1000 * 1000) < 0.3 * SECOND
        )
        assert not await pending(stack, accepted.key)

    async def test_without_a_due_time_the_order_key_has_vanished_when_the_call_returns(self, stack: Stack) -> None:
        key = (await stack.deliver(person(1))).key
        assert not await pending(stack, key)
        assert (await stack.history(key)).state is DeliveryState.RELEASED

    async def test_a_due_time_in_the_past_means_now_and_is_reported(self, stack: Stack) -> None:
        asked = stack.now().replace(microsecond=0) - HOUR
        accepted = await stack.deliver(person(1), deliver_at=asked)
        assert accepted.state is DeliveryState.RELEASED
        assert accepted.moved_from == asked
        assert abs(accepted.deliver_at - stack.now()) < 5 * SECOND
        assert (await stack.history(accepted.key)).moved_from == asked

    @on_both_servers
    async def test_a_delivery_can_be_rescheduled_to_later_and_to_sooner(self, stack: Stack) -> None:
        key = (await stack.deliver(person(1), deliver_at=stack.now() + HOUR)).key
        await stack.deliveries.reschedule(key, TENANT, stack.now() + 3 * HOUR)
        stack.advance_clock(2 * HOUR)
        await stack.tick()
        assert (await stack.history(key)).state is DeliveryState.SCHEDULED
        await stack.deliveries.reschedule(key, TENANT, stack.now() + timedelta(minutes=1))
        stack.advance_clock(timedelta(minutes=2))
        await stack.tick()
        assert (await stack.history(key)).state is DeliveryState.RELEASED

    async def test_rescheduling_to_now_releases_the_delivery_and_keeps_the_time_asked_for(self, stack: Stack) -> None:
        asked = stack.now().replace(microsecond=0) - HOUR
        key = (await stack.deliver(person(1), deliver_at=stack.now() + HOUR)).key
        moved = await stack.deliveries.reschedule(key, TENANT, asked)
        assert (moved.state, moved.moved_from) == (DeliveryState.RELEASED, asked)
        assert abs(moved.deliver_at - stack.now()) < 5 * SECOND
        assert (await stack.history(key)).moved_from == asked
        assert not await pending(stack, key)

    async def test_a_new_time_hides_the_time_that_was_asked_for_before(self, stack: Stack) -> None:
        asked, now = stack.now().replace(microsecond=0) + HOUR, stack.now()
        key = (await stack.deliver(person(1), deliver_at=now + 7 * HOUR, moved_from=asked)).key
        moved = await stack.deliveries.reschedule(key, TENANT, now + 9 * HOUR, asked + HOUR)
        assert (moved.moved_from, (await stack.history(key)).moved_from) == (asked + HOUR, asked + HOUR)
        moved = await stack.deliveries.reschedule(key, TENANT, now + 12 * HOUR)
        assert (moved.moved_from, (await stack.history(key)).moved_from) == (None, None)

    async def test_a_released_delivery_or_another_tenants_delivery_cannot_be_rescheduled(self, stack: Stack) -> None:
        key = (await stack.deliver(person(1))).key
        with pytest.raises(Conflict) as refused:
            await stack.deliveries.reschedule(key, TENANT, stack.now() + HOUR)
        assert refused.value.code == "ALREADY_RELEASED"
        for ask in (
            stack.deliveries.reschedule(key, "another", stack.now()),
            stack.deliveries.cancel(key, "another"),
            stack.deliveries.read(key, "another"),
            stack.deliveries.retry(key, "another", [Status.FAILED]),
        ):
            with pytest.raises(NotFound):
                await ask

    async def test_a_delivery_cannot_be_rescheduled_past_its_own_expiry(self, stack: Stack) -> None:
        now = stack.now()
        key = (await stack.deliver(person(1), deliver_at=now + HOUR, expires_at=now + 2 * HOUR)).key
        with pytest.raises(Invalid) as refused:
            await stack.deliveries.reschedule(key, TENANT, now + 2 * HOUR)
        assert refused.value.code == "EXPIRES_BEFORE_DUE"

    @on_both_servers
    async def test_a_delivery_cancelled_before_it_is_due_is_not_sent(self, stack: Stack) -> None:
        courier = FakeCourier()
        key = (await stack.deliver(*people(3), deliver_at=stack.now() + HOUR)).key
        assert (await stack.deliveries.cancel(key, TENANT)).cancelled == 3
        assert not await pending(stack, key)
        await stack.courier(courier)
        stack.advance_clock(2 * HOUR)
        await stack.tick()
        history = await stack.history(key)
        assert (history.state, history.counts[Status.CANCELLED]) == (DeliveryState.CANCELLED, 3)
        assert courier.attempted == []

    async def test_a_scheduled_delivery_survives_a_restart_of_everything(self, own_server: Server) -> None:
        before = await Stack.open(own_server)
        early = (await before.deliver(person(1), deliver_at=before.now() + 0.2 * SECOND)).key
        late = (await before.deliver(person(2), deliver_at=before.now() + 1.5 * SECOND)).key
        await before.close()
        own_server.kill()
        own_server.start()
        stack = await Stack.open(own_server)
        courier = FakeCourier()
        await stack.courier(courier)
        await stack.finished(early)
        history = await stack.finished(late)
        assert history.released_at
        assert abs(history.released_at - history.deliver_at) < 0.4 * SECOND
        assert courier.addresses == ["p1", "p2"]
        await stack.audit()
        await stack.close()

    async def test_hundreds_of_deliveries_due_at_the_same_time_are_all_sent_then(self, stack: Stack) -> None:
        courier = FakeCourier()
        due = stack.now() + HOUR
        orders = [(order(person(number), deliver_at=due), None) for number in range(300)]
        await stack.deliveries.enqueue_many(orders)
        stack.advance_clock(HOUR)
        await stack.courier(courier)
        await until(lambda: len(courier.attempted) == 300)
        assert len(set(courier.addresses)) == 300
        await until(lambda: nothing_live(stack))


async def nothing_live(stack: Stack) -> bool:
    return not await stack.redis.exists(f"deliveries:{{0}}:live:{TENANT}")
