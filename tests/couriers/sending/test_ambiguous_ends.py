"""I18: what may have been sent never ends as failed, cancelled or expired (D-38)."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import msgspec
import pytest

from core.model.clock import Backoff
from core.model.delivery import DeliveryCancelled
from core.model.history import History, OutcomeRecord
from core.model.history_key import HistoryKey, Id
from core.model.states import DeliveryState, Reason, Status
from core.monitoring import Recorder
from core.queue.task import ClaimRequest
from couriers.sending.interface import (
    FOREVER,
    NEVER,
    Deferred,
    Halted,
    Message,
    Outcome,
    Partly,
    Rejected,
    Sent,
    Unknown,
)
from couriers.sending.runtime import Runtime
from tests.support.delivery_progress import SECOND, Gate, by_address, statuses
from tests.support.stack import HOUR, QUICK, TENANT, FakeCourier, Stack, people, person
from tests.support.stored_tasks import stored_facts
from tests.support.waiting import until

BLOCKED = Rejected(Reason.BLOCKED)
SHORT_LEASE = replace(QUICK, lease=0.5 * SECOND)


def one_after_the_other(*outcomes: Outcome) -> Callable[[Message], Outcome]:
    """The last one is repeated."""
    left = list(outcomes)
    return lambda message: left.pop(0) if len(left) > 1 else left[0]


def outcome(history: History, recipient: Id = 1) -> OutcomeRecord:
    return next(one for one in history.recipients if one.id == recipient).outcomes["echo"]


async def retried(stack: Stack, key: HistoryKey) -> int:
    return await stack.deliveries.retry(key, TENANT, [Status.FAILED])


class TestAfterAnUnclearAttempt:
    async def test_a_refused_repeat_is_unknown_with_the_reason_of_the_refusal(self, stack: Stack) -> None:
        await stack.courier(FakeCourier(respond=one_after_the_other(Unknown(), BLOCKED)))
        key = (await stack.deliver(person(1))).key
        found = outcome(await stack.finished(key))
        assert (found.status, found.reason, found.attempts) == (Status.UNKNOWN, Reason.BLOCKED, 2)
        assert await retried(stack, key) == 0

    async def test_repeats_that_are_deferred_until_the_last_attempt_are_unknown(self, stack: Stack) -> None:
        await stack.courier(FakeCourier(respond=one_after_the_other(Unknown(), Deferred(Reason.THROTTLED))))
        found = outcome(await stack.finished((await stack.deliver(person(1))).key))
        assert (found.status, found.reason) == (Status.UNKNOWN, Reason.THROTTLED)
        assert found.attempts == QUICK.backoff.attempts

    async def test_a_repeat_that_is_accepted_is_sent(self, stack: Stack) -> None:
        respond = one_after_the_other(Unknown(), Deferred(Reason.THROTTLED), Sent("5"))
        await stack.courier(FakeCourier(respond=respond))
        assert outcome(await stack.finished((await stack.deliver(person(1))).key)).status is Status.SENT

    async def test_a_refusal_after_a_wait_during_which_the_provider_forgets_the_random_id_is_not_asked_for(
        self, stack: Stack
    ) -> None:
        """The wait is longer than the provider's memory: a repeat would be a second message."""
        courier = FakeCourier(
            respond=one_after_the_other(Unknown(), Deferred(Reason.THROTTLED, 2 * HOUR)), remembers=HOUR
        )
        await stack.courier(courier)
        key = (await stack.deliver(person(1))).key
        await until(lambda: len(courier.attempted) == 2)
        await stack.have_noted()
        stack.advance_clock(3 * HOUR)
        assert outcome(await stack.finished(key)).status is Status.UNKNOWN
        assert len(courier.attempted) == 2


