"""What ends the work on a parcel early leaves the recipients that were not attempted yet without an attempt."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from core.deliveries.histories.parcels import Entry
from core.model.history_key import HistoryKey
from core.model.json_form import compact_json
from core.model.states import Reason, Status
from core.queue import Task
from core.redis.store import Argument
from couriers.sending.interface import FOREVER, NEVER, Deferred, Message, Outcome, Scope
from couriers.sending.runtime import Runtime
from tests.support.delivery_progress import SECOND, Gate, statuses
from tests.support.observed_store import ObservedStore
from tests.support.stack import HOUR, QUICK, TENANT, FakeCourier, Stack, people, sent
from tests.support.waiting import until

TWO_AT_A_TIME = replace(QUICK, concurrency=2, lease=4 * SECOND)


class Interrupted:
    """A courier that has attempted two of six recipients; both attempts wait at `gate`."""

    def __init__(self, stack: Stack, store: ObservedStore, remembers: timedelta) -> None:
        self.gate = Gate()
        self.courier = FakeCourier(respond=self.gate, remembers=remembers)
        self.key: HistoryKey
        self._stack = stack
        self._store = store
        self._runtime: Runtime

    async def start(self, **options: Any) -> None:
        self._runtime = await self._stack.courier(self.courier, TWO_AT_A_TIME, self._store)
        self.key = (await self._stack.deliver(*people(6), **options)).key
        await until(lambda: len(self.courier.attempted) == 2)

    async def go_on(self) -> None:
        """Let the attempts end. Return when the courier has ended its work on the parcel and attempted another one."""
        self.gate.opened.set()
        await self._stack.finished((await self._stack.deliver(*people(1), text="next")).key)

    async def stop(self) -> None:
        await self._stack.stop(self._runtime)

    @property
    def addresses(self) -> list[str]:
        """The addresses of this parcel's attempts."""
        return [message.address for message in self.courier.attempted if message.text == "hello"]


@pytest.fixture(params=[FOREVER, NEVER], ids=["repeat protection", "no repeat protection"])
async def interrupted(stack: Stack, store: ObservedStore, request: pytest.FixtureRequest) -> AsyncIterator[Interrupted]:
    found = Interrupted(stack, store, request.param)
    yield found
    await found.stop()


async def take_over(stack: Stack) -> Task:
    """Another process claims the parcel after the lease has ended by its clock."""
    stack.advance_clock(HOUR)
    (task,) = await stack.take("echo", owner="another process")
    return task


async def test_a_courier_that_lost_its_lease_sends_to_no_further_recipient(
    stack: Stack, store: ObservedStore, interrupted: Interrupted
) -> None:
    await interrupted.start()
    task = await take_over(stack)
    await until(lambda: store.latest.get("extend") == ["stale"])
    await interrupted.go_on()
    assert interrupted.addresses == ["p1", "p2"]
    assert (await stack.queue.inspector.peek(task.task_id)).state == "taken"
    assert await stack.queue.release(task) == "ready"


async def test_without_repeat_protection_a_lost_lease_is_noticed_before_the_next_attempt(
    stack: Stack, store: ObservedStore
) -> None:
    """Not only with the next periodic extension: each attempt is announced first."""
    found = Interrupted(stack, store, NEVER)
    await found.start()
    task = await take_over(stack)
    await found.go_on()
    assert found.addresses == ["p1", "p2"]
    assert await stack.queue.release(task) == "ready"
    await found.stop()


async def test_after_a_cancellation_no_further_recipient_is_sent_to(
    stack: Stack, store: ObservedStore, interrupted: Interrupted
) -> None:
    await interrupted.start()
    cancelled = await stack.store.run("cancel", interrupted.key.shard, interrupted.key.suffix, TENANT, 1, "[]")
    assert cancelled[0] == "cancelled"
    await until(lambda: store.latest.get("extend", [])[:2] == ["ok", 1])
    await interrupted.go_on()
    assert interrupted.addresses == ["p1", "p2"]
    assert statuses(await stack.finished(interrupted.key)) == {n: "sent" if n < 3 else "cancelled" for n in range(1, 7)}


async def test_without_repeat_protection_a_cancellation_is_noticed_before_the_next_attempt(
    stack: Stack, store: ObservedStore
) -> None:
    found = Interrupted(stack, store, NEVER)
    await found.start()
    await stack.store.run("cancel", found.key.shard, found.key.suffix, TENANT, 1, "[]")
    await found.go_on()
    assert found.addresses == ["p1", "p2"]
    assert statuses(await stack.finished(found.key)) == {n: "sent" if n < 3 else "cancelled" for n in range(1, 7)}
    await found.stop()


