"""Every outcome of a courier's attempt, and what the sender is told in the end."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from core.orders import Recipient
from core.port import NEVER, Deferred, Halted, Message, Outcome, Rejected, Sent, Split, Unknown
from core.retry import Backoff
from core.words import DeliveryState, Reason, Verdict
from tests.core.deliveries import GONE, SECOND, by_address, has_reported, statuses
from tests.core.house import HOUR, QUICK, House, Played, people, person, sent
from tests.waiting import until


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
