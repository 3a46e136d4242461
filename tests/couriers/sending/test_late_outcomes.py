"""I22: what a courier knows of an attempt is recorded, also after its lease and after a fault of the store (S-07)."""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from core.errors import StoreUnavailable
from core.model.delivery import Strategy
from core.model.history import History
from core.model.history_key import HistoryKey
from core.model.states import Reason, Status, Verdict
from core.redis.store import Argument
from couriers.sending.interface import (
    FOREVER,
    NEVER,
    Deferred,
    Halted,
    Message,
    Outcome,
    Partly,
    Rejected,
    Scope,
    Unknown,
)
from couriers.sending.runtime import Runtime
from tests.support.delivery_progress import SECOND, Gate, by_address, statuses
from tests.support.observed_store import ObservedStore
from tests.support.servers import on_both_servers
from tests.support.stack import HOUR, QUICK, TENANT, FakeCourier, Stack, people, person, sent
from tests.support.waiting import until

BLOCKED = Rejected(Reason.BLOCKED)
FOUR_AT_A_TIME = replace(QUICK, concurrency=4, lease=4 * SECOND)


class Late:
    """A courier whose attempts wait at `gate` until another process has taken over its parcel."""

    def __init__(self, stack: Stack, store: ObservedStore, then: Callable[[Message], Outcome] = sent) -> None:
        self.gate = Gate(then)
        self._stack = stack
        self._store = store
        self._runtime: Runtime

    async def start(self, count: int, channel: str = "echo", **options: Any) -> HistoryKey:
        """Return when all recipients of a new delivery are being attempted."""
        courier = FakeCourier(channel, respond=self.gate, remembers=options.pop("remembers", NEVER))
        self._runtime = await self._stack.courier(courier, FOUR_AT_A_TIME, self._store)
        key = (await self._stack.deliver(*people(count, *options.get("channels", [channel])), **options)).key
        await until(lambda: len(courier.attempted) == count)
        return key

    async def take_over(self, courier: FakeCourier) -> None:
        """Let the lease end by the clock of a new courier."""
        self._stack.advance_clock(HOUR)
        await self._stack.courier(courier)
        await until(lambda: self._store.latest.get("extend") == ["stale"])

    async def go_on(self) -> None:
        """Let the attempts end; return when their outcomes are recorded."""
        self.gate.opened.set()
        await self._stack.stop(self._runtime)


@pytest.fixture
def late(stack: Stack, store: ObservedStore) -> Late:
    return Late(stack, store)


def rows(history: History, channel: str = "echo") -> list[tuple[str, str | None, str | None, int]]:
    found = (record.outcomes[channel] for record in history.recipients)
    return [(one.status, one.reason, one.reference, one.attempts) for one in found]


@on_both_servers
async def test_what_was_sent_is_recorded_after_another_worker_has_ended_it_as_unknown(stack: Stack, late: Late) -> None:
    key = await late.start(3)
    await late.take_over(FakeCourier(remembers=NEVER))
    history = await stack.finished(key)
    assert (set(statuses(history).values()), history.verdict) == ({Status.UNKNOWN}, Verdict.NOTHING_WORKED)
    await stack.audit()
    await late.go_on()
    history = await stack.history(key)
    assert rows(history) == [("sent", None, f"ref-p{n}", 1) for n in (1, 2, 3)]
    assert (history.counts["reached"], history.counts[Status.UNKNOWN]) == (3, 0)
    assert history.verdict is Verdict.ALL_REACHED
    steps = [(one.recipient, one.outcome.status) async for one in stack.tracker.follow(key, TENANT) if one.outcome]
    assert sorted(steps, key=str) == [(1, "sent"), (2, "sent"), (3, "sent")]


async def test_a_late_refusal_replaces_unknown_where_no_other_worker_repeats_an_attempt(
    stack: Stack, store: ObservedStore
) -> None:
    late = Late(stack, store, by_address(p1=BLOCKED))
    key = await late.start(2)
    await late.take_over(FakeCourier(remembers=NEVER))
    await stack.finished(key)
    await late.go_on()
    assert rows(await stack.history(key)) == [("failed", "blocked", None, 1), ("sent", None, "ref-p2", 1)]


async def test_a_late_refusal_replaces_nothing_that_another_worker_has_repeated(
    stack: Stack, store: ObservedStore
) -> None:
    """The repeat with the same random id was accepted, or its end is unclear: the message may have been sent."""
    late = Late(stack, store, lambda message: BLOCKED)
    key = await late.start(2, remembers=FOREVER)
    await late.take_over(FakeCourier(respond=by_address(p2=Unknown())))
    await stack.finished(key)
    await late.go_on()
    assert statuses(await stack.history(key)) == {1: "sent", 2: "unknown"}


