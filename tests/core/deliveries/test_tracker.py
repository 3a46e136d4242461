"""The tracker: callers are notified about changes of a history, however many there are, also after lost connections."""

import asyncio
import time
from datetime import timedelta

import pytest

from core.deliveries.tracker import Tracker
from core.errors import NotFound
from core.model.history import HistoryChange
from core.model.history_key import HistoryKey
from core.model.states import DeliveryState, Status
from core.redis.keys import KEYS
from couriers.sending.interface import Message, Outcome
from tests.support.delivery_progress import Gate, has_reported, slowly
from tests.support.every_verb import report_token
from tests.support.servers import on_both_servers
from tests.support.stack import HOUR, SENDER, TENANT, FakeCourier, Stack, people, person, sent
from tests.support.waiting import until


class TestWaiting:
    @on_both_servers
    async def test_waiting_ends_as_soon_as_enough_channels_have_reported(self, stack: Stack) -> None:
        gates = {channel: Gate() for channel in ("vk", "sms")}
        for channel, gate in gates.items():
            await stack.courier(FakeCourier(channel, respond=gate))
        key = (await stack.deliver(person(1, "vk", "sms"), channels=("vk", "sms"))).key
        one = asyncio.create_task(stack.tracker.wait(key, TENANT, 1, 10))
        both = asyncio.create_task(stack.tracker.wait(key, TENANT, 2, 10))
        gates["sms"].opened.set()
        history, timed_out = await one
        assert history
        assert (history.reported, timed_out, list(history.recipients[0].received_in)) == (1, False, ["sms"])
        assert not both.done(), both.result()
        gates["vk"].opened.set()
        history, timed_out = await both
        assert history
        assert (history.state, timed_out) == (DeliveryState.FINISHED, False)

    async def test_waiting_ends_at_its_timeout_with_the_history_so_far(self, stack: Stack) -> None:
        key = (await stack.deliver(person(1))).key
        began = time.monotonic()
        history, timed_out = await stack.tracker.wait(key, TENANT, 1, 0.3)
        assert time.monotonic() - began >= 0.3
        assert history
        assert (timed_out, history.state) == (True, DeliveryState.RELEASED)

    async def test_a_timeout_of_zero_only_reads(self, stack: Stack) -> None:
        key = (await stack.deliver(person(1))).key
        history, timed_out = await stack.tracker.wait(key, TENANT, 1, 0)
        assert history
        assert timed_out

    async def test_waiting_for_more_reports_than_channels_waits_for_all_channels(self, stack: Stack) -> None:
        await stack.courier(FakeCourier())
        key = (await stack.deliver(person(1))).key
        history, timed_out = await stack.tracker.wait(key, TENANT, 16, 5)
        assert history
        assert (history.state, timed_out) == (DeliveryState.FINISHED, False)

    async def test_a_channel_without_recipients_counts_as_reported(self, stack: Stack) -> None:
        await stack.courier(FakeCourier("vk"))
        key = (await stack.deliver(person(1, "vk"), channels=("vk", "sms"))).key
        history, timed_out = await stack.tracker.wait(key, TENANT, 2, 5)
        assert history
        assert (history.reported, timed_out) == (2, False)

    @on_both_servers
    async def test_a_caller_can_wait_before_the_delivery_exists(self, stack: Stack) -> None:
        await stack.courier(FakeCourier())
        key = await stack.deliveries.reserve(TENANT, SENDER.id)
        waiting = asyncio.create_task(stack.tracker.wait(key, TENANT, 1, 10))
        assert await stack.tracker.wait(key, TENANT, 1, 0) == (None, True)
        await stack.deliver(person(1), history_key=key)
        history, timed_out = await waiting
        assert history
        assert (history.state, timed_out) == (DeliveryState.FINISHED, False)

    async def test_an_unknown_key_and_another_tenants_key_are_not_found(self, stack: Stack) -> None:
        key = (await stack.deliver(person(1))).key
        reserved = await stack.deliveries.reserve("another", 7)
        for unknown, tenant in [(key, "another"), (HistoryKey(0, "7", 10**18), TENANT), (reserved, TENANT)]:
            with pytest.raises(NotFound):
                await stack.tracker.wait(unknown, tenant, 1, 1)

    async def test_thousands_of_callers_share_one_connection(self, stack: Stack) -> None:
        gate = Gate()
        await stack.courier(FakeCourier(respond=gate))
        keys = [(await stack.deliver(person(number))).key for number in range(20)]
        before = len(await stack.redis.client_list())
        waiting = [asyncio.create_task(stack.tracker.wait(keys[n % 20], TENANT, 1, 30)) for n in range(3000)]
        await until(lambda: reading(stack))
        assert len(await stack.redis.client_list()) <= before + 1
        gate.opened.set()
        results = await asyncio.gather(*waiting)
        assert all(history and not timed_out for history, timed_out in results)
        await until(lambda: not_reading(stack))

    async def test_waiting_ends_although_the_connection_is_killed(self, stack: Stack) -> None:
        gate = Gate()
        await stack.courier(FakeCourier(respond=gate))
        key = (await stack.deliver(person(1))).key
        waiting = asyncio.create_task(stack.tracker.wait(key, TENANT, 1, 20))
        await until(lambda: reading(stack))
        await kill_readers(stack)
        gate.opened.set()
        history, timed_out = await waiting
        assert history
        assert not timed_out

    async def test_waiting_ends_although_the_stream_was_trimmed_while_the_connection_was_lost(
        self, stack: Stack
    ) -> None:
        await stack.courier(FakeCourier())
        key = await stack.deliveries.reserve(TENANT, SENDER.id)
        waiting = asyncio.create_task(stack.tracker.wait(key, TENANT, 1, 20))
        await until(lambda: reading(stack))
        await kill_readers(stack)
        await stack.deliver(person(1), history_key=key)
        await stack.finished(key)
        await stack.redis.xtrim("events:{0}", maxlen=0)
        history, timed_out = await asyncio.wait_for(waiting, 15)
        assert history
        assert not timed_out
        await stack.deliver(person(2))