class TestAMessageInParts:
    @pytest.mark.parametrize("remembers", [FOREVER, NEVER])
    async def test_a_refused_second_part_is_unknown_with_the_reason_and_the_reference_of_the_first(
        self, stack: Stack, remembers: timedelta
    ) -> None:
        await stack.courier(FakeCourier(respond=lambda message: Partly(BLOCKED, "5"), remembers=remembers))
        key = (await stack.deliver(person(1))).key
        found = outcome(await stack.finished(key))
        assert (found.status, found.reason, found.reference) == (Status.UNKNOWN, Reason.BLOCKED, "5")
        assert await retried(stack, key) == 0

    async def test_a_deferred_second_part_is_repeated_where_the_provider_recognises_the_first(
        self, stack: Stack
    ) -> None:
        respond = one_after_the_other(Partly(Deferred(Reason.THROTTLED), "5"), Sent("5,6"))
        await stack.courier(FakeCourier(respond=respond))
        assert outcome(await stack.finished((await stack.deliver(person(1))).key)).reference == "5,6"

    async def test_a_deferred_second_part_is_not_repeated_where_the_first_would_double(self, stack: Stack) -> None:
        courier = FakeCourier(respond=lambda message: Partly(Deferred(Reason.THROTTLED), "5"), remembers=NEVER)
        await stack.courier(courier)
        found = outcome(await stack.finished((await stack.deliver(person(1))).key))
        assert (found.status, found.reason, found.reference) == (Status.UNKNOWN, Reason.THROTTLED, "5")
        assert len(courier.attempted) == 1

    async def test_an_account_that_is_halted_before_the_second_part_leaves_the_entry_unclear(
        self, stack: Stack
    ) -> None:
        runtime = await stack.courier(FakeCourier(respond=lambda message: Partly(Halted("banned"), "5")))
        key = (await stack.deliver(person(1))).key
        await until(lambda: runtime.halted)
        await stack.stop(runtime)
        assert (await stack.deliveries.cancel(key, TENANT)).in_flight == [1]
        assert outcome(await stack.finished(key)).status is Status.UNKNOWN