async def test_recipients_with_numeric_ids_that_are_cancelled_before_their_turn_are_not_sent_to(
    stack: Stack, store: ObservedStore, interrupted: Interrupted
) -> None:
    await interrupted.start()
    cancelling = asyncio.create_task(stack.deliveries.cancel(interrupted.key, TENANT, ["4", "5"]))
    await until(lambda: store.latest.get("extend", ["", "", ""])[2])
    await interrupted.go_on()
    assert (await cancelling).cancelled == 2
    assert interrupted.addresses == ["p1", "p2", "p3", "p6"]
    wanted = {1: "sent", 2: "sent", 3: "sent", 4: "cancelled", 5: "cancelled", 6: "sent"}
    assert statuses(await stack.finished(interrupted.key)) == wanted


async def test_after_its_expiry_a_delivery_is_sent_to_no_further_recipient(
    stack: Stack, interrupted: Interrupted
) -> None:
    expires_at = stack.now() + 3 * SECOND
    await interrupted.start(expires_at=expires_at)
    await until(lambda: stack.now() > expires_at)
    await interrupted.go_on()
    assert interrupted.addresses == ["p1", "p2"]
    assert statuses(await stack.finished(interrupted.key)) == {n: "sent" if n < 3 else "expired" for n in range(1, 7)}


class SlowReplies(ObservedStore):
    """The replies to claims arrive late."""

    async def run(self, name: str, shard: int, *arguments: Argument) -> Any:
        reply = await super().run(name, shard, *arguments)
        if name == "claim":
            await asyncio.sleep(0.5)
        return reply


async def test_a_late_reply_to_the_claim_does_not_delay_the_expiry(stack: Stack) -> None:
    store = await SlowReplies.open(stack.server.url)
    found = Interrupted(stack, store, NEVER)
    expires_at = stack.now() + 4 * SECOND
    await found.start(expires_at=expires_at)
    await until(lambda: stack.now() > expires_at)
    await found.go_on()
    assert found.addresses == ["p1", "p2"]
    await found.stop()
    await store.close()


class CancelledAtTheLastMoment(ObservedStore):
    """Just before the attempt on recipient 3 is announced, `cancel` runs."""

    cancel: Callable[[], Awaitable[Any]]

    async def run_replicated(self, name: str, shard: int, *arguments: Argument) -> Any:
        if name == "extend" and '["3","i",2,0,1,"sending"' in str(arguments[-1]):
            await self.cancel()
        return await super().run_replicated(name, shard, *arguments)


async def test_without_repeat_protection_a_recipient_cancelled_before_its_announcement_is_not_sent_to(
    stack: Stack,
) -> None:
    store = await CancelledAtTheLastMoment.open(stack.server.url)
    found = Interrupted(stack, store, NEVER)
    entries = compact_json([["echo", 0, Entry(3, 2, 0, 1, "p3").item(Status.CANCELLED)]])
    store.cancel = lambda: stack.store.run("cancel", found.key.shard, found.key.suffix, TENANT, 0, entries)
    await found.start()
    await found.go_on()
    assert sorted(found.addresses) == ["p1", "p2", "p4", "p5", "p6"]
    wanted = {n: "cancelled" if n == 3 else "sent" for n in range(1, 7)}
    assert statuses(await stack.finished(found.key)) == wanted
    await found.stop()
    await store.close()


@pytest.mark.parametrize("scope", [Scope.ACCOUNT, Scope.METHOD])
async def test_after_a_throttle_of_the_account_no_further_recipient_of_the_parcel_is_attempted_until_it_ends(
    stack: Stack, scope: Scope
) -> None:
    wait = timedelta(seconds=0.6)
    attempts: list[tuple[str, float]] = []

    def respond(message: Message) -> Outcome:
        attempts.append((message.address, time.monotonic()))
        return Deferred(Reason.THROTTLED, wait, scope) if len(attempts) == 2 else sent(message)

    await stack.courier(FakeCourier(respond=respond), replace(QUICK, concurrency=2))
    key = (await stack.deliver(*people(4))).key
    history = await stack.finished(key)
    assert set(statuses(history).values()) == {"sent"}
    throttled = attempts[1][1]
    meanwhile = [address for address, at in attempts[2:] if at < throttled + wait.total_seconds() - 0.01]
    assert len(meanwhile) <= 1  # the other attempt that had its batch already
    assert len(attempts) == 5
