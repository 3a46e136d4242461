"""Enqueuing: history keys, repeated requests, ten thousand recipients in one step."""

import asyncio

import pytest
from msgspec.structs import replace

from core.errors import Conflict, Forbidden, Invalid, NotFound
from core.model.delivery import Accepted, Repeat
from core.model.history_key import HistoryKey
from core.model.states import Status, Verdict
from tests.support.audited import dump
from tests.support.delivery_progress import pending
from tests.support.servers import on_both_servers
from tests.support.stack import HOUR, SENDER, TENANT, FakeCourier, Stack, order, people, person


class TestEnqueue:
    @on_both_servers
    async def test_the_history_and_the_order_key_are_created_together_with_the_same_suffix(self, stack: Stack) -> None:
        key = (await stack.deliver(person(1), deliver_at=stack.now() + HOUR)).key
        assert str(key).startswith("history:{0}:7:")
        assert len(str(key.ns)) == 19
        assert await stack.redis.exists(str(key))
        assert await pending(stack, key)
        kept = await dump(stack.server.url)
        assert abs(kept[f"delivery:{{0}}:{key.suffix}"].pttl - 3_600_000) < 5_000

    async def test_a_channel_that_is_named_twice_has_one_parcel(self, stack: Stack) -> None:
        courier = FakeCourier()
        await stack.courier(courier)
        key = (await stack.deliver(*people(2), channels=("echo", "echo"))).key
        await stack.finished(key)
        assert courier.addresses == ["p1", "p2"]

    async def test_a_key_can_be_reserved_first_and_is_used_once(self, stack: Stack) -> None:
        key = await stack.deliveries.reserve(TENANT, SENDER.id)
        with pytest.raises(NotFound):
            await stack.history(key)
        assert (await stack.deliver(person(1), history_key=key, deliver_at=stack.now() + HOUR)).key == key
        with pytest.raises(Conflict) as refused:
            await stack.deliver(person(1), history_key=key)
        assert refused.value.code == "HISTORY_KEY_USED"

    async def test_another_tenants_key_is_refused_and_leaves_no_trace(self, stack: Stack) -> None:
        key = await stack.deliveries.reserve("another", SENDER.id)
        before = stack.server.all_keys()
        with pytest.raises(Forbidden) as refused:
            await stack.deliver(person(1), history_key=key)
        assert refused.value.code == "HISTORY_KEY_FOREIGN"
        assert stack.server.all_keys() == before

    async def test_keys_reserved_at_once_differ(self, stack: Stack) -> None:
        keys = await asyncio.gather(*(stack.deliveries.reserve(TENANT, 7) for _ in range(500)))
        assert len(set(keys)) == 500

    @on_both_servers
    async def test_a_thousand_identical_concurrent_requests_make_one_delivery_and_get_one_result(
        self, stack: Stack
    ) -> None:
        courier = FakeCourier()
        await stack.courier(courier)
        one, repeat = order(person(1)), Repeat("the same", "print")
        results = [*await stack.deliveries.enqueue_many([(one, repeat)] * 1000)]
        accepted = [result for result in results if isinstance(result, Accepted)]
        assert len(accepted) == 1000
        assert len({replace(result, repeated=False) for result in accepted}) == 1
        assert [result.repeated for result in accepted].count(False) == 1
        await stack.finished(accepted[0].key)
        assert courier.addresses == ["p1"]

    async def test_a_repeat_from_another_process_after_the_end_gets_the_first_result(self, stack: Stack) -> None:
        await stack.courier(FakeCourier())
        repeat = Repeat("key", "print")
        first = await stack.deliveries.enqueue(order(person(1)), repeat)
        await stack.finished(first.key)
        other = await Stack.open(stack.server)
        assert await other.deliveries.enqueue(order(person(1)), repeat) == replace(first, repeated=True)
        await other.close()

    async def test_an_idempotency_key_is_refused_for_another_request_but_not_for_another_tenant(
        self, stack: Stack
    ) -> None:
        first = await stack.deliveries.enqueue(order(person(1), deliver_at=stack.now() + HOUR), Repeat("key", "one"))
        with pytest.raises(Conflict) as refused:
            await stack.deliveries.enqueue(order(person(2)), Repeat("key", "two"))
        assert refused.value.code == "IDEMPOTENCY_KEY_REUSED"
        theirs = await stack.deliveries.enqueue(
            order(person(2), tenant="another", deliver_at=stack.now() + HOUR), Repeat("key", "two")
        )
        assert theirs.key != first.key
        await stack.deliveries.cancel(theirs.key, "another")

    @on_both_servers
    async def test_ten_thousand_recipients_are_enqueued_in_one_script_call(self, stack: Stack) -> None:
        await stack.queue.inspector.stats()
        await stack.redis.config_resetstat()
        key = (await stack.deliver(*people(10_000, "echo", "vk"), channels=("echo", "vk"))).key
        stats = await stack.redis.info("commandstats")
        assert stats["cmdstat_fcall"]["calls"] == 1
        assert (await stack.history(key, limit=1)).counts["recipients"] == 10_000

    async def test_ten_thousand_recipients_are_all_sent_to(self, stack: Stack) -> None:
        courier = FakeCourier(batch=2500, parcel=2500)
        await stack.courier(courier)
        key = (await stack.deliver(*people(10_000))).key
        history = await stack.finished(key)
        assert (history.counts[Status.SENT], history.verdict) == (10_000, Verdict.ALL_REACHED)
        assert len(set(courier.addresses)) == len(courier.addresses) == 10_000

    async def test_a_key_of_a_shard_that_does_not_exist_is_refused(self, stack: Stack) -> None:
        key = HistoryKey(5, "7", 1795240000000000000)
        with pytest.raises(Invalid):
            await stack.deliver(person(1), history_key=key)
        with pytest.raises(NotFound):
            await stack.history(key)
        with pytest.raises(NotFound):
            await stack.deliveries.reschedule(key, TENANT, stack.now())
        with pytest.raises(NotFound):
            await stack.deliveries.cancel(key, TENANT)
