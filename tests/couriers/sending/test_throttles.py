"""Throttles: what a wait named by a provider applies to, what is served meanwhile, which attempts count."""

import asyncio
import time
from dataclasses import replace
from datetime import timedelta

import msgspec
import pytest

from core.model.states import Reason, Verdict
from core.redis.store import Store
from couriers.sending.account_throttle import AccountThrottle
from couriers.sending.interface import Deferred, Message, Outcome, Scope, Sent
from tests.support.delivery_progress import SECOND, statuses
from tests.support.servers import on_both_servers
from tests.support.stack import QUICK, FakeCourier, Stack, people, person, sent
from tests.support.waiting import until


class TestThrottles:
    @on_both_servers
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


class TestIsolation:
    """One refusal of the whole account stops its attempts everywhere; one recipient stops no other."""

    @pytest.mark.parametrize("flags", ["Kgx", ""], ids=["with events", "without events"])
    async def test_a_refusal_stops_all_parcels_of_all_processes(self, stack: Stack, flags: str) -> None:
        """Regression: up to 199 calls followed the first refusal, one for each parcel that was already claimed."""
        provider = Provider(refuse_from=40, wait=2 * SECOND)
        await stack.redis.config_set("notify-keyspace-events", flags)
        for _ in range(2):
            store = await Store.open(stack.server.url)
            await stack.courier(FakeCourier(respond=provider.respond), replace(QUICK, concurrency=2), store)
        keys = [(await stack.deliver(person(number))).key for number in range(80)]
        for key in keys:
            await stack.finished(key)
        # With events, only what was under way meets the refusal; without, a process asks four times a second.
        assert provider.refused <= (4 if flags else 4 + 2 * provider.calls_per_second / 4)
        assert provider.accepted == 80

    async def test_only_the_attempt_that_triggers_a_throttle_counts(self, stack: Stack) -> None:
        """The others that were under way are refused as well, and are no cause of it."""
        refused: list[str] = []

        async def respond(message: Message) -> Outcome:
            if message.address in refused:
                return sent(message)
            refused.append(message.address)
            await until(lambda: len(refused) == 3)
            return Deferred(Reason.THROTTLED, 0.2 * SECOND, Scope.ACCOUNT)

        await stack.courier(FakeCourier(respond=respond))
        history = await stack.finished((await stack.deliver(*people(3))).key)
        assert sorted(record.outcomes["echo"].attempts for record in history.recipients) == [1, 1, 2]

    async def test_a_recipient_who_always_triggers_a_throttle_goes_behind_the_others_and_ends(
        self, stack: Stack
    ) -> None:
        def respond(message: Message) -> Outcome:
            return Deferred(Reason.THROTTLED, 0.1 * SECOND, Scope.METHOD) if message.address == "p1" else sent(message)

        courier = FakeCourier(respond=respond)
        await stack.courier(courier, replace(QUICK, concurrency=2))
        bad, *others = [(await stack.deliver(person(number))).key for number in range(1, 52)]
        for key in others:
            assert (await stack.finished(key)).verdict is Verdict.ALL_REACHED
        assert statuses(await stack.finished(bad)) == {1: "failed"}
        assert courier.addresses.count("p1") == QUICK.backoff.attempts

    async def test_an_unreachable_provider_uses_up_no_attempts(self, stack: Stack) -> None:
        outages = iter(range(10))

        def respond(message: Message) -> Outcome:
            if next(outages, None) is not None:
                return Deferred(Reason.PROVIDER_DOWN, timedelta(milliseconds=10), Scope.ACCOUNT)
            return sent(message)

        await stack.courier(FakeCourier(respond=respond))
        history = await stack.finished((await stack.deliver(person(1))).key)
        assert history.recipients[0].outcomes["echo"].attempts == 1

    async def test_a_stopped_process_does_not_wait_for_the_next_call_of_a_slow_account(self, stack: Stack) -> None:
        await stack.queue.learn_rate("echo", "ada", 1)
        courier = FakeCourier()
        runtime = await stack.courier(courier)
        for number in range(3):
            await stack.deliver(person(number))
        await until(lambda: courier.attempted)
        started = stack.now()
        await stack.stop(runtime)
        assert stack.now() - started < 0.5 * SECOND
        assert len(courier.attempted) < 3


