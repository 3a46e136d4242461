"""A delivery's end: expired, retained, dropped, and what a new attempt leaves as it was."""

import pytest

from core.errors import NotFound
from core.port import Message, Outcome, Rejected
from core.words import DeliveryState, Reason, Status, Verdict
from tests.core.deliveries import has_reported
from tests.core.house import HOUR, TENANT, House, Played, person
from tests.servers import on_both_servers
from tests.waiting import until


class TestItsEnd:
    @on_both_servers
    @pytest.mark.row("D-18")
    async def test_what_falls_due_without_a_courier_waits_for_it_unless_it_expired(self, house: House) -> None:
        now = house.now()
        kept = (await house.deliver(person(1), deliver_at=now + HOUR, expires_at=now + 9 * HOUR)).key
        stale = (await house.deliver(person(2), deliver_at=now + HOUR, expires_at=now + 2 * HOUR)).key
        house.passes(3 * HOUR)
        courier = Played()
        await house.courier(courier)
        assert (await house.finished(kept)).verdict is Verdict.ALL_REACHED
        told = await house.finished(stale)
        assert (told.state, told.counts[Status.EXPIRED], told.verdict) == (
            DeliveryState.EXPIRED,
            1,
            Verdict.NOTHING_WORKED,
        )
        assert courier.addresses == ["p1"]

    @pytest.mark.row("D-18")
    async def test_what_expires_half_way_keeps_what_was_sent(self, house: House) -> None:
        await house.courier(Played("vk"))
        key = (await house.deliver(person(1, "vk", "sms"), channels=("vk", "sms"), expires_at=house.now() + HOUR)).key
        await until(lambda: has_reported(house, key, 1))
        house.passes(2 * HOUR)
        told = await house.finished(key)
        assert told.state is DeliveryState.FINISHED
        assert told.recipients[0].outcomes["sms"].status is Status.EXPIRED
        assert list(told.recipients[0].received_in) == ["vk"]

    @on_both_servers
    async def test_after_its_retention_a_delivery_is_gone_with_all_its_indexes(self, house: House) -> None:
        await house.redis.hset("settings:{0}", "retention_ms", str(24 * 3600 * 1000))
        await house.courier(Played())
        keys = [(await house.deliver(person(number))).key for number in range(25)]
        for key in keys:
            await house.finished(key)
        assert len((await house.histories.list(TENANT))[0]) == 25
        house.passes(25 * HOUR)
        await house.tick(times=4)
        for key in keys:
            with pytest.raises(NotFound):
                await house.history(key)
        assert await house.histories.list(TENANT) == ([], None)
        assert [key for key in house.server.all_keys() if key.startswith(("history", "deliveries"))] == []

    @pytest.mark.row("D-40")
    async def test_what_expired_stays_expired_when_the_failed_is_tried_again(self, house: House) -> None:
        """The retry forgot that a channel had expired, and its recipients became cancelled."""
        await house.courier(Played("vk", answer=refuse))
        expires = house.now() + HOUR
        key = (await house.deliver(person(1, "vk", "sms"), channels=("vk", "sms"), expires_at=expires)).key
        await until(lambda: has_reported(house, key, 1))
        house.passes(2 * HOUR)
        await house.finished(key)
        await house.histories.retry(key, TENANT, [Status.FAILED])
        told = await house.finished(key)
        assert told.recipients[0].outcomes["sms"].status is Status.EXPIRED
        assert told.recipients[0].outcomes["vk"].status is Status.FAILED

    async def test_what_is_retried_within_its_retention_is_kept_while_it_is_at_work(self, house: House) -> None:
        await house.redis.hset("settings:{0}", "retention_ms", "3600000")
        courier = Played(answer=refuse)
        running = await house.courier(courier)
        key = (await house.deliver(person(1))).key
        await house.finished(key)
        await house.stop(running)
        assert await house.histories.retry(key, TENANT, [Status.FAILED]) == 1
        house.passes(48 * HOUR)
        await house.tick()
        assert (await house.history(key)).state is DeliveryState.RELEASED
        assert await house.redis.pttl(str(key)) == -1


def refuse(message: Message) -> Outcome:
    return Rejected(Reason.BLOCKED)