async def test_what_was_sent_closes_its_entry_while_another_worker_repeats_it(stack: Stack, late: Late) -> None:
    """The counts stay right, whichever of the two ends first."""
    key = await late.start(2, remembers=FOREVER)
    repeating = Gate()
    other = FakeCourier(respond=repeating)
    await late.take_over(other)
    await until(lambda: len(other.attempted) == 2)
    await late.go_on()
    assert statuses(await stack.history(key)) == {1: "sent", 2: "sent"}
    repeating.opened.set()
    history = await stack.finished(key)
    assert (history.counts["reached"], history.counts[Status.SENT]) == (2, 2)
    await until(lambda: has_no_task(stack))


async def test_a_late_outcome_does_not_lower_the_number_of_attempts(stack: Stack, late: Late) -> None:
    key = await late.start(1, remembers=FOREVER)
    await late.take_over(FakeCourier(respond=lambda message: Unknown()))
    await stack.finished(key)
    await late.go_on()
    assert rows(await stack.history(key)) == [("sent", None, "ref-p1", QUICK.backoff.attempts)]


async def test_a_late_outcome_says_nothing_about_an_entry_that_a_person_has_retried(stack: Stack, late: Late) -> None:
    key = await late.start(2)
    await late.take_over(taking_over := FakeCourier(remembers=NEVER))
    await stack.finished(key)
    for runtime in stack.runtimes[1:]:
        await stack.stop(runtime)
    assert await stack.deliveries.retry(key, TENANT, [Status.UNKNOWN]) == 2
    await late.go_on()
    assert statuses(await stack.history(key)) == {1: "queued", 2: "queued"}
    await stack.courier(taking_over)
    await stack.finished(key)
    assert taking_over.addresses == ["p1", "p2"]


async def test_a_late_outcome_of_an_earlier_channel_spares_or_joins_the_message_of_the_next(
    stack: Stack, late: Late
) -> None:
    """Strategy `first` with a wait: after `unknown` the next channel is tried, and both channels have reached one."""
    channels = "sms", "vk"
    key = await late.start(1, "sms", channels=channels, strategy=Strategy.FIRST, wait=2 * SECOND)
    await late.take_over(FakeCourier("sms", remembers=NEVER))
    await until(lambda: has_status(stack, key, "sms", Status.UNKNOWN))
    await stack.courier(FakeCourier("vk"))
    stack.advance_clock(HOUR)
    await stack.finished(key)
    await late.go_on()
    history = await stack.history(key)
    assert (statuses(history, "sms"), statuses(history, "vk")) == ({1: "sent"}, {1: "sent"})
    assert (history.counts["reached"], history.verdict) == (1, Verdict.ALL_REACHED)


async def test_what_was_sent_is_recorded_after_its_delivery_was_cancelled(stack: Stack, late: Late) -> None:
    key = await late.start(2)
    await stack.deliveries.cancel(key, TENANT)
    stack.advance_clock(HOUR)
    await stack.tick()
    assert statuses(await stack.finished(key)) == {1: "unknown", 2: "unknown"}
    await late.go_on()
    history = await stack.history(key)
    assert (statuses(history), history.state) == ({1: "sent", 2: "sent"}, "cancelled")


class Failing(ObservedStore):
    """`fails(function, arguments)`: whether a call raises, before it has run."""

    fails: Callable[[str, Sequence[Argument]], bool] = staticmethod(lambda name, arguments: False)

    async def run(self, name: str, shard: int, *arguments: Argument) -> Any:
        if self.fails(name, arguments):
            raise StoreUnavailable("down")
        return await super().run(name, shard, *arguments)


@pytest.fixture
async def failing(stack: Stack) -> AsyncIterator[Failing]:
    opened = await Failing.open(stack.server.url)
    yield opened
    for runtime in stack.runtimes:
        await stack.stop(runtime)
    await opened.close()


FAULTS = {
    "the rate is learned": (Deferred(Reason.THROTTLED, SECOND / 10, Scope.ACCOUNT), "throttle"),
    "a chat is throttled": (Deferred(Reason.THROTTLED, SECOND / 10, Scope.CHAT), "throttle"),
    "its turn is asked for": (Deferred(Reason.THROTTLED, SECOND / 10), "reserve_call"),
    "outcomes are written": (Deferred(Reason.THROTTLED, SECOND / 10), "extend"),
    "the parcel is settled": (Deferred(Reason.THROTTLED, SECOND / 10), "settle"),
}


@pytest.mark.parametrize("remembers", [FOREVER, NEVER], ids=["repeat protection", "no repeat protection"])
@pytest.mark.parametrize(("deferred", "function"), FAULTS.values(), ids=FAULTS)
async def test_a_store_that_fails_loses_no_outcome_and_no_entry(
    stack: Stack, failing: Failing, deferred: Outcome, function: str, remembers: Any
) -> None:
    """Recipient 2 is deferred at first; the call fails three times after the first attempt. No recipient gets it
    twice."""
    courier = FakeCourier(batch=2, parcel=6, remembers=remembers)
    faults = iter(range(3))
    failing.fails = lambda name, _: name == function and bool(courier.attempted) and next(faults, None) is not None

    def respond(message: Message) -> Outcome:
        return deferred if message.address == "p2" and courier.addresses.count("p2") == 1 else sent(message)

    courier.respond = respond
    await stack.courier(courier, FOUR_AT_A_TIME, failing)
    key = (await stack.deliver(*people(6))).key
    history = await stack.finished(key)
    assert set(statuses(history).values()) == {Status.SENT}
    assert sorted(courier.addresses) == ["p1", "p2", "p2", "p3", "p4", "p5", "p6"]


