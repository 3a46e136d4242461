"""A provider that asks to wait: who is held up, who is served meanwhile, what it costs."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from core.courier.interface import Deferred, Message, Outcome, Scope
from core.model.states import Reason, Verdict
from tests.support.delivery_progress import SECOND, statuses
from tests.support.servers import on_both_servers
from tests.support.stack import QUICK, Played, Stack, people, person, sent
from tests.support.waiting import until


class TestWaits:
    @on_both_servers
    @pytest.mark.row("D-23")
    async def test_everybody_who_can_be_served_now_is_served_before_those_who_must_wait(self, stack: Stack) -> None:
        waited: set[str] = set()

        def answer(message: Message) -> Outcome:
            if message.address in {"p1", "p2"} and message.address not in waited:
                waited.add(message.address)
                return Deferred(Reason.THROTTLED, 0.4 * SECOND, Scope.RECIPIENT)
            return sent(message)

        courier = Played(answer=answer)
        await stack.courier(courier, replace(QUICK, concurrency=2))
        told = await stack.finished((await stack.deliver(*people(20))).key)
        assert told.verdict is Verdict.ALL_REACHED
        assert set(courier.addresses[-2:]) == {"p1", "p2"}
        assert len(courier.addresses) == 22

    @pytest.mark.row("D-22", "D-23")
    async def test_a_wait_of_a_chat_holds_this_chat_in_other_deliveries_and_nobody_else(self, stack: Stack) -> None:
        slow = asyncio.Event()

        def answer(message: Message) -> Outcome:
            if message.address == "p1" and not slow.is_set():
                slow.set()
                return Deferred(Reason.THROTTLED, 0.5 * SECOND, Scope.CHAT)
            return sent(message)

        courier = Played(answer=answer)
        await stack.courier(courier)
        first = (await stack.deliver(person(1))).key
        await slow.wait()
        await until(lambda: waits(stack))
        second = (await stack.deliver(*people(3), text="second")).key
        await stack.finished(first)
        await stack.finished(second)
        assert courier.addresses[:3] == ["p1", "p2", "p3"] or courier.addresses[:3] == ["p1", "p3", "p2"]
        assert courier.addresses[3:] == ["p1", "p1"]

    @pytest.mark.row("D-22")
    async def test_a_wait_of_the_account_holds_all_its_processes_and_no_other_account(self, stack: Stack) -> None:
        flooded = asyncio.Event()

        def answer(message: Message) -> Outcome:
            if flooded.is_set():
                return sent(message)
            flooded.set()
            return Deferred(Reason.THROTTLED, 0.6 * SECOND, Scope.ACCOUNT)

        first, second = Played(answer=answer, account="one"), Played(answer=answer, account="one")
        await stack.courier(first)
        await stack.courier(second)
        started = stack.now()
        key = (await stack.deliver(person(1))).key
        await until(lambda: waits(stack))
        other = (await stack.deliver(person(2))).key
        await stack.finished(key)
        await stack.finished(other)
        assert stack.now() - started >= 0.6 * SECOND
        assert len(first.attempted) + len(second.attempted) == 3

    @pytest.mark.row("D-22")
    async def test_a_wait_named_by_the_provider_costs_no_attempt(self, stack: Stack) -> None:
        floods = iter(range(10))

        def answer(message: Message) -> Outcome:
            if next(floods, None) is not None:
                return Deferred(Reason.THROTTLED, timedelta(milliseconds=10))
            return sent(message)

        await stack.courier(Played(answer=answer))
        told = await stack.finished((await stack.deliver(person(1))).key)
        assert statuses(told) == {1: "sent"}
        assert told.recipients[0].outcomes["echo"].attempts == 1


async def waits(stack: Stack, tube: str = "echo") -> bool:
    return bool(await stack.redis.exists(f"queue:{{0}}:waits:{tube}"))