async def readers(stack: Stack) -> list[str]:
    return [client["id"] for client in await stack.redis.client_list() if client["cmd"] == "xread"]


async def reading(stack: Stack) -> bool:
    return bool(await readers(stack))


async def not_reading(stack: Stack) -> bool:
    return not await readers(stack)


async def kill_readers(stack: Stack) -> None:
    for one in await readers(stack):
        await stack.redis.client_kill_filter(_id=one)


class TestFollowing:
    @on_both_servers
    async def test_changes_come_in_order_and_the_end_last(self, stack: Stack) -> None:
        await stack.courier(FakeCourier(respond=slowly, parcel=5))
        key = await stack.deliveries.reserve(TENANT, SENDER.id)
        await stack.deliver(*people(50), history_key=key)
        changes = await collect(stack, key)
        assert [change.version for change in changes] == sorted({change.version for change in changes})
        assert {change.recipient for change in changes[:-1]} == set(range(1, 51))
        assert all(change.outcome and change.outcome.status is Status.SENT for change in changes[:-1])
        assert (changes[-1].recipient, changes[-1].state) == (None, DeliveryState.FINISHED)

    async def test_a_late_caller_gets_the_changes_after_its_version(self, stack: Stack) -> None:
        await stack.courier(FakeCourier())
        key = (await stack.deliver(*people(10))).key
        await stack.finished(key)
        everything = await collect(stack, key)
        assert len(everything) == 11
        middle = everything[4].version
        assert [change.version for change in await collect(stack, key, middle)] == [
            change.version for change in everything[5:]
        ]

    async def test_ids_keep_their_type(self, stack: Stack) -> None:
        await stack.courier(FakeCourier())
        key = (await stack.deliver(person(1), person("x"))).key
        await stack.finished(key)
        assert {change.recipient for change in await collect(stack, key)} == {1, "x", None}

    @on_both_servers
    async def test_no_change_is_missed_although_the_connection_is_killed_repeatedly(self, stack: Stack) -> None:
        courier = FakeCourier(respond=with_a_delay, parcel=5)
        await stack.courier(courier)
        key = (await stack.deliver(*people(100))).key
        following = asyncio.create_task(collect(stack, key))
        while not following.done():
            await kill_readers(stack)
            await asyncio.wait([following], timeout=0.05)
        changes = await following
        assert {change.recipient for change in changes} == {*range(1, 101), None}
        assert len({change.version for change in changes}) == len(changes)

    async def test_following_a_finished_delivery_yields_later_delivery_reports(self, stack: Stack) -> None:
        await stack.courier(FakeCourier())
        key = (await stack.deliver(person(1))).key
        version = (await stack.finished(key)).version
        await stack.deliveries.record_report(await report_token(stack, key), Status.DELIVERED, "r")
        changes = await collect(stack, key, version)
        assert [change.outcome.status for change in changes if change.outcome] == [Status.DELIVERED]

    async def test_the_end_comes_once_and_has_a_version_of_its_own(self, stack: Stack) -> None:
        """Regression: after a late delivery report the end had the report's version, and it was always repeated."""
        await stack.courier(FakeCourier())
        key = (await stack.deliver(*people(2))).key
        end = (await stack.finished(key)).version
        assert await collect(stack, key, end) == []
        for status in (Status.DELIVERED, Status.READ):
            await stack.deliveries.record_report(await report_token(stack, key), status, "r")
            changes = await collect(stack, key)
            versions = [change.version for change in changes]
            assert versions == sorted(set(versions))
            assert [change.recipient for change in changes] == [2, 1, None]
            late = await collect(stack, key, end)
            assert [change.outcome and change.outcome.status for change in late] == [status, None]
            end = late[-1].version
            assert await collect(stack, key, end) == []
            assert (await stack.history(key)).version == end

    async def test_each_new_time_is_a_change_with_a_version_of_its_own(self, stack: Stack) -> None:
        await stack.courier(FakeCourier())
        now = stack.now().replace(microsecond=0)
        key = (await stack.deliver(person(1), deliver_at=now + HOUR)).key
        changes = stack.tracker.follow(key, TENANT)
        for hours in (2, 3):
            await stack.deliveries.reschedule(key, TENANT, now + hours * HOUR)
            change = await anext(changes)
            assert (change.recipient, change.state) == (None, DeliveryState.SCHEDULED)
            assert change.deliver_at == now + hours * HOUR
            assert change.version == (await stack.history(key)).version
            late = stack.tracker.follow(key, TENANT, change.version - 1)
            assert await anext(late) == change, "a reader that resumes gets it, too"
            await late.aclose()
        await stack.deliveries.reschedule(key, TENANT, now - HOUR)
        rest = [change async for change in changes]
        assert rest[0].outcome is None
        assert rest[0].deliver_at is not None
        assert rest[0].deliver_at >= now, "it is sent at once"
        assert [one.outcome.status for one in rest[1:-1] if one.outcome][-1] is Status.SENT
        assert rest[-1].state is DeliveryState.FINISHED
        versions = [one.version for one in rest]
        assert versions == sorted(set(versions))

    async def test_a_cancelled_delivery_ends_the_stream(self, stack: Stack) -> None:
        key = (await stack.deliver(person(1), deliver_at=stack.now() + HOUR)).key
        following = asyncio.create_task(collect(stack, key))
        await until(lambda: reading(stack))
        await stack.deliveries.cancel(key, TENANT)
        assert (await following)[-1].state is DeliveryState.CANCELLED

    async def test_an_unknown_key_is_not_found(self, stack: Stack) -> None:
        with pytest.raises(NotFound):
            await collect(stack, HistoryKey(0, "7", 10**18))

    async def test_two_trackers_follow_the_same_delivery(self, stack: Stack) -> None:
        await stack.courier(FakeCourier(respond=slowly))
        other = Tracker(stack.store)
        key = (await stack.deliver(*people(30))).key
        first, second = await asyncio.gather(collect(stack, key), collect(stack, key, tracker=other))
        assert first == second
        await other.close()


