"""Throttles: what a wait named by a provider applies to, what is served meanwhile, which attempts count."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from core.courier.interface import Deferred, Message, Outcome, Scope
from core.model.states import Reason, Verdict
from tests.support.delivery_progress import SECOND, statuses
from tests.support.servers import on_both_servers
from tests.support.stack import QUICK, FakeCourier, Stack, people, person, sent
from tests.support.waiting import until


class TestThrottles:
    @on_both_servers
    @pytest.mark.row("D-23")
    async def test_recipients_who_can_be_served_now_are_served_before_throttled_ones(self, stack: Stack) -> None:
        throttled: set[str] = set()

        def respond(message: Message) -> Outcome:
            if message.address in {"p1", "p2"} and message.address not in throttled:
                throttled.add(message.address)
                return Deferred(Reason.THROTTLED, 0.4 * SECOND, Scope.RECIPIENT)
            return sent(message)

        courier = FakeCourier(respond=respond)
        await stack.courier(courier, replace(QUICK, concurrency=2))
        history = await stack.finished((await stack.deliver(*people(20))).key)
        assert history.verdict is Verdict.ALL_REACHED
        assert set(courier.addresses[-2:]) == {"p1", "p2"}
        assert len(courier.addresses) == 22

    @pytest.mark.row("D-22", "D-23")
    async def test_a_chat_throttle_applies_to_this_chat_in_all_deliveries_and_to_no_other_chat(
        self, stack: Stack
    ) -> None:
        slow = asyncio.Event()

        def respond(message: Message) -> Outcome:
            if message.address == "p1" and not slow.is_set():
                slow.set()
                return Deferred(Reason.THROTTLED, 0.5 * SECOND, Scope.CHAT)
            return sent(message)

        courier = FakeCourier(respond=respond)
        await stack.courier(courier)
        first = (await stack.deliver(person(1))).key
        await slow.wait()
        await until(lambda: has_throttles(stack))
        second = (await stack.deliver(*people(3), text="second")).key
        await stack.finished(first)
        await stack.finished(second)
        assert courier.addresses[:3] == ["p1", "p2", "p3"] or courier.addresses[:3] == ["p1", "p3", "p2"]
        assert courier.addresses[3:] == ["p1", "p1"]

    @pytest.mark.row("D-22")
    async def test_an_account_throttle_applies_to_all_processes_of_the_account(self, stack: Stack) -> None:
        flooded = asyncio.Event()

        def respond(message: Message) -> Outcome:
            if flooded.is_set():
                return sent(message)
            flooded.set()
            return Deferred(Reason.THROTTLED, 0.6 * SECOND, Scope.ACCOUNT)

        first, second = FakeCourier(respond=respond, account="one"), FakeCourier(respond=respond, account="one")
        await stack.courier(first)
        await stack.courier(second)
        started = stack.now()
        key = (await stack.deliver(person(1))).key
        await until(lambda: has_throttles(stack))
        other = (await stack.deliver(person(2))).key
        await stack.finished(key)
        await stack.finished(other)
        assert stack.now() - started >= 0.6 * SECOND
        assert len(first.attempted) + len(second.attempted) == 3

    @pytest.mark.row("D-22")
    async def test_an_attempt_with_a_wait_named_by_the_provider_does_not_count(self, stack: Stack) -> None:
        floods = iter(range(10))

        def respond(message: Message) -> Outcome:
            if next(floods, None) is not None:
                return Deferred(Reason.THROTTLED, timedelta(milliseconds=10))
            return sent(message)

        await stack.courier(FakeCourier(respond=respond))
        history = await stack.finished((await stack.deliver(person(1))).key)
        assert statuses(history) == {1: "sent"}
        assert history.recipients[0].outcomes["echo"].attempts == 1


async def has_throttles(stack: Stack, tube: str = "echo") -> bool:
    return bool(await stack.redis.exists(f"queue:{{0}}:waits:{tube}"))
