"""Every outcome of a courier's attempt, and what the sender is told in the end."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from core.courier.interface import NEVER, Deferred, Halted, Message, Outcome, Rejected, Sent, Split, Unknown
from core.model.backoff import Backoff
from core.model.delivery import Recipient
from core.model.states import DeliveryState, Reason, Verdict
from tests.support.delivery_progress import GONE, SECOND, by_address, has_reported, statuses
from tests.support.stack import HOUR, QUICK, Played, Stack, people, person, sent
from tests.support.waiting import until


class TestVerdicts:
    """D-17: the five things a sender is told."""

    pytestmark = pytest.mark.row("D-17")

    async def test_scheduled_for_a_time(self, stack: Stack) -> None:
        key = (await stack.deliver(person(1), deliver_at=stack.now() + HOUR)).key
        assert (await stack.history(key)).verdict is Verdict.SCHEDULED

    async def test_everybody_was_reached(self, stack: Stack) -> None:
        await stack.courier(Played())
        key = (await stack.deliver(*people(3))).key
        assert (await stack.finished(key)).verdict is Verdict.ALL_REACHED

    @pytest.mark.row("D-11")
    async def test_everybody_who_can_be_reached_in_any_channel_was(self, stack: Stack) -> None:
        await stack.courier(Played("vk"))
        await stack.courier(Played("sms"))
        key = (await stack.deliver(person(1, "vk"), person(2, "sms"), Recipient(3), channels=("vk", "sms"))).key
        assert (await stack.finished(key)).verdict is Verdict.ALL_REACHED

    async def test_somebody_was_reached_but_a_courier_did_not_report(self, stack: Stack) -> None:
        await stack.courier(Played("vk"))
        key = (await stack.deliver(person(1, "vk", "sms"), person(2, "sms"), channels=("vk", "sms"))).key
        await until(lambda: has_reported(stack, key, 1))
        told = await stack.history(key)
        assert (told.verdict, told.channels["sms"].state) == (Verdict.PARTLY, "pending")

    async def test_nothing_worked(self, stack: Stack) -> None:
        await stack.courier(Played(answer=lambda message: GONE))
        key = (await stack.deliver(*people(2))).key
        assert (await stack.finished(key)).verdict is Verdict.NOTHING_WORKED

    @pytest.mark.row("D-12")
    async def test_nobody_has_a_contact_and_that_is_as_it_should_be(self, stack: Stack) -> None:
        accepted = await stack.deliver(Recipient(1), Recipient(2, contacts={"vk": ["1"]}))
        told = await stack.history(accepted.key)
        assert (told.verdict, told.state) == (Verdict.NOBODY_TO_REACH, DeliveryState.FINISHED)


class TestOutcomes:
    @pytest.mark.row("D-11", "D-20")
    async def test_nobody_is_lost_because_of_another(self, stack: Stack) -> None:
        outcomes = by_address(p2=GONE, p3=Rejected(Reason.PRIVACY), p4=Unknown("broken"), p5=Deferred(Reason.THROTTLED))
        courier = Played(answer=outcomes, remembers=NEVER)
        await stack.courier(courier)
        key = (await stack.deliver(*people(6))).key
        told = await stack.finished(key)
        assert statuses(told) == {1: "sent", 2: "failed", 3: "failed", 4: "unknown", 5: "failed", 6: "sent"}
        reasons = {record.id: record.outcomes["echo"].reason for record in told.recipients}
        assert reasons == {1: None, 2: "recipient_unreachable", 3: "privacy", 4: "crashed", 5: "throttled", 6: None}
        assert courier.addresses.count("p5") == QUICK.backoff.attempts
        assert told.recipients[4].outcomes["echo"].attempts == QUICK.backoff.attempts
        assert told.verdict is Verdict.PARTLY

    @pytest.mark.row("D-38")
    async def test_an_unclear_end_is_unknown_at_once_where_a_repeat_could_double(self, stack: Stack) -> None:
        courier = Played(answer=lambda message: Unknown(), remembers=NEVER)
        await stack.courier(courier)
        told = await stack.finished((await stack.deliver(person(1))).key)
        assert statuses(told) == {1: "unknown"}
        assert courier.addresses == ["p1"]

    @pytest.mark.row("D-38")
    async def test_an_unclear_end_is_repeated_with_the_same_random_id_where_the_provider_remembers(
        self, stack: Stack
    ) -> None:
        first = asyncio.Event()

        def answer(message: Message) -> Outcome:
            if first.is_set():
                return Sent("known")
            first.set()
            return Unknown()

        courier = Played(answer=answer)
        await stack.courier(courier)
        assert statuses(await stack.finished((await stack.deliver(person(1))).key)) == {1: "sent"}
        assert len(courier.attempted) == 2
        assert len({message.random_id() for message in courier.attempted}) == 1

    @pytest.mark.row("D-38")
    async def test_it_is_unknown_once_the_provider_may_have_forgotten(self, stack: Stack) -> None:
        courier = Played(answer=lambda message: Unknown(), remembers=timedelta(milliseconds=20))
        options = replace(QUICK, backoff=replace(QUICK.backoff, first=SECOND, longest=SECOND))
        await stack.courier(courier, options)
        assert statuses(await stack.finished((await stack.deliver(person(1))).key)) == {1: "unknown"}
        assert len(courier.attempted) == 1

    async def test_a_courier_that_raises_has_made_an_unclear_attempt(self, stack: Stack) -> None:
        def answer(message: Message) -> Outcome:
            raise RuntimeError("a fault of the courier")

        await stack.courier(Played(answer=answer, remembers=NEVER))
        assert statuses(await stack.finished((await stack.deliver(person(1))).key)) == {1: "unknown"}

    @pytest.mark.row("D-21")
    async def test_a_refused_batch_is_halved_down_to_the_one_that_is_not_wanted(self, stack: Stack) -> None:
        class Picky(Played):
            async def attempt(self, messages):  # type: ignore[no-untyped-def]
                self.attempted += messages
                if any(message.address == "p7" for message in messages):
                    return [Split(GONE)] * len(messages)
                return [sent(message) for message in messages]

        courier = Picky(batch=16, parcel=16)
        await stack.courier(courier)
        told = await stack.finished((await stack.deliver(*people(16))).key)
        assert statuses(told) == {number: "failed" if number == 7 else "sent" for number in range(1, 17)}
        assert all(len({m.random_id() for m in courier.attempted if m.address == f"p{n}"}) == 1 for n in range(1, 17))

    @pytest.mark.row("D-21", "D-38")
    async def test_a_batch_that_stays_unclear_is_repeated_in_halves_down_to_the_one_that_has_no_answer(
        self, stack: Stack
    ) -> None:
        """All of them were repeated together, and all of them were unknown in the end."""
        batches: list[list[str]] = []

        class Poisoned(Played):
            async def attempt(self, messages: Sequence[Message]) -> Sequence[Outcome]:
                batches.append([message.address for message in messages])
                poisoned = any(message.address == "p3" for message in messages)
                return [Unknown() if poisoned else sent(message) for message in messages]

        fifth = SECOND / 5
        await stack.courier(Poisoned(batch=8, parcel=8), replace(QUICK, backoff=Backoff(fifth, fifth, 4)))
        key = (await stack.deliver(*people(8))).key
        told = await stack.finished(key)
        assert statuses(told) == {number: "unknown" if number == 3 else "sent" for number in range(1, 9)}
        assert [len(batch) for batch in batches if "p3" in batch] == [8, 4, 2, 1]
        assert len(batches) == 7

    async def test_an_account_that_is_halted_stops_its_courier_and_keeps_its_tasks(self, stack: Stack) -> None:
        runtime = await stack.courier(Played(answer=lambda message: Halted("session revoked")))
        key = (await stack.deliver(*people(3))).key
        await until(lambda: runtime.halted)
        await stack.stop(runtime)
        assert statuses(await stack.history(key)) == {1: "queued", 2: "queued", 3: "queued"}
        await stack.courier(Played())
        assert (await stack.finished(key)).verdict is Verdict.ALL_REACHED

    async def test_random_ids_differ_between_deliveries_recipients_contacts_and_channels(self, stack: Stack) -> None:
        couriers = [Played("vk"), Played("sms")]
        for courier in couriers:
            await stack.courier(courier)
        everybody = [person(1, "sms", vk=["a", "b"]), person("x", "vk", "sms")]
        for _ in range(2):
            await stack.finished((await stack.deliver(*everybody, channels=("vk", "sms"))).key)
        ids = [message.random_id() for courier in couriers for message in courier.attempted]
        assert len(ids) == len(set(ids)) == 10