async def with_a_delay(message: Message) -> Outcome:
    await asyncio.sleep(0.1)
    return sent(message)


async def collect(stack: Stack, key: HistoryKey, after: int = 0, tracker: Tracker | None = None) -> list[HistoryChange]:
    found = [change async for change in (tracker or stack.tracker).follow(key, TENANT, after)]
    assert await has_reported(stack, key, 0)
    return found


async def test_the_tracker_is_not_needed(stack: Stack) -> None:
    """D-16: a delivery does not depend on a subscriber."""
    await stack.courier(FakeCourier())
    await stack.finished((await stack.deliver(person(1))).key, within=timedelta(seconds=5).total_seconds())


async def test_what_changes_after_a_promotion_has_numbers_that_no_caller_has_seen(stack: Stack) -> None:
    """The promoted server may lack changes that a caller has read: it would miss those that got their numbers."""
    await stack.courier(FakeCourier())
    key = (await stack.deliver(person(1))).key
    await stack.finished(key)
    seen = [change.version async for change in stack.tracker.follow(key, TENANT)]
    await stack.store.command("HSET", KEYS["primary"].at(0), "epoch", 1)
    await stack.deliveries.record_report(await report_token(stack, key), Status.DELIVERED, "1")
    lost = max(seen) + 20
    outcome, end = [change async for change in stack.tracker.follow(key, TENANT, lost)]
    assert outcome.outcome
    assert outcome.outcome.status is Status.DELIVERED
    assert [outcome.version, end.version] == [1_000_001, 1_000_002]