class TestAfterACrash:
    """A courier is lost during its attempts; the lease ends."""

    async def crash(self, stack: Stack, key: HistoryKey, courier: FakeCourier, runtime: Runtime, attempts: int) -> None:
        """The courier is lost in the middle of these attempts."""
        await until(lambda: len(courier.attempted) == attempts)
        stack.abandon(runtime)

    async def lose(self, stack: Stack, count: int, **options: object) -> HistoryKey:
        """A delivery to `count` people whose only attempt was lost."""
        stuck = FakeCourier(respond=Gate(), **options)  # type: ignore[arg-type]
        runtime = await stack.courier(stuck)
        key = (await stack.deliver(*people(count), expires_at=stack.now() + HOUR)).key
        await self.crash(stack, key, stuck, runtime, min(count, 2))
        await end_lease(stack)
        return key

    async def test_a_refused_repeat_is_unknown(self, stack: Stack) -> None:
        key = await self.lose(stack, 2)
        await stack.courier(FakeCourier(respond=by_address(p1=BLOCKED)))
        history = await stack.finished(key)
        assert statuses(history) == {1: "unknown", 2: "sent"}
        assert outcome(history).reason == Reason.BLOCKED
        assert await retried(stack, key) == 0

    async def test_what_was_retried_meanwhile_is_sent_by_its_new_parcel_alone(self, stack: Stack) -> None:
        gate, answers = Gate(), [BLOCKED]

        async def respond(message: Message) -> Outcome:
            return answers.pop() if message.address == "p1" and answers else await gate(message)

        stuck = FakeCourier(respond=respond, remembers=FOREVER)
        runtime = await stack.courier(stuck)
        key = (await stack.deliver(*people(2))).key
        await until(lambda: has_status(stack, key, 1, Status.FAILED))
        assert await retried(stack, key) == 1
        await self.crash(stack, key, stuck, runtime, 3)
        await end_lease(stack)
        again = FakeCourier(respond=Gate(), remembers=FOREVER)
        await stack.courier(again)
        await until(lambda: {"p1", "p2"} <= set(again.addresses))
        again.respond.opened.set()  # type: ignore[attr-defined]
        assert statuses(await stack.finished(key)) == {1: "sent", 2: "sent"}
        assert sorted(again.addresses) == ["p1", "p2"]

    async def test_it_stays_unclear_through_later_claims(self, stack: Stack) -> None:
        key = await self.lose(stack, 1)
        await stack.courier(FakeCourier(respond=one_after_the_other(Deferred(Reason.THROTTLED, SECOND / 10), BLOCKED)))
        assert outcome(await stack.finished(key)).status is Status.UNKNOWN

    @pytest.mark.parametrize(("chosen", "state"), [(["1", "2"], DeliveryState.FINISHED), ([], DeliveryState.CANCELLED)])
    async def test_a_cancellation_before_the_next_claim_is_unknown(
        self, stack: Stack, chosen: list[str], state: DeliveryState
    ) -> None:
        key = await self.lose(stack, 2)
        result = await stack.deliveries.cancel(key, TENANT, chosen)
        assert result == DeliveryCancelled(0, [], [1, 2])
        history = await stack.finished(key)
        assert statuses(history) == {1: "unknown", 2: "unknown"}
        assert (outcome(history).reason, history.state) == (Reason.CRASHED, state)
        assert (await stack.deliveries.cancel(key, TENANT)).in_flight == [1, 2]

    async def test_a_cancellation_before_the_lease_ends_is_unknown(self, stack: Stack) -> None:
        stuck = FakeCourier(respond=Gate())
        runtime = await stack.courier(stuck)
        key = (await stack.deliver(*people(2))).key
        await self.crash(stack, key, stuck, runtime, 2)
        assert await stack.deliveries.cancel(key, TENANT) == DeliveryCancelled(0, [], [1, 2])
        assert statuses(await stack.history(key)) == {1: "queued", 2: "queued"}
        await end_lease(stack)
        assert statuses(await stack.finished(key)) == {1: "unknown", 2: "unknown"}

    async def test_an_expiry_before_the_next_claim_is_unknown(self, stack: Stack) -> None:
        key = await self.lose(stack, 2)
        stack.advance_clock(HOUR)
        await stack.tick()
        history = await stack.finished(key)
        assert statuses(history) == {1: "unknown", 2: "unknown"}
        assert (outcome(history).reason, history.state) == (Reason.CRASHED, DeliveryState.FINISHED)

    async def test_a_task_that_an_operator_cancels_is_unknown(self, stack: Stack) -> None:
        key = await self.lose(stack, 1)
        await stack.queue.cancel(task_id(key))
        assert outcome(await stack.finished(key)).status is Status.UNKNOWN

    @pytest.mark.parametrize("ends", ["cancelled", "expired", "refused"])
    async def test_a_recipient_whose_wait_was_longer_than_the_lost_claim_was_not_attempted(
        self, stack: Stack, ends: str
    ) -> None:
        waits = by_address(p1=Deferred(Reason.THROTTLED, HOUR / 2), p2=Deferred(Reason.THROTTLED, SECOND / 10))
        first = await stack.courier(FakeCourier(respond=waits))
        key = (await stack.deliver(*people(2), expires_at=stack.now() + HOUR)).key
        await until(lambda: is_waiting(stack, key))
        await stack.stop(first)
        stuck = FakeCourier(respond=Gate())
        await self.crash(stack, key, stuck, await stack.courier(stuck), 1)
        await end_lease(stack)
        if ends == "cancelled":
            await stack.deliveries.cancel(key, TENANT)
        elif ends == "expired":
            stack.advance_clock(HOUR)
            await stack.tick()
        else:
            await stack.courier(FakeCourier(respond=lambda message: BLOCKED))
            await until(lambda: has_status(stack, key, 2, Status.UNKNOWN))
            stack.advance_clock(HOUR / 2)
        end = {"cancelled": "cancelled", "expired": "expired", "refused": "failed"}[ends]
        assert statuses(await stack.finished(key)) == {1: end, 2: "unknown"}

    @pytest.mark.parametrize("ends", ["cancelled", "chosen", "expired", "retried", "claimed again"])
    async def test_a_recipient_whose_hours_had_not_begun_was_not_attempted_in_a_lost_first_claim(
        self, stack: Stack, ends: str
    ) -> None:
        stuck = FakeCourier(respond=Gate(), remembers=2 * HOUR)
        runtime = await stack.courier(stuck)
        later = msgspec.structs.replace(person(1), hours=hours_from(stack.now() + 3 * HOUR))
        key = (await stack.deliver(later, person(2), expires_at=stack.now() + 5 * HOUR)).key
        await self.crash(stack, key, stuck, runtime, 1)
        await end_lease(stack)
        if ends == "cancelled":
            assert await stack.deliveries.cancel(key, TENANT) == DeliveryCancelled(1, [], [2])
        elif ends == "chosen":
            assert await stack.deliveries.cancel(key, TENANT, ["1"]) == DeliveryCancelled(1, [], [])
            await stack.courier(FakeCourier())
        elif ends == "expired":
            stack.advance_clock(5 * HOUR)
            await stack.tick()
        elif ends == "retried":
            await stack.courier(FakeCourier(respond=lambda message: BLOCKED))
            await until(lambda: has_status(stack, key, 2, Status.UNKNOWN))
            assert await stack.deliveries.retry(key, TENANT, [Status.UNKNOWN]) == 1
            stack.advance_clock(3 * HOUR)
        else:
            await stack.courier(FakeCourier(remembers=2 * HOUR))
            await until(lambda: has_status(stack, key, 2, Status.SENT))
            stack.advance_clock(3 * HOUR)
        expected = {
            "cancelled": {1: "cancelled", 2: "unknown"},
            "chosen": {1: "cancelled", 2: "sent"},
            "expired": {1: "expired", 2: "unknown"},
            "retried": {1: "failed", 2: "failed"},
            "claimed again": {1: "sent", 2: "sent"},
        }
        assert statuses(await stack.finished(key)) == expected[ends]

    async def test_where_attempts_are_announced_only_these_recipients_are_unknown(
        self, stack: Stack, caplog: pytest.LogCaptureFixture
    ) -> None:
        stuck = FakeCourier(respond=Gate(), remembers=NEVER)
        runtime = await stack.courier(stuck, replace(QUICK, concurrency=2))
        key = (await stack.deliver(*people(5))).key
        await self.crash(stack, key, stuck, runtime, 2)
        await end_lease(stack)
        recorder, now = Recorder(stack.store, stack.queue), int(stack.now().timestamp() * 1000)
        await recorder.record(now)
        assert await stack.deliveries.cancel(key, TENANT) == DeliveryCancelled(3, [], [1, 2])
        history = await stack.finished(key)
        assert statuses(history) == {1: "unknown", 2: "unknown", 3: "cancelled", 4: "cancelled", 5: "cancelled"}
        for seconds in (10, 20):
            await recorder.record(now + seconds * 1000)
        assert [one.getMessage() for one in caplog.records if "crashed" in one.getMessage()] == [
            "echo: 2 ended as unknown, crashed: a process was lost while sending them"
        ]

    async def test_the_log_names_each_recipient_that_a_lost_process_may_have_sent_to_without_an_address(
        self, stack: Stack, caplog: pytest.LogCaptureFixture
    ) -> None:
        stuck = FakeCourier(respond=Gate(), remembers=NEVER)
        runtime = await stack.courier(stuck, replace(QUICK, concurrency=2))
        key = (await stack.deliver(person(17), person("echo:p2"))).key
        await self.crash(stack, key, stuck, runtime, 2)
        await end_lease(stack)
        await stack.courier(FakeCourier(remembers=NEVER))
        await stack.finished(key)
        said = sorted(one.getMessage() for one in caplog.records if "crashed" in one.getMessage())
        assert said == [
            f"echo: unknown, crashed: delivery {key.id}, recipient {who}; the process that was sending it was lost"
            for who in ("17", "number 2")
        ]

    async def test_several_large_parcels_are_cancelled_in_pages(self, stack: Stack) -> None:
        ids = [2**62 + number for number in range(1200)]
        await stack.courier(stuck := FakeCourier(respond=Gate(), parcel=300))
        key = (await stack.deliver(*(person(number) for number in ids))).key
        await until(lambda: stuck.attempted)
        for runtime in list(stack.runtimes):
            stack.abandon(runtime)
        await stack.queue.claim(0, ClaimRequest("echo", "lost", 10, SECOND, SECOND, budget=2000))
        await end_lease(stack)
        result = await stack.deliveries.cancel(key, TENANT)
        assert (result.cancelled, list(result.already_sent), list(result.in_flight)) == (0, [], ids)
        history = await stack.finished(key)
        assert (history.state, history.counts[Status.UNKNOWN]) == (DeliveryState.CANCELLED, 1200)

    async def test_a_parcel_that_is_buried_and_kicked_is_not_sent_again_where_a_repeat_would_double(
        self, stack: Stack
    ) -> None:
        """Regression: after a kick the parcel looked as if it had never been claimed."""
        key = await self.lose(stack, 2, remembers=NEVER)
        await stack.queue.bury(task_id(key))
        await stack.queue.kick(task_id(key))
        courier = FakeCourier(remembers=NEVER)
        await stack.courier(courier)
        assert statuses(await stack.finished(key)) == {1: "unknown", 2: "unknown"}
        assert courier.attempted == []

    async def test_a_parcel_that_the_next_worker_releases_is_still_known_to_be_unclear(self, stack: Stack) -> None:
        key = await self.lose(stack, 1)
        (task,) = await stack.take("echo")
        await stack.queue.release(task)
        assert (await stack.deliveries.cancel(key, TENANT)).in_flight == [1]


