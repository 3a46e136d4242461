"""Every outcome of an attempt, and the verdict that follows."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pytest

from core.model.clock import Backoff
from core.model.delivery import Recipient
from core.model.history_key import HistoryKey
from core.model.states import DeliveryState, Reason, Verdict
from couriers.sending.interface import NEVER, Deferred, Halted, Message, Outcome, Partly, Rejected, Sent, Split, Unknown
from tests.support.delivery_progress import GONE, SECOND, by_address, has_reported, statuses
from tests.support.stack import HOUR, QUICK, TENANT, FakeCourier, Stack, people, person, sent
from tests.support.waiting import until


class TestVerdicts:
    """D-17: one verdict for each situation."""

    async def test_a_delivery_that_is_not_due_is_scheduled(self, stack: Stack) -> None:
        key = (await stack.deliver(person(1), deliver_at=stack.now() + HOUR)).key
        assert (await stack.history(key)).verdict is Verdict.SCHEDULED

    async def test_all_recipients_were_reached(self, stack: Stack) -> None:
        await stack.courier(FakeCourier())
        key = (await stack.deliver(*people(3))).key
        assert (await stack.finished(key)).verdict is Verdict.ALL_REACHED

    async def test_recipients_without_contacts_do_not_count(self, stack: Stack) -> None:
        await stack.courier(FakeCourier("vk"))
        await stack.courier(FakeCourier("sms"))
        key = (await stack.deliver(person(1, "vk"), person(2, "sms"), Recipient(3), channels=("vk", "sms"))).key
        assert (await stack.finished(key)).verdict is Verdict.ALL_REACHED

    async def test_some_recipients_were_reached_and_a_channel_has_not_reported(self, stack: Stack) -> None:
        await stack.courier(FakeCourier("vk"))
        key = (await stack.deliver(person(1, "vk", "sms"), person(2, "sms"), channels=("vk", "sms"))).key
        await until(lambda: has_reported(stack, key, 1))
        history = await stack.history(key)
        assert (history.verdict, history.channels["sms"].state) == (Verdict.PARTLY, "pending")

    async def test_no_recipient_is_reached_yet(self, stack: Stack) -> None:
        """Regression: it was `partly`."""
        key = (await stack.deliver(*people(2, "vk", "sms"), channels=("vk", "sms"))).key
        assert (await stack.history(key)).verdict is Verdict.IN_PROGRESS
        await stack.courier(FakeCourier("vk", respond=lambda message: GONE))
        await until(lambda: has_reported(stack, key, 1))
        assert (await stack.history(key)).verdict is Verdict.IN_PROGRESS

    async def test_it_is_over_and_some_recipients_were_not_reached(self, stack: Stack) -> None:
        """Regression: it was `partly`, as if a courier had not reported."""
        await stack.courier(FakeCourier(respond=by_address(p2=GONE)))
        key = (await stack.deliver(*people(2))).key
        assert (await stack.finished(key)).verdict is Verdict.SOME_REACHED

    async def test_it_was_cancelled_before_any_recipient_was_reached(self, stack: Stack) -> None:
        """Regression: it was `nothing_worked`."""
        for deliver_at in (None, stack.now() + HOUR):
            key = (await stack.deliver(*people(2), deliver_at=deliver_at)).key
            await stack.deliveries.cancel(key, TENANT)
            assert (await stack.finished(key)).verdict is Verdict.CANCELLED

    async def test_it_was_cancelled_after_some_recipients_were_reached(self, stack: Stack) -> None:
        await stack.courier(FakeCourier(respond=by_address(p2=Deferred(Reason.THROTTLED, HOUR))))
        key = (await stack.deliver(*people(2))).key
        await until(lambda: is_reached(stack, key))
        await stack.deliveries.cancel(key, TENANT)
        assert (await stack.finished(key)).verdict is Verdict.SOME_REACHED

    async def test_nothing_worked(self, stack: Stack) -> None:
        await stack.courier(FakeCourier(respond=lambda message: GONE))
        key = (await stack.deliver(*people(2))).key
        assert (await stack.finished(key)).verdict is Verdict.NOTHING_WORKED

    async def test_no_recipient_has_a_contact(self, stack: Stack) -> None:
        accepted = await stack.deliver(Recipient(1), Recipient(2, contacts={"vk": ["1"]}))
        history = await stack.history(accepted.key)
        assert (history.verdict, history.state) == (Verdict.NOBODY_TO_REACH, DeliveryState.FINISHED)


class TestOutcomes:
    async def test_each_recipient_gets_its_own_outcome(self, stack: Stack) -> None:
        outcomes = by_address(p2=GONE, p3=Rejected(Reason.PRIVACY), p4=Unknown("broken"), p5=Deferred(Reason.THROTTLED))
        courier = FakeCourier(respond=outcomes, remembers=NEVER)
        await stack.courier(courier)
        key = (await stack.deliver(*people(6))).key
        history = await stack.finished(key)
        assert statuses(history) == {1: "sent", 2: "failed", 3: "failed", 4: "unknown", 5: "failed", 6: "sent"}
        reasons = {record.id: record.outcomes["echo"].reason for record in history.recipients}
        assert reasons == {1: None, 2: "recipient_unreachable", 3: "privacy", 4: "answer_lost", 5: "throttled", 6: None}
        assert courier.addresses.count("p5") == QUICK.backoff.attempts
        assert history.recipients[4].outcomes["echo"].attempts == QUICK.backoff.attempts
        assert history.verdict is Verdict.SOME_REACHED

    async def test_an_unclear_attempt_is_unknown_at_once_where_a_repeat_could_double_the_message(
        self, stack: Stack
    ) -> None:
        courier = FakeCourier(respond=lambda message: Unknown(), remembers=NEVER)
        await stack.courier(courier)
        history = await stack.finished((await stack.deliver(person(1))).key)
        assert statuses(history) == {1: "unknown"}
        assert courier.addresses == ["p1"]

    async def test_an_unclear_attempt_is_repeated_with_the_same_random_id_where_the_provider_remembers_it(
        self, stack: Stack
    ) -> None:
        first = asyncio.Event()

        def respond(message: Message) -> Outcome:
            if first.is_set():
                return Sent("known")
            first.set()
            return Unknown()

        courier = FakeCourier(respond=respond)
        await stack.courier(courier)
        assert statuses(await stack.finished((await stack.deliver(person(1))).key)) == {1: "sent"}
        assert len(courier.attempted) == 2
        assert len({message.random_id() for message in courier.attempted}) == 1

    async def test_an_unclear_attempt_is_unknown_once_the_provider_may_have_forgotten_the_random_id(
        self, stack: Stack
    ) -> None:
        courier = FakeCourier(respond=lambda message: Unknown(), remembers=timedelta(milliseconds=20))
        options = replace(QUICK, backoff=replace(QUICK.backoff, first=SECOND, longest=SECOND))
        await stack.courier(courier, options)
        assert statuses(await stack.finished((await stack.deliver(person(1))).key)) == {1: "unknown"}
        assert len(courier.attempted) == 1

    async def test_an_exception_of_a_courier_is_an_unclear_attempt(self, stack: Stack) -> None:
        def respond(message: Message) -> Outcome:
            raise RuntimeError("a fault of the courier")

        await stack.courier(FakeCourier(respond=respond, remembers=NEVER))
        assert statuses(await stack.finished((await stack.deliver(person(1))).key)) == {1: "unknown"}

    async def test_a_refused_batch_is_halved_down_to_the_refused_message(self, stack: Stack) -> None:
        class Refusing(FakeCourier):
            async def attempt(self, messages):  # type: ignore[no-untyped-def]
                self.attempted += messages
                if any(message.address == "p7" for message in messages):
                    return [Split(GONE)] * len(messages)
                return [sent(message) for message in messages]

        courier = Refusing(batch=16, parcel=16)
        await stack.courier(courier)
        history = await stack.finished((await stack.deliver(*people(16))).key)
        assert statuses(history) == {number: "failed" if number == 7 else "sent" for number in range(1, 17)}
        assert all(len({m.random_id() for m in courier.attempted if m.address == f"p{n}"}) == 1 for n in range(1, 17))

    async def test_a_batch_that_stays_unclear_is_repeated_in_quarters_down_to_the_message_without_a_response(
        self, stack: Stack
    ) -> None:
        """Regression: they were always repeated together, and all of them became unknown."""
        batches: list[list[str]] = []

        class Unresponsive(FakeCourier):
            async def attempt(self, messages: Sequence[Message]) -> Sequence[Outcome]:
                batches.append([message.address for message in messages])
                unresponsive = any(message.address == "p3" for message in messages)
                return [Unknown() if unresponsive else sent(message) for message in messages]

        fifth = SECOND / 5
        await stack.courier(Unresponsive(batch=8, parcel=8), replace(QUICK, backoff=Backoff(fifth, fifth, 4)))
        key = (await stack.deliver(*people(8))).key
        history = await stack.finished(key)
        assert statuses(history) == {number: "unknown" if number == 3 else "sent" for number in range(1, 9)}
        assert [len(batch) for batch in batches if "p3" in batch] == [8, 2, 1, 1]
        assert len(batches) == 8

    async def test_an_account_that_is_halted_stops_its_courier_and_keeps_its_tasks(self, stack: Stack) -> None:
        runtime = await stack.courier(FakeCourier(respond=lambda message: Halted("session revoked")))
        key = (await stack.deliver(*people(3))).key
        await until(lambda: runtime.halted)
        await stack.stop(runtime)
        assert statuses(await stack.history(key)) == {1: "queued", 2: "queued", 3: "queued"}
        await stack.courier(FakeCourier())
        assert (await stack.finished(key)).verdict is Verdict.ALL_REACHED

    async def test_random_ids_differ_between_deliveries_recipients_contacts_and_channels(self, stack: Stack) -> None:
        couriers = [FakeCourier("vk"), FakeCourier("sms")]
        for courier in couriers:
            await stack.courier(courier)
        recipients = [person(1, "sms", vk=["a", "b"]), person("x", "vk", "sms")]
        for _ in range(2):
            await stack.finished((await stack.deliver(*recipients, channels=("vk", "sms"))).key)
        ids = [message.random_id() for courier in couriers for message in courier.attempted]
        assert len(ids) == len(set(ids)) == 10


async def is_reached(stack: Stack, key: HistoryKey) -> bool:
    return (await stack.history(key)).counts["reached"] == 1


class UnreadableError(Exception):
    """Its text cannot be read."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


