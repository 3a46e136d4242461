"""Cancelling deliveries, whole or for chosen recipients, before, during and after the attempts."""

import asyncio
from collections.abc import Awaitable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from core.deliveries.histories.parcels import Entry
from core.errors import NotFound
from core.model.clock import Backoff
from core.model.history_key import HistoryKey
from core.model.json_form import compact_json
from core.model.states import DeliveryState, Reason, Status
from couriers.sending.interface import FOREVER, NEVER, Deferred, Message, Outcome, Unknown
from couriers.sending.parcel import Parcel
from tests.support.delivery_progress import GONE, SECOND, Gate, by_address, slowly, statuses
from tests.support.servers import on_both_servers
from tests.support.stack import HOUR, QUICK, TENANT, FakeCourier, Stack, people, person
from tests.support.waiting import until


class TestCancelling:
    @on_both_servers
    async def test_the_result_names_exactly_the_recipients_that_were_sent_to_before(self, stack: Stack) -> None:
        await stack.courier(FakeCourier("vk", respond=by_address(p2=Deferred(Reason.THROTTLED, HOUR), p3=GONE)))
        key = (await stack.deliver(*people(5, "vk"), channels=("vk",))).key
        await until(lambda: settled(stack, key, 4))
        result = await stack.deliveries.cancel(key, TENANT)
        assert (result.cancelled, sorted(result.already_sent), list(result.in_flight)) == (1, [1, 4, 5], [])
        history = await stack.finished(key)
        assert statuses(history, "vk") == {1: "sent", 2: "cancelled", 3: "failed", 4: "sent", 5: "sent"}
        assert (await stack.deliveries.cancel(key, TENANT)).cancelled == 0

    @on_both_servers
    async def test_a_final_outcome_is_kept_when_the_recipient_is_cancelled_while_the_parcel_is_unfinished(
        self, stack: Stack
    ) -> None:
        """Regression: such outcomes became `cancelled`, even `sent`."""
        outcomes = by_address(p2=Deferred(Reason.THROTTLED, HOUR), p3=Unknown(), p4=GONE)
        await stack.courier(FakeCourier("vk", respond=outcomes, remembers=NEVER))
        key = (await stack.deliver(*people(4, "vk"), channels=("vk",))).key
        await until(lambda: settled(stack, key, 2))
        result = await stack.deliveries.cancel(key, TENANT, ["1", "3", "4"])
        assert (result.cancelled, list(result.already_sent), list(result.in_flight)) == (0, [1], [3])
        history = await stack.history(key)
        assert statuses(history, "vk") == {1: "sent", 2: "queued", 3: "unknown", 4: "failed"}
        assert (history.counts["reached"], history.counts[Status.CANCELLED]) == (1, 0)

    @on_both_servers
    @pytest.mark.parametrize("chosen", [["2", "3"], []])
    async def test_an_unclear_entry_becomes_unknown_when_it_is_cancelled(self, stack: Stack, chosen: list[str]) -> None:
        """Only a repeat with the same random id would show whether the message was sent."""
        outcomes = by_address(p2=Deferred(Reason.THROTTLED, HOUR), p3=Unknown())
        await stack.courier(FakeCourier(respond=outcomes), replace(QUICK, backoff=Backoff(HOUR, HOUR)))
        key = (await stack.deliver(*people(4))).key
        await until(lambda: settled(stack, key, 2))
        result = await stack.deliveries.cancel(key, TENANT, chosen)
        assert (result.cancelled, sorted(set(result.already_sent) - {1, 4}), list(result.in_flight)) == (1, [], [3])
        history = await stack.finished(key)
        assert statuses(history) == {1: "sent", 2: "cancelled", 3: "unknown", 4: "sent"}
        assert history.recipients[2].outcomes["echo"].reason == Reason.ANSWER_LOST

    @pytest.mark.parametrize("chosen", [["1", "2", "3"], []])
    async def test_an_entry_that_is_cancelled_while_its_attempt_ends_unclear_becomes_unknown(
        self, stack: Stack, chosen: list[str]
    ) -> None:
        gate = Gate(by_address(p1=Unknown(), p2=Deferred(Reason.THROTTLED, HOUR)))
        courier = FakeCourier(respond=gate)
        await stack.courier(courier, replace(QUICK, backoff=Backoff(HOUR, HOUR)))
        key = (await stack.deliver(*people(3))).key
        await until(lambda: len(courier.attempted) == 3)
        cancelling = asyncio.create_task(stack.deliveries.cancel(key, TENANT, chosen))
        await until(lambda: is_flagged(stack, key, "skip" if chosen else "cancel"))
        gate.opened.set()
        result = await cancelling
        assert (result.cancelled, list(result.already_sent), list(result.in_flight)) == (1, [3], [1])
        assert statuses(await stack.finished(key)) == {1: "unknown", 2: "cancelled", 3: "sent"}
        assert len(courier.attempted) == 3

    async def test_what_was_to_be_tried_again_is_cancelled_at_once_while_another_attempt_is_under_way(
        self, stack: Stack
    ) -> None:
        """It read `queued` until the other attempts of its first parcel had ended."""
        gate = Gate()

        def respond(message: Message) -> Outcome | Awaitable[Outcome]:
            return GONE if message.address == "p1" else gate(message)

        await stack.courier(FakeCourier(respond=respond))
        key = (await stack.deliver(*people(2), lane="x")).key

        async def has(**expected: str) -> bool:
            found = statuses(await stack.history(key))
            return all(found[int(name[1:])] == status for name, status in expected.items())

        await until(lambda: has(p1="failed", p2="queued"))
        assert await stack.deliveries.retry(key, TENANT, [Status.FAILED]) == 1
        assert await has(p1="queued", p2="queued")
        cancelling = asyncio.create_task(stack.deliveries.cancel(key, TENANT))
        await until(lambda: is_flagged(stack, key, "cancel"))
        assert await has(p1="cancelled", p2="queued")
        gate.opened.set()
        await cancelling
        assert statuses(await stack.finished(key)) == {1: "cancelled", 2: "sent"}

    async def test_an_unclear_entry_becomes_unknown_when_it_expires(self, stack: Stack) -> None:
        outcomes = by_address(p1=Unknown(), p2=Deferred(Reason.THROTTLED, HOUR))
        await stack.courier(FakeCourier(respond=outcomes), replace(QUICK, backoff=Backoff(HOUR, HOUR)))
        key = (await stack.deliver(*people(3), expires_at=stack.now() + HOUR / 4)).key
        await until(lambda: settled(stack, key, 1))
        stack.advance_clock(HOUR / 2)
        assert statuses(await stack.finished(key)) == {1: "unknown", 2: "expired", 3: "sent"}

    @pytest.mark.parametrize("scheduled", [True, False])
    async def test_chosen_recipients_get_nothing_and_the_others_do(self, stack: Stack, scheduled: bool) -> None:
        at = stack.now() + HOUR if scheduled else None
        key = (await stack.deliver(*people(4, "vk", "sms"), channels=("vk", "sms"), deliver_at=at)).key
        assert (await stack.deliveries.cancel(key, TENANT, ["2", "3"])).cancelled == 2
        couriers = [FakeCourier("vk"), FakeCourier("sms")]
        for courier in couriers:
            await stack.courier(courier)
        if scheduled:
            stack.advance_clock(HOUR)
        history = await stack.finished(key)
        assert statuses(history, "sms") == {1: "sent", 2: "cancelled", 3: "cancelled", 4: "sent"}
        assert all(sorted(courier.addresses) == ["p1", "p4"] for courier in couriers)
        assert history.state is DeliveryState.FINISHED

    async def test_a_recipient_is_named_by_its_id_or_by_an_address_in_any_form(self, stack: Stack) -> None:
        """An address that is given alone may be a person's of the directory, whose id the sender does not know."""
        recipients = [person(number, sms=[f"+7999000000{number}"]) for number in (1, 2, 3)]
        respond = by_address(**{one.contacts["sms"][0]: GONE for one in recipients})
        failing = (await stack.deliver(*recipients, channels=("sms",))).key
        await stack.courier(FakeCourier("sms", respond=respond))
        await stack.finished(failing)
        assert await stack.deliveries.retry(failing, TENANT, [Status.FAILED], ["sms:8 (999) 000-00-01", "2"]) == 2
        waiting = (await stack.deliver(*recipients, channels=("sms",), deliver_at=stack.now() + HOUR)).key
        with pytest.raises(NotFound, match="Not every recipient"):
            await stack.deliveries.cancel(waiting, TENANT, ["1", "sms:+79990000009"])
        assert (await stack.deliveries.cancel(waiting, TENANT, ["sms:8 (999) 000-00-01", "2"])).cancelled == 2
        found = statuses(await stack.history(waiting), "sms")
        assert found == {1: "cancelled", 2: "cancelled", 3: "queued"}

    @pytest.mark.parametrize("scheduled", [True, False])
    async def test_cancelling_all_recipients_one_by_one_ends_the_delivery(self, stack: Stack, scheduled: bool) -> None:
        at = stack.now() + HOUR if scheduled else None
        key = (await stack.deliver(*people(2), deliver_at=at)).key
        for number in (1, 2):
            await stack.deliveries.cancel(key, TENANT, [str(number)])
        history = await stack.history(key)
        assert (history.state, history.counts[Status.CANCELLED]) == (DeliveryState.CANCELLED, 2)

    @pytest.mark.parametrize("remembers", [FOREVER, NEVER])
    async def test_a_recipient_that_is_cancelled_while_it_is_postponed_is_not_attempted_again(
        self, stack: Stack, remembers: timedelta
    ) -> None:
        """I11. Regression: the recipient was cancelled during its attempt, then postponed, and the next claim did not
        know.
        """
        gate = Gate(by_address(p1=Deferred(Reason.THROTTLED, 0.2 * SECOND)))
        courier = FakeCourier(respond=gate, remembers=remembers)
        await stack.courier(courier)
        key = (await stack.deliver(*people(2))).key
        await until(lambda: len(courier.attempted) == 2)
        cancelling = asyncio.create_task(stack.deliveries.cancel(key, TENANT, ["1"]))
        await until(lambda: is_flagged(stack, key))
        gate.opened.set()
        assert (await cancelling).cancelled == 1
        history = await stack.finished(key)
        assert statuses(history) == {1: "cancelled", 2: "sent"}
        assert courier.addresses.count("p1") == 1

    async def test_a_recipient_that_is_cancelled_before_its_courier_crashes_is_not_sent_to_by_the_next_courier(
        self, stack: Stack
    ) -> None:
        stuck = FakeCourier(respond=Gate())
        abandoned = await stack.courier(stuck, replace(QUICK, lease=0.5 * SECOND, concurrency=1))
        key = (await stack.deliver(*people(3))).key
        await until(lambda: stuck.attempted)
        stack.abandon(abandoned)
        result = await stack.deliveries.cancel(key, TENANT, ["3"])
        assert result.cancelled + len(result.in_flight) == 1
        successor = FakeCourier()
        await stack.courier(successor)
        history = await stack.finished(key)
        assert "p3" not in successor.addresses
        assert statuses(history)[3] in {"cancelled", "unknown"}

    async def test_a_recipient_cancelled_before_the_claim_stays_cancelled_when_cancelled_again_and_the_courier_crashes(
        self, stack: Stack
    ) -> None:
        """Regression: the recipient became `unknown`, although it was never claimed."""
        key = (await stack.deliver(*people(2))).key
        assert (await stack.deliveries.cancel(key, TENANT, ["1"])).cancelled == 1
        await stack.take("echo", lease=SECOND)
        again = await stack.deliveries.cancel(key, TENANT, ["1"])
        assert (again.cancelled, again.in_flight) == (0, [])
        stack.advance_clock(2 * SECOND)
        await stack.take("echo")
        assert statuses(await stack.history(key)) == {1: "cancelled", 2: "queued"}

    async def test_an_extension_names_the_cancelled_recipients_whose_outcome_is_still_open(self, stack: Stack) -> None:
        key = (await stack.deliver(*people(3))).key
        (task,) = await stack.take("echo")
        first, second, _ = Parcel.of(task).entries
        ends = [first.item(Status.SENT, attempts=1), second.item(Status.UNKNOWN, attempts=1)]
        assert (await stack.queue.extend(task, HOUR, ends)).skip == set()
        await stack.store.run("cancel", 0, key.suffix, TENANT, 0, to_cancel(*Parcel.of(task).entries))
        assert (await stack.queue.extend(task, HOUR)).skip == {"3"}
        await stack.queue.release(task)
        assert statuses(await stack.history(key)) == {1: "sent", 2: "unknown", 3: "cancelled"}

    async def test_cancelling_waits_for_the_outcomes_of_attempts_under_way(self, stack: Stack) -> None:
        gate = Gate()

        async def respond(message: Message) -> Outcome:
            """With a delay, so that the courier sees the cancellation before its next attempt."""
            await gate(message)
            return await slowly(message)

        courier = FakeCourier(respond=respond)
        await stack.courier(courier, replace(QUICK, concurrency=2))
        key = (await stack.deliver(*people(6))).key
        await until(lambda: len(courier.attempted) == 2)
        cancelling = asyncio.create_task(stack.deliveries.cancel(key, TENANT))
        await until(lambda: is_in_state(stack, key, DeliveryState.CANCELLED))
        (lease,) = await leases(stack)
        await until(lambda: has_moved(stack, lease))
        gate.opened.set()
        cancelled = await cancelling
        history = await stack.finished(key)
        sent_to = [number for number, status in statuses(history).items() if status == "sent"]
        assert sorted(cancelled.already_sent) == sent_to
        assert cancelled.cancelled == 6 - len(sent_to)
        assert len(courier.attempted) == len(sent_to) < 6

    async def test_all_deliveries_of_a_lane_a_tag_a_sender_or_to_a_user_are_cancelled_together(
        self, stack: Stack
    ) -> None:
        at = stack.now() + HOUR
        wanted: dict[str, tuple[str, dict[str, Any]]] = {
            "lane": ("exam", {"lane": "exam"}),
            "tag": ("urgent", {"tags": ["other", "urgent"]}),
            "kind_prefix": ("remind", {"kind": "reminder"}),
        }
        for field, (value, options) in wanted.items():
            for number in range(3):
                await stack.deliver(person(number), deliver_at=at, **options)
            await stack.deliver(person(9), deliver_at=at)
            assert await stack.deliveries.cancel_by(TENANT, field, value) == 3
        assert await stack.deliveries.cancel_by(TENANT, "user", "9") == 3
        assert await stack.deliveries.cancel_by("another", "sender", "7") == 0
        await stack.deliver(person(1), deliver_at=at)
        assert await stack.deliveries.cancel_by(TENANT, "sender", "7") == 1

    async def test_a_delivery_without_a_kind_is_cancelled_by_the_default_kind(self, stack: Stack) -> None:
        at = stack.now() + HOUR
        for options in ({}, {"kind": "message"}, {"kind": "message.exam"}, {"kind": "reminder"}):
            await stack.deliver(person(1), deliver_at=at, **options)
        assert await stack.deliveries.cancel_by(TENANT, "kind_prefix", "message") == 3


def to_cancel(*entries: Entry) -> str:
    return compact_json([["echo", 0, entry.item(Status.CANCELLED)] for entry in entries])


async def settled(stack: Stack, key: HistoryKey, count: int) -> bool:
    history = await stack.history(key)
    taken = await stack.redis.zcard("queue:{0}:lease")
    return not taken and sum(history.counts[status] for status in (Status.SENT, Status.FAILED)) >= count


async def is_flagged(stack: Stack, key: HistoryKey, flag: str = "skip") -> bool:
    return bool(await stack.redis.hexists(f"queue:{{0}}:progress:{key.ns}.{key.sender}.echo.0", flag))


async def leases(stack: Stack) -> list[float]:
    kept = (await stack.dump()).get("queue:{0}:lease")
    return list(kept.value.values()) if kept else []


async def has_moved(stack: Stack, lease: float) -> bool:
    """Whether the courier has extended the parcel since."""
    return await leases(stack) != [lease]


async def is_in_state(stack: Stack, key: HistoryKey, state: DeliveryState) -> bool:
    return (await stack.history(key)).state is state
