"""Cancelling, whole or for some, before, during and after the attempts."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from core.orders import HistoryKey
from core.parcels import Entry, compact, load_parcel
from core.port import FOREVER, NEVER, Deferred, Message, Outcome, Unknown
from core.retry import Backoff
from core.words import DeliveryState, Reason, Status
from tests.core.deliveries import GONE, SECOND, Gate, by_address, slowly, statuses
from tests.core.house import HOUR, QUICK, TENANT, House, Played, people, person
from tests.servers import on_both_servers
from tests.waiting import until


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
    async def test_who_was_cancelled_before_the_claim_stays_so_when_he_is_cancelled_again_and_its_courier_is_lost(
        self, house: House
    ) -> None:
        """Nobody had him in hand: he was told as `unknown`, as if he might have been sent to."""
        key = (await house.deliver(*people(2))).key
        assert (await house.histories.cancel(key, TENANT, ["1"])).cancelled == 1
        await house.take("echo", lease=SECOND)
        again = await house.histories.cancel(key, TENANT, ["1"])
        assert (again.cancelled, again.in_flight) == (0, [])
        house.passes(2 * SECOND)
        await house.take("echo")
        assert statuses(await house.history(key)) == {1: "cancelled", 2: "queued"}

    @pytest.mark.row("D-42")
    async def test_a_courier_is_told_of_those_cancelled_whom_it_has_not_told_the_end_of(self, house: House) -> None:
        key = (await house.deliver(*people(3))).key
        (task,) = await house.take("echo")
        _, (first, second, _) = load_parcel(task.parcel)
        ends = [first.item(Status.SENT, attempts=1), second.item(Status.UNKNOWN, attempts=1)]
        assert (await house.queue.extend(task, HOUR, ends)).skip == set()
        await house.store.run("cancel", 0, key.suffix, TENANT, 0, to_cancel(*load_parcel(task.parcel)[1]))
        assert (await house.queue.extend(task, HOUR)).skip == {"3"}
        await house.queue.release(task)
        assert statuses(await house.history(key)) == {1: "sent", 2: "unknown", 3: "cancelled"}

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


def to_cancel(*entries: Entry) -> str:
    return compact([["echo", 0, entry.item(Status.CANCELLED)] for entry in entries])


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
