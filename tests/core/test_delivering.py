"""The courier runtime: every outcome of a courier, waits, cancelling, stopping, sharing the work."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from core.channels import Channels
from core.errors import Invalid
from core.orders import History, HistoryKey, Id, Recipient
from core.port import (
    FOREVER,
    NEVER,
    Deferred,
    Halted,
    Message,
    Outcome,
    Rejected,
    Scope,
    Sent,
    Split,
    Unknown,
)
from core.retry import Backoff
from core.store import Store
from core.words import DeliveryState, Reason, Status, Verdict
from tests.core.house import HOUR, QUICK, TENANT, House, Played, people, person, sent
from tests.servers import on_both_servers
from tests.waiting import until

SECOND = timedelta(seconds=1)
GONE = Rejected(Reason.RECIPIENT_UNREACHABLE)


def by_address(**outcomes: Outcome) -> Callable[[Message], Outcome]:
    """The outcome of an address, Sent for all others."""
    return lambda message: outcomes.get(message.address) or sent(message)


def statuses(history: History, channel: str = "echo") -> dict[Id, Status]:
    return {record.id: record.outcomes[channel].status for record in history.recipients}


class Gate:
    """A provider that answers when it is told to."""

    def __init__(self, then: Callable[[Message], Outcome] = sent) -> None:
        self.opened = asyncio.Event()
        self._then = then

    async def __call__(self, message: Message) -> Outcome:
        await self.opened.wait()
        return self._then(message)


class TestVerdicts:
    """D-17: the five things a sender is told."""

    pytestmark = pytest.mark.row("D-17")

    async def test_scheduled_for_a_time(self, house: House) -> None:
        key = (await house.deliver(person(1), deliver_at=house.now() + HOUR)).key
        assert (await house.history(key)).verdict is Verdict.SCHEDULED

    async def test_everybody_was_reached(self, house: House) -> None:
        await house.courier(Played())
        key = (await house.deliver(*people(3))).key
        assert (await house.finished(key)).verdict is Verdict.ALL_REACHED

    @pytest.mark.row("D-11")
    async def test_everybody_who_can_be_reached_in_any_channel_was(self, house: House) -> None:
        await house.courier(Played("vk"))
        await house.courier(Played("sms"))
        key = (await house.deliver(person(1, "vk"), person(2, "sms"), Recipient(3), channels=("vk", "sms"))).key
        assert (await house.finished(key)).verdict is Verdict.ALL_REACHED

    async def test_somebody_was_reached_but_a_courier_did_not_report(self, house: House) -> None:
        await house.courier(Played("vk"))
        key = (await house.deliver(person(1, "vk", "sms"), person(2, "sms"), channels=("vk", "sms"))).key
        await until(lambda: has_reported(house, key, 1))
        told = await house.history(key)
        assert (told.verdict, told.channels["sms"].state) == (Verdict.PARTLY, "pending")

    async def test_nothing_worked(self, house: House) -> None:
        await house.courier(Played(answer=lambda message: GONE))
        key = (await house.deliver(*people(2))).key
        assert (await house.finished(key)).verdict is Verdict.NOTHING_WORKED

    @pytest.mark.row("D-12")
    async def test_nobody_has_a_contact_and_that_is_as_it_should_be(self, house: House) -> None:
        accepted = await house.deliver(Recipient(1), Recipient(2, contacts={"vk": ["1"]}))
        told = await house.history(accepted.key)
        assert (told.verdict, told.state) == (Verdict.NOBODY_TO_REACH, DeliveryState.FINISHED)


async def has_reported(house: House, key: HistoryKey, count: int) -> bool:
    return (await house.history(key)).reported >= count


class TestOutcomes:
    @pytest.mark.row("D-11", "D-20")
    async def test_nobody_is_lost_because_of_another(self, house: House) -> None:
        outcomes = by_address(p2=GONE, p3=Rejected(Reason.PRIVACY), p4=Unknown("broken"), p5=Deferred(Reason.THROTTLED))
        courier = Played(answer=outcomes, remembers=NEVER)
        await house.courier(courier)
        key = (await house.deliver(*people(6))).key
        told = await house.finished(key)
        assert statuses(told) == {1: "sent", 2: "failed", 3: "failed", 4: "unknown", 5: "failed", 6: "sent"}
        reasons = {record.id: record.outcomes["echo"].reason for record in told.recipients}
        assert reasons == {1: None, 2: "recipient_unreachable", 3: "privacy", 4: "crashed", 5: "throttled", 6: None}
        assert courier.addresses.count("p5") == QUICK.backoff.attempts
        assert told.recipients[4].outcomes["echo"].attempts == QUICK.backoff.attempts
        assert told.verdict is Verdict.PARTLY

    @pytest.mark.row("D-38")
    async def test_an_unclear_end_is_unknown_at_once_where_a_repeat_could_double(self, house: House) -> None:
        courier = Played(answer=lambda message: Unknown(), remembers=NEVER)
        await house.courier(courier)
        told = await house.finished((await house.deliver(person(1))).key)
        assert statuses(told) == {1: "unknown"}
        assert courier.addresses == ["p1"]

    @pytest.mark.row("D-38")
    async def test_an_unclear_end_is_repeated_with_the_same_random_id_where_the_provider_remembers(
        self, house: House
    ) -> None:
        first = asyncio.Event()

        def answer(message: Message) -> Outcome:
            if first.is_set():
                return Sent("known")
            first.set()
            return Unknown()

        courier = Played(answer=answer)
        await house.courier(courier)
        assert statuses(await house.finished((await house.deliver(person(1))).key)) == {1: "sent"}
        assert len(courier.attempted) == 2
        assert len({message.random_id() for message in courier.attempted}) == 1

    @pytest.mark.row("D-38")
    async def test_it_is_unknown_once_the_provider_may_have_forgotten(self, house: House) -> None:
        courier = Played(answer=lambda message: Unknown(), remembers=timedelta(milliseconds=20))
        manner = replace(QUICK, backoff=replace(QUICK.backoff, first=SECOND, longest=SECOND))
        await house.courier(courier, manner)
        assert statuses(await house.finished((await house.deliver(person(1))).key)) == {1: "unknown"}
        assert len(courier.attempted) == 1

    async def test_a_courier_that_raises_has_made_an_unclear_attempt(self, house: House) -> None:
        def answer(message: Message) -> Outcome:
            raise RuntimeError("a fault of the courier")

        await house.courier(Played(answer=answer, remembers=NEVER))
        assert statuses(await house.finished((await house.deliver(person(1))).key)) == {1: "unknown"}

    @pytest.mark.row("D-21")
    async def test_a_refused_batch_is_halved_down_to_the_one_that_is_not_wanted(self, house: House) -> None:
        class Picky(Played):
            async def attempt(self, messages):  # type: ignore[no-untyped-def]
                self.attempted += messages
                if any(message.address == "p7" for message in messages):
                    return [Split(GONE)] * len(messages)
                return [sent(message) for message in messages]

        courier = Picky(batch=16, parcel=16)
        await house.courier(courier)
        told = await house.finished((await house.deliver(*people(16))).key)
        assert statuses(told) == {number: "failed" if number == 7 else "sent" for number in range(1, 17)}
        assert all(len({m.random_id() for m in courier.attempted if m.address == f"p{n}"}) == 1 for n in range(1, 17))

    @pytest.mark.row("D-21", "D-38")
    async def test_a_batch_that_stays_unclear_is_repeated_in_halves_down_to_the_one_that_has_no_answer(
        self, house: House
    ) -> None:
        """All of them were repeated together, and all of them were unknown in the end."""
        batches: list[list[str]] = []

        class Poisoned(Played):
            async def attempt(self, messages: Sequence[Message]) -> Sequence[Outcome]:
                batches.append([message.address for message in messages])
                poisoned = any(message.address == "p3" for message in messages)
                return [Unknown() if poisoned else sent(message) for message in messages]

        fifth = SECOND / 5
        await house.courier(Poisoned(batch=8, parcel=8), replace(QUICK, backoff=Backoff(fifth, fifth, 4)))
        key = (await house.deliver(*people(8))).key
        told = await house.finished(key)
        assert statuses(told) == {number: "unknown" if number == 3 else "sent" for number in range(1, 9)}
        assert [len(batch) for batch in batches if "p3" in batch] == [8, 4, 2, 1]
        assert len(batches) == 7

    async def test_an_account_that_is_halted_stops_its_courier_and_keeps_its_tasks(self, house: House) -> None:
        runtime = await house.courier(Played(answer=lambda message: Halted("session revoked")))
        key = (await house.deliver(*people(3))).key
        await until(lambda: runtime.halted)
        await house.stop(runtime)
        assert statuses(await house.history(key)) == {1: "queued", 2: "queued", 3: "queued"}
        await house.courier(Played())
        assert (await house.finished(key)).verdict is Verdict.ALL_REACHED

    async def test_random_ids_differ_between_deliveries_recipients_contacts_and_channels(self, house: House) -> None:
        couriers = [Played("vk"), Played("sms")]
        for courier in couriers:
            await house.courier(courier)
        everybody = [person(1, "sms", vk=["a", "b"]), person("x", "vk", "sms")]
        for _ in range(2):
            await house.finished((await house.deliver(*everybody, channels=("vk", "sms"))).key)
        ids = [message.random_id() for courier in couriers for message in courier.attempted]
        assert len(ids) == len(set(ids)) == 10


class TestWaits:
    @on_both_servers
    @pytest.mark.row("D-23")
    async def test_everybody_who_can_be_served_now_is_served_before_those_who_must_wait(self, house: House) -> None:
        waited: set[str] = set()

        def answer(message: Message) -> Outcome:
            if message.address in {"p1", "p2"} and message.address not in waited:
                waited.add(message.address)
                return Deferred(Reason.THROTTLED, 0.4 * SECOND, Scope.RECIPIENT)
            return sent(message)

        courier = Played(answer=answer)
        await house.courier(courier, replace(QUICK, side_by_side=2))
        told = await house.finished((await house.deliver(*people(20))).key)
        assert told.verdict is Verdict.ALL_REACHED
        assert set(courier.addresses[-2:]) == {"p1", "p2"}
        assert len(courier.addresses) == 22

    @pytest.mark.row("D-22", "D-23")
    async def test_a_wait_of_a_chat_holds_this_chat_in_other_deliveries_and_nobody_else(self, house: House) -> None:
        slow = asyncio.Event()

        def answer(message: Message) -> Outcome:
            if message.address == "p1" and not slow.is_set():
                slow.set()
                return Deferred(Reason.THROTTLED, 0.5 * SECOND, Scope.CHAT)
            return sent(message)

        courier = Played(answer=answer)
        await house.courier(courier)
        first = (await house.deliver(person(1))).key
        await slow.wait()
        await until(lambda: waits(house))
        second = (await house.deliver(*people(3), text="second")).key
        await house.finished(first)
        await house.finished(second)
        assert courier.addresses[:3] == ["p1", "p2", "p3"] or courier.addresses[:3] == ["p1", "p3", "p2"]
        assert courier.addresses[3:] == ["p1", "p1"]

    @pytest.mark.row("D-22")
    async def test_a_wait_of_the_account_holds_all_its_processes_and_no_other_account(self, house: House) -> None:
        flooded = asyncio.Event()

        def answer(message: Message) -> Outcome:
            if flooded.is_set():
                return sent(message)
            flooded.set()
            return Deferred(Reason.THROTTLED, 0.6 * SECOND, Scope.ACCOUNT)

        first, second = Played(answer=answer, account="one"), Played(answer=answer, account="one")
        await house.courier(first)
        await house.courier(second)
        started = house.now()
        key = (await house.deliver(person(1))).key
        await until(lambda: waits(house))
        other = (await house.deliver(person(2))).key
        await house.finished(key)
        await house.finished(other)
        assert house.now() - started >= 0.6 * SECOND
        assert len(first.attempted) + len(second.attempted) == 3

    @pytest.mark.row("D-22")
    async def test_a_wait_named_by_the_provider_costs_no_attempt(self, house: House) -> None:
        floods = iter(range(10))

        def answer(message: Message) -> Outcome:
            if next(floods, None) is not None:
                return Deferred(Reason.THROTTLED, timedelta(milliseconds=10))
            return sent(message)

        await house.courier(Played(answer=answer))
        told = await house.finished((await house.deliver(person(1))).key)
        assert statuses(told) == {1: "sent"}
        assert told.recipients[0].outcomes["echo"].attempts == 1


async def waits(house: House, tube: str = "echo") -> bool:
    return bool(await house.redis.exists(f"queue:{{0}}:waits:{tube}"))


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
        assert "pigeon" not in await Channels(house.store, ()).known()
        await house.courier(Played("pigeon", parcel=7))
        channels = Channels(house.store, ())
        assert "pigeon" in await channels.known()
        assert await channels.parcel_sizes(["pigeon"]) == {"pigeon": 7}
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


async def slowly(message: Message) -> Outcome:
    """As a provider does: not before the loop has turned."""
    await asyncio.sleep(0.002)
    return sent(message)


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


class TestCancelling:
    @on_both_servers
    @pytest.mark.row("D-42")
    async def test_the_answer_says_exactly_who_had_already_been_sent_to(self, house: House) -> None:
        await house.courier(Played("vk", answer=by_address(p2=Deferred(Reason.THROTTLED, HOUR), p3=GONE)))
        key = (await house.deliver(*people(5, "vk"), channels=("vk",))).key
        await until(lambda: settled(house, key, 4))
        answer = await house.histories.cancel(key, TENANT)
        assert (answer.cancelled, sorted(answer.already_sent), list(answer.in_flight)) == (1, [1, 4, 5], [])
        told = await house.finished(key)
        assert statuses(told, "vk") == {1: "sent", 2: "cancelled", 3: "failed", 4: "sent", 5: "sent"}
        assert (await house.histories.cancel(key, TENANT)).cancelled == 0

    @on_both_servers
    @pytest.mark.row("D-42", "D-38")
    async def test_who_has_an_end_keeps_it_when_he_is_chosen_while_his_parcel_goes_on(self, house: House) -> None:
        """It was told as cancelled, even what had been sent."""
        answers = by_address(p2=Deferred(Reason.THROTTLED, HOUR), p3=Unknown(), p4=GONE)
        await house.courier(Played("vk", answer=answers, remembers=NEVER))
        key = (await house.deliver(*people(4, "vk"), channels=("vk",))).key
        await until(lambda: settled(house, key, 2))
        answer = await house.histories.cancel(key, TENANT, ["1", "3", "4"])
        assert (answer.cancelled, list(answer.already_sent), list(answer.in_flight)) == (0, [1], [3])
        told = await house.history(key)
        assert statuses(told, "vk") == {1: "sent", 2: "queued", 3: "unknown", 4: "failed"}
        assert (told.counts["reached"], told.counts[Status.CANCELLED]) == (1, 0)

    @on_both_servers
    @pytest.mark.row("D-38", "D-42")
    @pytest.mark.parametrize("chosen", [["2", "3"], []])
    async def test_who_may_have_been_sent_to_is_unknown_when_nobody_tries_again(
        self, house: House, chosen: list[str]
    ) -> None:
        """The repeat with the same random id would have told; without it nobody can tell."""
        answers = by_address(p2=Deferred(Reason.THROTTLED, HOUR), p3=Unknown())
        await house.courier(Played(answer=answers), replace(QUICK, backoff=Backoff(HOUR, HOUR)))
        key = (await house.deliver(*people(4))).key
        await until(lambda: settled(house, key, 2))
        answer = await house.histories.cancel(key, TENANT, chosen)
        assert (answer.cancelled, sorted(set(answer.already_sent) - {1, 4}), list(answer.in_flight)) == (1, [], [3])
        told = await house.finished(key)
        assert statuses(told) == {1: "sent", 2: "cancelled", 3: "unknown", 4: "sent"}
        assert told.recipients[2].outcomes["echo"].reason == Reason.PROVIDER_DOWN

    @pytest.mark.row("D-38", "D-42")
    @pytest.mark.parametrize("chosen", [["1", "2", "3"], []])
    async def test_who_is_cancelled_while_an_attempt_ends_unclear_is_unknown(
        self, house: House, chosen: list[str]
    ) -> None:
        gate = Gate(by_address(p1=Unknown(), p2=Deferred(Reason.THROTTLED, HOUR)))
        courier = Played(answer=gate)
        await house.courier(courier, replace(QUICK, backoff=Backoff(HOUR, HOUR)))
        key = (await house.deliver(*people(3))).key
        await until(lambda: len(courier.attempted) == 3)
        cancelling = asyncio.create_task(house.histories.cancel(key, TENANT, chosen))
        await until(lambda: is_flagged(house, key, "skip" if chosen else "cancel"))
        gate.opened.set()
        answer = await cancelling
        assert (answer.cancelled, list(answer.already_sent), list(answer.in_flight)) == (1, [3], [1])
        assert statuses(await house.finished(key)) == {1: "unknown", 2: "cancelled", 3: "sent"}
        assert len(courier.attempted) == 3

    @pytest.mark.row("D-38")
    async def test_who_may_have_been_sent_to_is_unknown_when_it_is_too_late_to_try_again(self, house: House) -> None:
        answers = by_address(p1=Unknown(), p2=Deferred(Reason.THROTTLED, HOUR))
        await house.courier(Played(answer=answers), replace(QUICK, backoff=Backoff(HOUR, HOUR)))
        key = (await house.deliver(*people(3), expires_at=house.now() + HOUR / 4)).key
        await until(lambda: settled(house, key, 1))
        house.passes(HOUR / 2)
        assert statuses(await house.finished(key)) == {1: "unknown", 2: "expired", 3: "sent"}

    @pytest.mark.row("D-42")
    @pytest.mark.parametrize("scheduled", [True, False])
    async def test_chosen_recipients_get_nothing_and_the_others_do(self, house: House, scheduled: bool) -> None:
        at = house.now() + HOUR if scheduled else None
        key = (await house.deliver(*people(4, "vk", "sms"), channels=("vk", "sms"), deliver_at=at)).key
        assert (await house.histories.cancel(key, TENANT, ["2", "3"])).cancelled == 2
        couriers = [Played("vk"), Played("sms")]
        for courier in couriers:
            await house.courier(courier)
        if scheduled:
            house.passes(HOUR)
        told = await house.finished(key)
        assert statuses(told, "sms") == {1: "sent", 2: "cancelled", 3: "cancelled", 4: "sent"}
        assert all(sorted(courier.addresses) == ["p1", "p4"] for courier in couriers)
        assert told.state is DeliveryState.FINISHED

    @pytest.mark.row("D-42")
    @pytest.mark.parametrize("scheduled", [True, False])
    async def test_cancelling_all_recipients_one_by_one_ends_the_delivery(self, house: House, scheduled: bool) -> None:
        at = house.now() + HOUR if scheduled else None
        key = (await house.deliver(*people(2), deliver_at=at)).key
        for number in (1, 2):
            await house.histories.cancel(key, TENANT, [str(number)])
        told = await house.history(key)
        assert (told.state, told.counts[Status.CANCELLED]) == (DeliveryState.CANCELLED, 2)

    @pytest.mark.row("D-42")
    @pytest.mark.parametrize("remembers", [FOREVER, NEVER])
    async def test_a_recipient_cancelled_while_he_is_put_off_is_not_tried_again(
        self, house: House, remembers: timedelta
    ) -> None:
        """I11. His parcel was under way when he was cancelled; he was put off, and the next holder did not know."""
        gate = Gate(by_address(p1=Deferred(Reason.THROTTLED, 0.2 * SECOND)))
        courier = Played(answer=gate, remembers=remembers)
        await house.courier(courier)
        key = (await house.deliver(*people(2))).key
        await until(lambda: len(courier.attempted) == 2)
        cancelling = asyncio.create_task(house.histories.cancel(key, TENANT, ["1"]))
        await until(lambda: is_flagged(house, key))
        gate.opened.set()
        assert (await cancelling).cancelled == 1
        told = await house.finished(key)
        assert statuses(told) == {1: "cancelled", 2: "sent"}
        assert courier.addresses.count("p1") == 1

    @pytest.mark.row("D-42")
    async def test_a_recipient_cancelled_in_the_hands_of_one_who_crashes_is_not_sent_to_by_the_next(
        self, house: House
    ) -> None:
        stuck = Played(answer=Gate())
        abandoned = await house.courier(stuck, replace(QUICK, lease=0.5 * SECOND, side_by_side=1))
        key = (await house.deliver(*people(3))).key
        await until(lambda: stuck.attempted)
        house.abandon(abandoned)
        answer = await house.histories.cancel(key, TENANT, ["3"])
        assert answer.cancelled + len(answer.in_flight) == 1
        successor = Played()
        await house.courier(successor)
        told = await house.finished(key)
        assert "p3" not in successor.addresses
        assert statuses(told)[3] in {"cancelled", "unknown"}

    @pytest.mark.row("D-42")
    async def test_cancelling_while_attempts_are_under_way_lets_them_tell_their_end(self, house: House) -> None:
        gate = Gate()

        async def answer(message: Message) -> Outcome:
            """Not at once: what Redis answered the courier meanwhile reaches it before its next attempt."""
            await gate(message)
            return await slowly(message)

        courier = Played(answer=answer)
        await house.courier(courier, replace(QUICK, side_by_side=2))
        key = (await house.deliver(*people(6))).key
        await until(lambda: len(courier.attempted) == 2)
        cancelling = asyncio.create_task(house.histories.cancel(key, TENANT))
        await until(lambda: is_in_state(house, key, DeliveryState.CANCELLED))
        (lease,) = await leases(house)
        await until(lambda: has_moved(house, lease))
        gate.opened.set()
        cancelled = await cancelling
        told = await house.finished(key)
        sent_to = [number for number, status in statuses(told).items() if status == "sent"]
        assert sorted(cancelled.already_sent) == sent_to
        assert cancelled.cancelled == 6 - len(sent_to)
        assert len(courier.attempted) == len(sent_to) < 6

    @pytest.mark.row("D-42")
    async def test_all_deliveries_of_a_lane_a_tag_a_sender_or_to_a_user_are_cancelled_together(
        self, house: House
    ) -> None:
        at = house.now() + HOUR
        wanted: dict[str, tuple[str, dict[str, Any]]] = {
            "lane": ("exam", {"lane": "exam"}),
            "tag": ("urgent", {"tags": ["other", "urgent"]}),
            "kind_prefix": ("remind", {"kind": "reminder"}),
        }
        for field, (value, options) in wanted.items():
            for number in range(3):
                await house.deliver(person(number), deliver_at=at, **options)
            await house.deliver(person(9), deliver_at=at)
            assert await house.histories.cancel_by(TENANT, field, value) == 3
        assert await house.histories.cancel_by(TENANT, "user", "9") == 3
        assert await house.histories.cancel_by("another", "sender", "7") == 0
        await house.deliver(person(1), deliver_at=at)
        assert await house.histories.cancel_by(TENANT, "sender", "7") == 1


async def settled(house: House, key: HistoryKey, count: int) -> bool:
    history = await house.history(key)
    taken = await house.redis.zcard("queue:{0}:lease")
    return not taken and sum(history.counts[status] for status in (Status.SENT, Status.FAILED)) >= count


async def is_flagged(house: House, key: HistoryKey, flag: str = "skip") -> bool:
    return bool(await house.redis.hexists(f"queue:{{0}}:task:{key.ns}.{key.sender}.echo.0", flag))


async def leases(house: House) -> list[float]:
    kept = (await house.dump()).get("queue:{0}:lease")
    return list(kept.value.values()) if kept else []


async def has_moved(house: House, lease: float) -> bool:
    """The courier has asked after its parcel since."""
    return await leases(house) != [lease]


async def is_in_state(house: House, key: HistoryKey, state: DeliveryState) -> bool:
    return (await house.history(key)).state is state


class TestTryingAgain:
    @on_both_servers
    @pytest.mark.row("D-40")
    async def test_only_the_failed_or_only_the_unknown_are_tried_again_with_new_random_ids(self, house: House) -> None:
        first = Played(answer=by_address(p1=GONE, p2=Unknown()), remembers=NEVER)
        running = await house.courier(first)
        key = (await house.deliver(*people(4))).key
        await house.finished(key)
        await house.stop(running)
        again = Played()
        await house.courier(again)
        assert await house.histories.retry(key, TENANT, [Status.FAILED]) == 1
        told = await house.finished(key)
        assert (statuses(told), again.addresses) == ({1: "sent", 2: "unknown", 3: "sent", 4: "sent"}, ["p1"])
        assert await house.histories.retry(key, TENANT, [Status.UNKNOWN]) == 1
        told = await house.finished(key)
        assert (told.verdict, again.addresses) == (Verdict.ALL_REACHED, ["p1", "p2"])
        before = {message.address: message.random_id() for message in first.attempted}
        assert all(message.random_id() != before[message.address] for message in again.attempted)
        assert await house.histories.retry(key, TENANT, [Status.FAILED, Status.UNKNOWN]) == 0

    @pytest.mark.row("D-40")
    async def test_what_failed_again_can_be_tried_a_third_time(self, house: House) -> None:
        courier = Played(answer=lambda message: GONE)
        await house.courier(courier)
        key = (await house.deliver(*people(2))).key
        await house.finished(key)
        for attempts in (4, 6):
            assert await house.histories.retry(key, TENANT, [Status.FAILED]) == 2
            await house.finished(key)
            assert len(courier.attempted) == attempts
        assert len({message.random_id() for message in courier.attempted}) == 6

    @pytest.mark.row("D-40")
    async def test_two_who_ask_at_once_queue_it_once(self, house: House) -> None:
        running = await house.courier(Played(answer=lambda message: GONE))
        key = (await house.deliver(*people(5))).key
        await house.finished(key)
        await house.stop(running)
        queued = await asyncio.gather(*(house.histories.retry(key, TENANT, [Status.FAILED]) for _ in range(10)))
        assert sorted(queued) == [0] * 9 + [5]

    @pytest.mark.row("D-40")
    async def test_only_failed_and_unknown_can_be_tried_again(self, house: House) -> None:
        key = (await house.deliver(person(1), deliver_at=house.now() + HOUR)).key
        for wrong in ([], [Status.SENT], [Status.FAILED, Status.CANCELLED]):
            with pytest.raises(Invalid):
                await house.histories.retry(key, TENANT, wrong)
        await house.histories.cancel(key, TENANT)
        assert await house.histories.retry(key, TENANT, [Status.FAILED]) == 0
