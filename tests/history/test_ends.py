"""A delivery's end: expired, retained, dropped, and what a new attempt leaves as it was."""

import pytest

from core.courier.interface import Message, Outcome, Rejected
from core.errors import NotFound
from core.model.states import DeliveryState, Reason, Status, Verdict
from tests.support.delivery_progress import has_reported
from tests.support.servers import on_both_servers
from tests.support.stack import HOUR, TENANT, Played, Stack, person
from tests.support.waiting import until


class TestItsEnd:
    @on_both_servers
    @pytest.mark.row("D-18")
    async def test_what_falls_due_without_a_courier_waits_for_it_unless_it_expired(self, stack: Stack) -> None:
        now = stack.now()
        kept = (await stack.deliver(person(1), deliver_at=now + HOUR, expires_at=now + 9 * HOUR)).key
        stale = (await stack.deliver(person(2), deliver_at=now + HOUR, expires_at=now + 2 * HOUR)).key
        stack.passes(3 * HOUR)
        courier = Played()
        await stack.courier(courier)
        assert (await stack.finished(kept)).verdict is Verdict.ALL_REACHED
        told = await stack.finished(stale)
        assert (told.state, told.counts[Status.EXPIRED], told.verdict) == (
            DeliveryState.EXPIRED,
            1,
            Verdict.NOTHING_WORKED,
        )
        assert courier.addresses == ["p1"]

    @pytest.mark.row("D-18")
    async def test_what_expires_half_way_keeps_what_was_sent(self, stack: Stack) -> None:
        await stack.courier(Played("vk"))
        key = (await stack.deliver(person(1, "vk", "sms"), channels=("vk", "sms"), expires_at=stack.now() + HOUR)).key
        await until(lambda: has_reported(stack, key, 1))
        stack.passes(2 * HOUR)
        told = await stack.finished(key)
        assert told.state is DeliveryState.FINISHED
        assert told.recipients[0].outcomes["sms"].status is Status.EXPIRED
        assert list(told.recipients[0].received_in) == ["vk"]

    @on_both_servers
    async def test_after_its_retention_a_delivery_is_gone_with_all_its_indexes(self, stack: Stack) -> None:
        await stack.redis.hset("settings:{0}", "retention_ms", str(24 * 3600 * 1000))
        await stack.courier(Played())
        keys = [(await stack.deliver(person(number))).key for number in range(25)]
        for key in keys:
            await stack.finished(key)
        assert len((await stack.deliveries.list(TENANT))[0]) == 25
        stack.passes(25 * HOUR)
        await stack.tick(times=4)
        for key in keys:
            with pytest.raises(NotFound):
                await stack.history(key)
        assert await stack.deliveries.list(TENANT) == ([], None)
        assert [key for key in stack.server.all_keys() if key.startswith(("history", "deliveries"))] == []

    @pytest.mark.row("D-40")
    async def test_what_expired_stays_expired_when_the_failed_is_tried_again(self, stack: Stack) -> None:
        """The retry forgot that a channel had expired, and its recipients became cancelled."""
        await stack.courier(Played("vk", answer=refuse))
        expires = stack.now() + HOUR
        key = (await stack.deliver(person(1, "vk", "sms"), channels=("vk", "sms"), expires_at=expires)).key
        await until(lambda: has_reported(stack, key, 1))
        stack.passes(2 * HOUR)
        await stack.finished(key)
        await stack.deliveries.retry(key, TENANT, [Status.FAILED])
        told = await stack.finished(key)
        assert told.recipients[0].outcomes["sms"].status is Status.EXPIRED
        assert told.recipients[0].outcomes["vk"].status is Status.FAILED

    async def test_what_is_retried_within_its_retention_is_kept_while_it_is_at_work(self, stack: Stack) -> None:
        await stack.redis.hset("settings:{0}", "retention_ms", "3600000")
        courier = Played(answer=refuse)
        running = await stack.courier(courier)
        key = (await stack.deliver(person(1))).key
        await stack.finished(key)
        await stack.stop(running)
        assert await stack.deliveries.retry(key, TENANT, [Status.FAILED]) == 1
        stack.passes(48 * HOUR)
        await stack.tick()
        assert (await stack.history(key)).state is DeliveryState.RELEASED
        assert await stack.redis.pttl(str(key)) == -1


def refuse(message: Message) -> Outcome:
    return Rejected(Reason.BLOCKED)
