"""How a delivery comes into being: its key, its repeats, ten thousand recipients in one step."""

import asyncio

import pytest
from msgspec.structs import replace

from core.errors import Conflict, Forbidden, Invalid, NotFound
from core.orders import Accepted, HistoryKey, Repeat
from core.words import Status, Verdict
from tests.core.audit import dump
from tests.core.deliveries import pending
from tests.core.house import HOUR, SENDER, TENANT, House, Played, order, people, person
from tests.servers import on_both_servers


class TestHowItComesIntoBeing:
    @on_both_servers
    @pytest.mark.row("D-04", "D-05")
    async def test_history_and_order_come_into_being_together_with_one_suffix(self, house: House) -> None:
        key = (await house.deliver(person(1), deliver_at=house.now() + HOUR)).key
        assert str(key).startswith("history:{0}:7:")
        assert len(str(key.ns)) == 19
        assert await house.redis.exists(str(key))
        assert await pending(house, key)
        kept = await dump(house.server.url)
        assert abs(kept[f"delivery:{{0}}:{key.suffix}"].pttl - 3_600_000) < 5_000

    @pytest.mark.row("D-11")
    async def test_a_channel_that_is_named_twice_has_one_parcel(self, house: House) -> None:
        courier = Played()
        await house.courier(courier)
        key = (await house.deliver(*people(2), channels=("echo", "echo"))).key
        await house.finished(key)
        assert courier.addresses == ["p1", "p2"]

    @pytest.mark.row("D-04")
    async def test_a_key_can_be_had_first_and_is_used_once(self, house: House) -> None:
        key = await house.histories.reserve(TENANT, SENDER.id)
        with pytest.raises(NotFound):
            await house.history(key)
        assert (await house.deliver(person(1), history_key=key, deliver_at=house.now() + HOUR)).key == key
        with pytest.raises(Conflict) as refused:
            await house.deliver(person(1), history_key=key)
        assert refused.value.code == "HISTORY_KEY_USED"

    @pytest.mark.row("D-04")
    async def test_another_tenants_key_is_refused_and_leaves_no_trace(self, house: House) -> None:
        key = await house.histories.reserve("another", SENDER.id)
        before = house.server.all_keys()
        with pytest.raises(Forbidden) as refused:
            await house.deliver(person(1), history_key=key)
        assert refused.value.code == "HISTORY_KEY_FOREIGN"
        assert house.server.all_keys() == before

    @pytest.mark.row("D-04")
    async def test_keys_reserved_at_once_differ(self, house: House) -> None:
        keys = await asyncio.gather(*(house.histories.reserve(TENANT, 7) for _ in range(500)))
        assert len(set(keys)) == 500

    @on_both_servers
    @pytest.mark.row("D-39")
    async def test_a_thousand_identical_requests_at_once_are_one_delivery_with_one_answer(self, house: House) -> None:
        courier = Played()
        await house.courier(courier)
        one, repeat = order(person(1)), Repeat("the same", "print")
        answers = [*await house.histories.enqueue_many([(one, repeat)] * 1000)]
        accepted = [answer for answer in answers if isinstance(answer, Accepted)]
        assert len(accepted) == 1000
        assert len({replace(answer, repeated=False) for answer in accepted}) == 1
        assert [answer.repeated for answer in accepted].count(False) == 1
        await house.finished(accepted[0].key)
        assert courier.addresses == ["p1"]

    @pytest.mark.row("D-39")
    async def test_a_repeat_from_another_process_and_after_the_end_is_answered_as_the_first(self, house: House) -> None:
        await house.courier(Played())
        repeat = Repeat("key", "print")
        first = await house.histories.enqueue(order(person(1)), repeat)
        await house.finished(first.key)
        other = await House.open(house.server)
        assert await other.histories.enqueue(order(person(1)), repeat) == replace(first, repeated=True)
        await other.close()

    @pytest.mark.row("D-39")
    async def test_the_same_key_with_another_request_is_refused_and_another_tenants_is_another(
        self, house: House
    ) -> None:
        first = await house.histories.enqueue(order(person(1), deliver_at=house.now() + HOUR), Repeat("key", "one"))
        with pytest.raises(Conflict) as refused:
            await house.histories.enqueue(order(person(2)), Repeat("key", "two"))
        assert refused.value.code == "IDEMPOTENCY_KEY_REUSED"
        theirs = await house.histories.enqueue(
            order(person(2), tenant="another", deliver_at=house.now() + HOUR), Repeat("key", "two")
        )
        assert theirs.key != first.key
        await house.histories.cancel(theirs.key, "another")

    @on_both_servers
    @pytest.mark.row("D-33")
    async def test_ten_thousand_recipients_are_one_call_and_one_script(self, house: House) -> None:
        await house.queue.stats()
        await house.redis.config_resetstat()
        key = (await house.deliver(*people(10_000, "echo", "vk"), channels=("echo", "vk"))).key
        stats = await house.redis.info("commandstats")
        assert stats["cmdstat_evalsha"]["calls"] <= 2  # the second where the script was not yet loaded
        assert (await house.history(key, limit=1)).counts["recipients"] == 10_000

    @pytest.mark.row("D-33")
    async def test_ten_thousand_recipients_complete(self, house: House) -> None:
        courier = Played(batch=2500, parcel=2500)
        await house.courier(courier)
        key = (await house.deliver(*people(10_000))).key
        told = await house.finished(key, within=20)
        assert (told.counts[Status.SENT], told.verdict) == (10_000, Verdict.ALL_REACHED)
        assert len(set(courier.addresses)) == len(courier.addresses) == 10_000

    @pytest.mark.row("D-26")
    async def test_a_key_of_a_shard_that_does_not_exist_is_refused(self, house: House) -> None:
        key = HistoryKey(5, "7", 1795240000000000000)
        with pytest.raises(Invalid):
            await house.deliver(person(1), history_key=key)
        with pytest.raises(NotFound):
            await house.history(key)
        with pytest.raises(NotFound):
            await house.histories.reschedule(key, TENANT, house.now())
        with pytest.raises(NotFound):
            await house.histories.cancel(key, TENANT)