def raising(fault: BaseException) -> Callable[[], Any]:
    def respond() -> Any:
        raise fault

    return respond


HALF: Any = "\ud83d"
NO_OUTCOMES: dict[str, tuple[Callable[[], Any], str]] = {
    "sent with half a character": (lambda: Sent(HALF, peer=HALF, number=1, not_shown=(HALF,)), "sent"),
    "sent with a dict": (lambda: Sent(cast(Any, {"a": 1})), "unknown"),
    "nothing": (lambda: None, "unknown"),
    "half a character as reason": (lambda: Rejected(HALF), "unknown"),
    "partly nothing": (lambda: Partly(cast(Any, None)), "unknown"),
    "CancelledError": (raising(asyncio.CancelledError()), "unknown"),
    "GeneratorExit": (raising(GeneratorExit()), "unknown"),
    "SystemExit": (raising(SystemExit(1)), "unknown"),
    "an error without a text": (raising(UnreadableError()), "unknown"),
    "a number as wait": (lambda: Deferred(Reason.PROVIDER_DOWN, cast(Any, 5)), "unknown"),
}


@pytest.mark.parametrize("name", NO_OUTCOMES)
async def test_what_is_no_outcome_harms_its_own_message_alone(stack: Stack, name: str) -> None:
    """Regression: the others of the parcel stayed queued and were sent again; CancelledError was attempted for ever."""
    respond, status = NO_OUTCOMES[name]
    courier = FakeCourier(respond=lambda it: respond() if it.address == "p2" else sent(it), remembers=NEVER)
    await stack.courier(courier, QUICK)
    history = await stack.finished((await stack.deliver(*people(4))).key)
    assert statuses(history) == {1: "sent", 2: status, 3: "sent", 4: "sent"}
    assert len(courier.attempted) == 4