async def test_recipients_whose_message_could_not_be_made_are_not_unknown(stack: Stack, failing: Failing) -> None:
    """They were announced, and then the secret of the delivery reports could not be read."""
    courier = FakeCourier(remembers=NEVER)
    faults = iter(range(2))
    read = failing.command

    async def command(*words: Any) -> Any:
        if words[0] == "GET" and next(faults, None) is not None:
            raise StoreUnavailable("down")
        return await read(*words)

    failing.command = command  # type: ignore[method-assign]
    await stack.courier(courier, replace(FOUR_AT_A_TIME, report_url="http://localhost/reports"), failing)
    key = (await stack.deliver(*people(3))).key
    assert set(statuses(await stack.finished(key)).values()) == {Status.SENT}
    assert sorted(courier.addresses) == ["p1", "p2", "p3"]


async def test_a_process_that_stops_while_the_store_fails_names_the_outcomes_it_could_not_record(
    stack: Stack, failing: Failing, caplog: pytest.LogCaptureFixture
) -> None:
    gate = Gate()
    courier = FakeCourier(respond=gate, remembers=NEVER)
    runtime = await stack.courier(courier, FOUR_AT_A_TIME, failing)
    key = (await stack.deliver(*people(2))).key
    await until(lambda: len(courier.attempted) == 2)
    failing.fails = lambda name, _: name in ("extend", "settle")
    gate.opened.set()
    await until(lambda: "not settled, next try" in caplog.text)
    await stack.stop(runtime)
    assert "2 outcomes not recorded" in caplog.text
    assert statuses(await stack.history(key)) == {1: "sending", 2: "sending"}


@pytest.mark.parametrize("remembers", [FOREVER, NEVER], ids=["repeat protection", "no repeat protection"])
async def test_recipients_of_an_account_that_was_halted_are_queued_again(stack: Stack, remembers: Any) -> None:
    runtime = await stack.courier(FakeCourier(respond=lambda message: Halted("401"), remembers=remembers))
    key = (await stack.deliver(*people(40))).key
    await until(lambda: runtime.halted)
    await stack.stop(runtime)
    history = await stack.history(key)
    assert (set(statuses(history).values()), history.channels["echo"].state) == ({Status.QUEUED}, "pending")
    courier = FakeCourier(remembers=remembers)
    await stack.courier(courier)
    assert (await stack.finished(key)).verdict is Verdict.ALL_REACHED
    assert {attempts for *_, attempts in rows(await stack.history(key))} == {1}


async def test_a_recipient_who_has_a_part_of_the_message_when_the_account_is_halted_is_unknown_at_once(
    stack: Stack,
) -> None:
    runtime = await stack.courier(FakeCourier(respond=lambda message: Partly(Halted("401"), "5"), remembers=NEVER))
    key = (await stack.deliver(person(1))).key
    await until(lambda: runtime.halted)
    await stack.stop(runtime)
    assert rows(await stack.finished(key)) == [("unknown", "account_stopped", "5", 1)]


async def test_a_courier_that_returns_too_few_outcomes_loses_those_of_no_other_attempt(stack: Stack) -> None:
    class Forgetful(FakeCourier):
        async def attempt(self, messages: Sequence[Message]) -> Sequence[Outcome]:
            return [] if messages[0].address == "p2" else await super().attempt(messages)

    await stack.courier(Forgetful(remembers=NEVER))
    history = await stack.finished((await stack.deliver(*people(3))).key)
    assert statuses(history) == {1: "sent", 2: "unknown", 3: "sent"}


async def has_no_task(stack: Stack) -> bool:
    return not [key for key in await stack.dump() if ":task:" in key]


async def has_status(stack: Stack, key: HistoryKey, channel: str, status: Status) -> bool:
    return set(statuses(await stack.history(key), channel).values()) == {status}


class NamedCalls(ObservedStore):
    """Notes the functions that write outcomes, in their order."""

    written: list[str]

    async def run(self, name: str, shard: int, *arguments: Argument) -> Any:
        if name in ("extend", "settle"):
            self.written.append(name)
        return await super().run(name, shard, *arguments)

    async def run_replicated(self, name: str, shard: int, *arguments: Argument) -> Any:
        self.written.append(f"{name}, replicated")
        return await super().run_replicated(name, shard, *arguments)


async def test_the_outcome_of_a_single_message_is_written_with_the_end_of_its_claim(stack: Stack) -> None:
    store = await NamedCalls.open(stack.server.url)
    store.written = []
    runtime = await stack.courier(FakeCourier(remembers=NEVER), QUICK, store)
    key = (await stack.deliver(person(1, "echo"), channels=["echo"])).key
    await stack.finished(key)
    await stack.stop(runtime)
    await store.close()
    assert store.written == ["extend, replicated", "settle"]
