"""Couriers that share the work, crash, take over from each other and stop."""

from dataclasses import replace
from datetime import timedelta

import pytest

from core.channels import Channels
from core.port import NEVER, Message, Outcome
from core.store import Store
from core.words import Status, Verdict
from tests.core.deliveries import SECOND, Gate, has_reported, slowly, statuses
from tests.core.house import HOUR, QUICK, House, Played, people, person, sent
from tests.servers import on_both_servers
from tests.waiting import until


class TestSharing:
    @on_both_servers
    @pytest.mark.row("D-13", "D-19")
    async def test_many_processes_share_a_delivery_and_nothing_is_sent_twice(self, house: House) -> None:
        couriers = [Played(parcel=10, answer=slowly) for _ in range(4)]
        stores = [await Store.open(house.server.url) for _ in couriers]
        for courier, store in zip(couriers, stores, strict=True):
            await house.courier(courier, replace(QUICK, side_by_side=8), store)
        key = (await house.deliver(*people(400))).key
        told = await house.finished(key)
        assert told.counts[Status.SENT] == 400
        addresses = [address for courier in couriers for address in courier.addresses]
        assert len(addresses) == len(set(addresses)) == 400
        assert all(len(courier.addresses) >= 20 for courier in couriers)
        await house.end_everything()
        for store in stores:
            await store.close()

    @pytest.mark.row("D-19")
    async def test_a_new_channel_is_known_by_its_courier_being_started(self, house: House) -> None:
        assert "pigeon" not in (await Channels(house.store, ()).read()).names
        await house.courier(Played("pigeon", parcel=7))
        channels = Channels(house.store, ())
        register = await channels.read()
        assert "pigeon" in register.names
        assert register.parcel_sizes["pigeon"] == 7
        told = await house.finished((await house.deliver(person(1, "pigeon"), channels=("pigeon",))).key)
        assert told.verdict is Verdict.ALL_REACHED

    @pytest.mark.row("D-18", "D-19")
    async def test_a_courier_that_crashed_stops_nobody_else_and_the_next_one_takes_over(self, house: House) -> None:
        stuck = Played("vk", answer=Gate())
        abandoned = await house.courier(stuck, replace(QUICK, lease=0.5 * SECOND))
        await house.courier(Played("sms"))
        key = (await house.deliver(person(1, "vk", "sms"), channels=("vk", "sms"))).key
        await until(lambda: stuck.attempted)
        house.abandon(abandoned)
        await until(lambda: has_reported(house, key, 1))
        assert list((await house.history(key)).recipients[0].received_in) == ["sms"]
        successor = Played("vk")
        await house.courier(successor)
        assert (await house.finished(key)).verdict is Verdict.ALL_REACHED
        assert successor.attempted[0].random_id() == stuck.attempted[0].random_id()

    @pytest.mark.row("D-38")
    async def test_who_takes_over_where_nothing_is_remembered_says_unknown_and_sends_the_rest(
        self, house: House
    ) -> None:
        stuck = Played(answer=Gate(), remembers=NEVER)
        abandoned = await house.courier(stuck, replace(QUICK, lease=0.5 * SECOND, side_by_side=2))
        key = (await house.deliver(*people(5))).key
        await until(lambda: len(stuck.attempted) == 2)
        house.abandon(abandoned)
        successor = Played(remembers=NEVER)
        await house.courier(successor)
        assert statuses(await house.finished(key)) == {1: "unknown", 2: "unknown", 3: "sent", 4: "sent", 5: "sent"}
        assert sorted(successor.addresses) == ["p3", "p4", "p5"]

    @pytest.mark.row("D-38")
    async def test_after_several_crashes_the_first_attempt_decides_what_the_provider_may_have_forgotten(
        self, house: House
    ) -> None:
        key = (await house.deliver(person(1))).key
        attempted = [await crash_over_the_only_message(house, remembers=HOUR) for _ in range(2)]
        assert attempted[0].random_id() == attempted[1].random_id()
        late = Played(remembers=HOUR)
        await house.courier(late)
        assert statuses(await house.finished(key)) == {1: "unknown"}
        assert late.attempted == []

    @pytest.mark.row("D-34")
    async def test_one_slow_delivery_delays_no_other(self, house: House) -> None:
        gate = Gate()

        async def answer(message: Message) -> Outcome:
            return await gate(message) if message.text == "slow" else sent(message)

        await house.courier(Played(answer=answer))
        slow = (await house.deliver(*people(3), text="slow")).key
        quick = (await house.deliver(*people(3), text="quick")).key
        await house.finished(quick, within=2)
        gate.opened.set()
        await house.finished(slow)


async def crash_over_the_only_message(house: House, remembers: timedelta) -> Message:
    """A courier begins its attempt and is gone; forty minutes pass."""
    stuck = Played(answer=Gate(), remembers=remembers)
    abandoned = await house.courier(stuck)
    await until(lambda: stuck.attempted)
    house.abandon(abandoned)
    house.passes(HOUR * 2 / 3)
    return stuck.attempted[0]


class TestStopping:
    @pytest.mark.row("D-19")
    async def test_a_courier_that_stops_finishes_its_attempts_and_returns_the_rest_unattempted(
        self, house: House
    ) -> None:
        gate = Gate()
        courier = Played(answer=gate)
        runtime = await house.courier(courier, replace(QUICK, side_by_side=3))
        key = (await house.deliver(*people(10))).key
        await until(lambda: len(courier.attempted) == 3)
        runtime.stop()
        gate.opened.set()
        await house.stop(runtime)
        told = await house.history(key)
        assert (told.counts[Status.SENT], told.counts[Status.QUEUED]) == (3, 7)
        (task,) = await house.take("echo")
        assert (task.attempts, task.left) == (1, 7)
        await house.queue.release(task)
        successor = Played()
        await house.courier(successor)
        await house.finished(key)
        assert not set(successor.addresses) & set(courier.addresses)