def hours_from(begin: datetime) -> str:
    return f"{begin:%H:%M}-{begin + 2 * HOUR:%H:%M} UTC"


async def end_lease(stack: Stack) -> None:
    stack.advance_clock(timedelta(minutes=1))
    await stack.tick()


async def is_waiting(stack: Stack, key: HistoryKey) -> bool:
    return (await stored_facts(stack.redis, f"{key.ns}.{key.sender}.echo.0")).get("state") == "waiting"


async def has_status(stack: Stack, key: HistoryKey, recipient: Id, status: Status) -> bool:
    return outcome(await stack.history(key), recipient).status is status


def task_id(key: HistoryKey) -> str:
    return f"0.{key.ns}.{key.sender}.echo.0"


class TestAProviderThatForgets:
    """A random id is remembered for an hour, counted from the first attempt that had an unclear end."""

    async def test_after_a_crash_a_message_is_not_repeated_once_its_id_is_forgotten(self, stack: Stack) -> None:
        stuck = FakeCourier(respond=Gate(), remembers=HOUR)
        runtime = await stack.courier(stuck)
        key = (await stack.deliver(*people(2))).key
        await until(lambda: len(stuck.attempted) == 2)
        stack.abandon(runtime)
        stack.advance_clock(2 * HOUR)
        courier = FakeCourier(remembers=HOUR)
        await stack.courier(courier)
        assert statuses(await stack.finished(key)) == {1: "unknown", 2: "unknown"}
        assert courier.attempted == []

    async def test_a_second_unclear_attempt_does_not_make_the_id_younger(self, stack: Stack) -> None:
        """The second attempt is after 50 minutes, and the third would come 25 to 50 minutes later."""
        pauses = Backoff(timedelta(minutes=50), timedelta(minutes=50), 8)
        courier = FakeCourier(respond=lambda message: Unknown(), remembers=HOUR)
        await stack.courier(courier, replace(QUICK, backoff=pauses))
        key = (await stack.deliver(person(1))).key
        await until(lambda: len(courier.attempted) == 1)
        await stack.have_noted()
        stack.advance_clock(timedelta(minutes=50))
        assert outcome(await stack.finished(key)).status is Status.UNKNOWN
        assert len(courier.attempted) == 2
