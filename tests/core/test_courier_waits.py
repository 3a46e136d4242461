"""A provider that asks to wait: who is held up, who is served meanwhile, what it costs."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from core.port import Deferred, Message, Outcome, Scope
from core.words import Reason, Verdict
from tests.core.deliveries import SECOND, statuses
from tests.core.house import QUICK, House, Played, people, person, sent
from tests.servers import on_both_servers
from tests.waiting import until


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
