"""Courier processes that share deliveries, crash, take over and stop."""

from dataclasses import replace
from datetime import timedelta

from core.deliveries.channels import Channels
from core.model.states import Status, Verdict
from core.redis.store import Store
from couriers.sending.interface import NEVER, Message, Outcome
from tests.support.delivery_progress import SECOND, Gate, has_reported, slowly, statuses
from tests.support.servers import on_both_servers
from tests.support.stack import HOUR, QUICK, FakeCourier, Stack, people, person, sent
from tests.support.waiting import until


class TestSharing:
    @on_both_servers
    async def test_many_processes_share_a_delivery_and_nothing_is_sent_twice(self, stack: Stack) -> None:
        couriers = [FakeCourier(parcel=10, respond=slowly) for _ in range(4)]
        stores = [await Store.open(stack.server.url) for _ in couriers]
        for courier, store in zip(couriers, stores, strict=True):
            await stack.courier(courier, replace(QUICK, concurrency=8), store)
        key = (await stack.deliver(*people(400))).key
        history = await stack.finished(key)
        assert history.counts[Status.SENT] == 400
        addresses = [address for courier in couriers for address in courier.addresses]
        assert len(addresses) == len(set(addresses)) == 400
        assert all(len(courier.addresses) >= 20 for courier in couriers)
        await stack.end_everything()
        for store in stores:
            await store.close()

    async def test_starting_a_courier_registers_its_channel(self, stack: Stack) -> None:
        assert "pigeon" not in (await Channels(stack.store, ()).read()).names
        await stack.courier(FakeCourier("pigeon", parcel=7))
        channels = Channels(stack.store, ())
        register = await channels.read()
        assert "pigeon" in register.names
        assert register.parcel_sizes["pigeon"] == 7
        history = await stack.finished((await stack.deliver(person(1, "pigeon"), channels=("pigeon",))).key)
        assert history.verdict is Verdict.ALL_REACHED

    async def test_a_crashed_courier_stops_no_other_channel_and_the_next_courier_takes_over(self, stack: Stack) -> None:
        stuck = FakeCourier("vk", respond=Gate())
        abandoned = await stack.courier(stuck, replace(QUICK, lease=0.5 * SECOND))
        await stack.courier(FakeCourier("sms"))
        key = (await stack.deliver(person(1, "vk", "sms"), channels=("vk", "sms"))).key
        await until(lambda: stuck.attempted)
        stack.abandon(abandoned)
        await until(lambda: has_reported(stack, key, 1))
        assert list((await stack.history(key)).recipients[0].received_in) == ["sms"]
        successor = FakeCourier("vk")
        await stack.courier(successor)
        assert (await stack.finished(key)).verdict is Verdict.ALL_REACHED
        assert successor.attempted[0].random_id() == stuck.attempted[0].random_id()

    async def test_without_repeat_protection_the_next_courier_reports_unknown_and_sends_the_rest(
        self, stack: Stack
    ) -> None:
        stuck = FakeCourier(respond=Gate(), remembers=NEVER)
        abandoned = await stack.courier(stuck, replace(QUICK, lease=0.5 * SECOND, concurrency=2))
        key = (await stack.deliver(*people(5))).key
        await until(lambda: len(stuck.attempted) == 2)
        stack.abandon(abandoned)
        successor = FakeCourier(remembers=NEVER)
        await stack.courier(successor)
        assert statuses(await stack.finished(key)) == {1: "unknown", 2: "unknown", 3: "sent", 4: "sent", 5: "sent"}
        assert sorted(successor.addresses) == ["p3", "p4", "p5"]

    async def test_after_several_crashes_the_age_counts_from_the_first_attempt(self, stack: Stack) -> None:
        key = (await stack.deliver(person(1))).key
        attempted = [await crash_during_the_attempt(stack, remembers=HOUR) for _ in range(2)]
        assert attempted[0].random_id() == attempted[1].random_id()
        late = FakeCourier(remembers=HOUR)
        await stack.courier(late)
        assert statuses(await stack.finished(key)) == {1: "unknown"}
        assert late.attempted == []

    async def test_one_slow_delivery_delays_no_other(self, stack: Stack) -> None:
        gate = Gate()

        async def respond(message: Message) -> Outcome:
            return await gate(message) if message.text == "slow" else sent(message)

        await stack.courier(FakeCourier(respond=respond))
        slow = (await stack.deliver(*people(3), text="slow")).key
        quick = (await stack.deliver(*people(3), text="quick")).key
        await stack.finished(quick)
        gate.opened.set()
        await stack.finished(slow)


async def crash_during_the_attempt(stack: Stack, remembers: timedelta) -> Message:
    """A courier starts its attempt and crashes; forty minutes pass."""
    stuck = FakeCourier(respond=Gate(), remembers=remembers)
    abandoned = await stack.courier(stuck)
    await until(lambda: stuck.attempted)
    stack.abandon(abandoned)
    stack.advance_clock(HOUR * 2 / 3)
    return stuck.attempted[0]


class TestStopping:
    async def test_a_courier_that_stops_finishes_its_attempts_and_returns_the_rest_unattempted(
        self, stack: Stack
    ) -> None:
        gate = Gate()
        courier = FakeCourier(respond=gate)
        runtime = await stack.courier(courier, replace(QUICK, concurrency=3))
        key = (await stack.deliver(*people(10))).key
        await until(lambda: len(courier.attempted) == 3)
        runtime.stop()
        gate.opened.set()
        await stack.stop(runtime)
        history = await stack.history(key)
        assert (history.counts[Status.SENT], history.counts[Status.QUEUED]) == (3, 7)
        (task,) = await stack.take("echo")
        assert (task.attempts, task.left) == (1, 7)
        await stack.queue.release(task)
        successor = FakeCourier()
        await stack.courier(successor)
        await stack.finished(key)
        assert not set(successor.addresses) & set(courier.addresses)