class Provider:
    """Refuses all calls from the n-th until `wait` has passed."""

    def __init__(self, refuse_from: int, wait: timedelta) -> None:
        self.accepted = self.refused = 0
        self._refuse_from = refuse_from
        self._wait = wait
        self._started = 0.0
        self._ends = 0.0

    @property
    def calls_per_second(self) -> float:
        """How fast calls were made until the refusal."""
        return self._refuse_from / (self._ends - self._wait.total_seconds() - self._started)

    async def respond(self, message: Message) -> Outcome:
        self._started = self._started or time.monotonic()
        await asyncio.sleep(0.01)  # the provider's own time
        now = time.monotonic()
        if self.accepted == self._refuse_from:
            self._ends = self._ends or now + self._wait.total_seconds()
            if now < self._ends:
                self.refused += 1
                return Deferred(Reason.THROTTLED, timedelta(seconds=self._ends - now), Scope.ACCOUNT)
        self.accepted += 1
        return sent(message)


async def has_throttles(stack: Stack, tube: str = "echo") -> bool:
    return bool(await stack.redis.exists(f"queue:{{0}}:throttles:{tube}"))


async def test_of_several_waits_in_one_batch_the_longest_applies(stack: Stack) -> None:
    throttle = AccountThrottle(stack.queue, "echo", "ada", lambda: False)
    waits = [Deferred(Reason.THROTTLED, wait * SECOND, Scope.ACCOUNT) for wait in (1, 3600, 60)]
    assert await throttle.learn(waits, is_first=True)
    assert throttle.until - time.monotonic() > 3500
    claim = await stack.claim("echo", account="ada")
    assert claim.opens_at - claim.now > 3_500_000


async def test_processes_that_meet_one_throttle_lower_the_rate_of_their_account_once(stack: Stack) -> None:
    processes = [AccountThrottle(stack.queue, "echo", "ada", lambda: False) for _ in range(3)]
    for process in processes:
        await process.learn([Sent("1")], is_first=True)
    refusal = Deferred(Reason.THROTTLED, 60 * SECOND, Scope.ACCOUNT)
    assert [await process.learn([refusal], is_first=True) for process in processes] == [True, False, False]


async def test_a_shorter_refusal_does_not_cut_a_throttle_in_force_short(stack: Stack) -> None:
    throttle = AccountThrottle(stack.queue, "echo", "ada", lambda: False)
    for wait in (3600, 1):
        await throttle.learn([Deferred(Reason.THROTTLED, wait * SECOND, Scope.ACCOUNT)], is_first=True)
    assert throttle.until - time.monotonic() > 3500
    claim = await stack.claim("echo", account="ada")
    assert claim.opens_at - claim.now > 3_500_000


async def test_the_wait_of_a_recipient_counts_from_the_end_of_its_attempt(stack: Stack) -> None:
    """Not from the claim or the start of the attempt: the provider names the wait when it answers."""
    wait = 0.4
    ended: list[float] = []
    pauses: list[float] = []

    async def respond(message: Message) -> Outcome:
        if ended:
            pauses.append(time.monotonic() - ended[0])
            return sent(message)
        started = time.monotonic()
        await until(lambda: time.monotonic() > started + 2 * wait)
        ended.append(time.monotonic())
        return Deferred(Reason.THROTTLED, timedelta(seconds=wait))

    await stack.courier(FakeCourier(respond=respond))
    await stack.finished((await stack.deliver(person(1))).key)
    assert pauses[0] > wait - 0.05


async def test_an_outage_counts_for_the_message_that_meets_with_it_only_if_others_got_through(stack: Stack) -> None:
    """One whose attempts bring the connection down ends; nothing ends while the provider is down for everybody."""

    def respond(message: Message) -> Outcome:
        if message.address == "p1":
            return Deferred(Reason.PROVIDER_DOWN, timedelta(milliseconds=20), Scope.ACCOUNT)
        return sent(message)

    courier = FakeCourier(respond=respond)
    await stack.courier(courier)
    bad = (await stack.deliver(person(1))).key
    await until(lambda: courier.addresses.count("p1") > 2 * QUICK.backoff.attempts)
    assert (await stack.history(bad)).finished_at is None
    for number in range(2, 100):
        assert (await stack.finished((await stack.deliver(person(number))).key)).verdict is Verdict.ALL_REACHED
        if (await stack.history(bad)).finished_at is not None:
            break
    assert statuses(await stack.history(bad)) == {1: "failed"}


async def test_who_wants_messages_later_gets_them_then_and_nobody_waits_for_that(stack: Stack) -> None:
    courier = FakeCourier()
    await stack.courier(courier)
    opens = stack.now() + timedelta(hours=2)
    hours = f"{opens:%H:%M}-{opens + timedelta(hours=1):%H:%M} UTC"
    key = (await stack.deliver(msgspec.structs.replace(person(1), hours=hours), person(2))).key

    async def is_noted() -> bool:
        return statuses(await stack.history(key))[2] == "sent"

    await until(is_noted)
    stack.advance_clock(timedelta(hours=2))
    await stack.tick()
    history = await stack.finished(key)
    assert courier.addresses == ["p2", "p1"]
    assert history.recipients[0].outcomes["echo"].attempts == 1
