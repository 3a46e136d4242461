"""A delivery's moment: kept, moved, cancelled before it, and met after a restart."""

from datetime import timedelta

import pytest

from core.errors import Conflict, Invalid, NotFound
from core.words import DeliveryState, Status
from tests.core.deliveries import SECOND, pending
from tests.core.house import HOUR, TENANT, House, Played, order, people, person
from tests.servers import Server, on_both_servers
from tests.waiting import until


class TestItsMoment:
    @on_both_servers
    @pytest.mark.row("D-06", "D-07")
    async def test_a_delivery_is_made_at_its_moment_and_not_before(self, house: House) -> None:
        courier = Played()
        await house.courier(courier)
        due = house.now() + 0.6 * SECOND
        accepted = await house.deliver(person(1), deliver_at=due)
        assert accepted.state is DeliveryState.SCHEDULED
        assert await pending(house, accepted.key)
        told = await house.finished(accepted.key)
        assert told.released_at is not None
        assert timedelta(0) <= told.released_at - due.replace(microsecond=due.microsecond // 1000 * 1000) < 0.3 * SECOND
        assert not await pending(house, accepted.key)

    @pytest.mark.row("D-06")
    async def test_at_once_means_that_the_order_is_gone_when_the_call_is_answered(self, house: House) -> None:
        key = (await house.deliver(person(1))).key
        assert not await pending(house, key)
        assert (await house.history(key)).state is DeliveryState.RELEASED

    @pytest.mark.row("D-06")
    async def test_a_moment_that_has_passed_means_at_once_and_is_said(self, house: House) -> None:
        asked = house.now().replace(microsecond=0) - HOUR
        accepted = await house.deliver(person(1), deliver_at=asked)
        assert accepted.state is DeliveryState.RELEASED
        assert accepted.moved_from == asked
        assert abs(accepted.deliver_at - house.now()) < 5 * SECOND
        assert (await house.history(accepted.key)).moved_from == asked

    @on_both_servers
    @pytest.mark.row("D-07")
    async def test_a_delivery_can_be_moved_to_later_and_to_sooner(self, house: House) -> None:
        key = (await house.deliver(person(1), deliver_at=house.now() + HOUR)).key
        await house.histories.reschedule(key, TENANT, house.now() + 3 * HOUR)
        house.passes(2 * HOUR)
        await house.tick()
        assert (await house.history(key)).state is DeliveryState.SCHEDULED
        await house.histories.reschedule(key, TENANT, house.now() + timedelta(minutes=1))
        house.passes(timedelta(minutes=2))
        await house.tick()
        assert (await house.history(key)).state is DeliveryState.RELEASED

    @pytest.mark.row("D-07")
    async def test_moving_to_now_releases_at_once(self, house: House) -> None:
        key = (await house.deliver(person(1), deliver_at=house.now() + HOUR)).key
        moved = await house.histories.reschedule(key, TENANT, house.now() - HOUR)
        assert moved.state is DeliveryState.RELEASED
        assert not await pending(house, key)

    @pytest.mark.row("D-07")
    async def test_what_was_released_cannot_be_moved_and_nobody_moves_anothers(self, house: House) -> None:
        key = (await house.deliver(person(1))).key
        with pytest.raises(Conflict) as refused:
            await house.histories.reschedule(key, TENANT, house.now() + HOUR)
        assert refused.value.code == "ALREADY_RELEASED"
        for ask in (
            house.histories.reschedule(key, "another", house.now()),
            house.histories.cancel(key, "another"),
            house.histories.read(key, "another"),
            house.histories.retry(key, "another", [Status.FAILED]),
        ):
            with pytest.raises(NotFound):
                await ask

    @pytest.mark.row("D-07")
    async def test_a_delivery_cannot_be_moved_past_its_own_expiry(self, house: House) -> None:
        now = house.now()
        key = (await house.deliver(person(1), deliver_at=now + HOUR, expires_at=now + 2 * HOUR)).key
        with pytest.raises(Invalid) as refused:
            await house.histories.reschedule(key, TENANT, now + 2 * HOUR)
        assert refused.value.code == "EXPIRES_BEFORE_DUE"

    @on_both_servers
    @pytest.mark.row("D-07", "D-17")
    async def test_a_delivery_cancelled_before_its_moment_reaches_nobody(self, house: House) -> None:
        courier = Played()
        key = (await house.deliver(*people(3), deliver_at=house.now() + HOUR)).key
        assert (await house.histories.cancel(key, TENANT)).cancelled == 3
        assert not await pending(house, key)
        await house.courier(courier)
        house.passes(2 * HOUR)
        await house.tick()
        told = await house.history(key)
        assert (told.state, told.counts[Status.CANCELLED]) == (DeliveryState.CANCELLED, 3)
        assert courier.attempted == []

    @pytest.mark.row("D-07", "D-18")
    async def test_a_scheduled_delivery_survives_a_restart_of_everything(self, own_server: Server) -> None:
        before = await House.open(own_server)
        early = (await before.deliver(person(1), deliver_at=before.now() + 0.2 * SECOND)).key
        late = (await before.deliver(person(2), deliver_at=before.now() + 1.5 * SECOND)).key
        await before.close()
        own_server.kill()
        own_server.start()
        house = await House.open(own_server)
        courier = Played()
        await house.courier(courier)
        await house.finished(early)
        told = await house.finished(late)
        assert told.released_at
        assert abs(told.released_at - told.deliver_at) < 0.4 * SECOND
        assert courier.addresses == ["p1", "p2"]
        await house.audit()
        await house.close()

    @pytest.mark.row("D-07")
    async def test_hundreds_of_deliveries_of_one_moment_are_all_made_then(self, house: House) -> None:
        courier = Played()
        due = house.now() + HOUR
        orders = [(order(person(number), deliver_at=due), None) for number in range(300)]
        await house.histories.enqueue_many(orders)
        house.passes(HOUR)
        await house.courier(courier)
        await until(lambda: len(courier.attempted) == 300, within=20)
        assert len(set(courier.addresses)) == 300
        await until(lambda: nothing_live(house))


async def nothing_live(house: House) -> bool:
    return not await house.redis.exists(f"deliveries:{{0}}:live:{TENANT}")
