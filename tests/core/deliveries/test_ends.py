"""The end of a delivery: expiry, retention, deletion, and what a retry leaves unchanged."""

from collections.abc import Sequence
from itertools import combinations_with_replacement

import pytest

from core.errors import NotFound
from core.model.delivery import Recipient, Sender
from core.model.history_key import HistoryKey
from core.model.states import DeliveryState, Reason, Status, Verdict
from couriers.sending.interface import NEVER, Deferred, Message, Outcome, Rejected, Unknown
from tests.support.delivery_progress import has_reported
from tests.support.servers import on_both_servers
from tests.support.stack import HOUR, TENANT, FakeCourier, Stack, person, sent
from tests.support.waiting import until


async def _has_tried(stack: Stack, key: HistoryKey, mixture: Sequence[str]) -> bool:
    """Return whether what will be sent, fail or be unknown is so, and the rest was tried once."""
    records = (await stack.history(key)).recipients
    ends = [one.outcomes["echo"] for one in records]
    return all(
        one.status == end or (end in ("cancelled", "expired") and one.reason == Reason.THROTTLED)
        for one, end in zip(ends, mixture, strict=True)
    )


def _end_of(mixture: Sequence[str]) -> tuple[DeliveryState, Verdict]:
    """Return the state and the verdict of a delivery whose recipients ended so."""
    if "sent" in mixture:
        return DeliveryState.FINISHED, Verdict.ALL_REACHED if set(mixture) == {"sent"} else Verdict.SOME_REACHED
    if {"failed", "unknown"} & set(mixture):
        return DeliveryState.FINISHED, Verdict.NOTHING_WORKED
    if "expired" in mixture:
        return DeliveryState.EXPIRED, Verdict.NOTHING_WORKED
    return DeliveryState.CANCELLED, Verdict.CANCELLED


class TestEnd:
    @on_both_servers
    async def test_a_delivery_due_without_a_courier_waits_for_one_unless_it_expires(self, stack: Stack) -> None:
        now = stack.now()
        kept = (await stack.deliver(person(1), deliver_at=now + HOUR, expires_at=now + 9 * HOUR)).key
        stale = (await stack.deliver(person(2), deliver_at=now + HOUR, expires_at=now + 2 * HOUR)).key
        stack.advance_clock(3 * HOUR)
        courier = FakeCourier()
        await stack.courier(courier)
        assert (await stack.finished(kept)).verdict is Verdict.ALL_REACHED
        history = await stack.finished(stale)
        assert (history.state, history.counts[Status.EXPIRED], history.verdict) == (
            DeliveryState.EXPIRED,
            1,
            Verdict.NOTHING_WORKED,
        )
        assert courier.addresses == ["p1"]

    async def test_a_delivery_that_expires_half_way_keeps_the_outcomes_of_what_was_sent(self, stack: Stack) -> None:
        await stack.courier(FakeCourier("vk"))
        key = (await stack.deliver(person(1, "vk", "sms"), channels=("vk", "sms"), expires_at=stack.now() + HOUR)).key
        await until(lambda: has_reported(stack, key, 1))
        stack.advance_clock(2 * HOUR)
        history = await stack.finished(key)
        assert history.state is DeliveryState.FINISHED
        assert history.recipients[0].outcomes["sms"].status is Status.EXPIRED
        assert list(history.recipients[0].received_in) == ["vk"]

    async def test_the_state_says_of_every_mixture_of_outcomes_what_is_true_of_all_of_it(self, stack: Stack) -> None:
        """Regression: two failed recipients and one cancelled were a cancelled delivery, whose retry was refused."""
        outcomes: dict[str, Outcome] = {
            "failed": Rejected(Reason.RECIPIENT_UNREACHABLE),
            "unknown": Unknown(),
            "cancelled": Deferred(Reason.THROTTLED, HOUR),
            "expired": Deferred(Reason.THROTTLED, HOUR),
        }
        mixtures = [one for count in (1, 2, 3) for one in combinations_with_replacement([*outcomes, "sent"], count)]

        def respond(message: Message) -> Outcome:
            return outcomes.get(message.address.partition(" ")[0]) or sent(message)

        await stack.courier(FakeCourier(respond=respond, remembers=NEVER))
        keys: list[HistoryKey] = []
        for number, mixture in enumerate(mixtures):
            to = [Recipient(n, contacts={"echo": [f"{end} {number} {n}"]}) for n, end in enumerate(mixture)]
            sender, expires = Sender(number), stack.now() + 2 * HOUR
            keys.append((await stack.deliver(*to, sender=sender, expires_at=expires)).key)
        for key, mixture in zip(keys, mixtures, strict=True):
            await until(lambda key=key, mixture=mixture: _has_tried(stack, key, mixture))  # type: ignore[misc]
            if chosen := [str(n) for n, end in enumerate(mixture) if end == "cancelled"]:
                await stack.deliveries.cancel(key, TENANT, chosen)
        stack.advance_clock(3 * HOUR)
        for key, mixture in zip(keys, mixtures, strict=True):
            history = await stack.finished(key)
            assert [one.outcomes["echo"].status for one in history.recipients] == list(mixture)
            assert (mixture, history.state, history.verdict) == (mixture, *_end_of(mixture))
            failed = sum(end in ("failed", "unknown") for end in mixture)
            assert await stack.deliveries.retry(key, TENANT, [Status.FAILED, Status.UNKNOWN]) == failed

    @on_both_servers
    async def test_a_delivery_and_its_indexes_are_deleted_after_the_retention(self, stack: Stack) -> None:
        await stack.redis.hset("settings:{0}", "retention_ms", str(24 * 3600 * 1000))
        await stack.courier(FakeCourier())
        keys = [(await stack.deliver(person(number))).key for number in range(25)]
        for key in keys:
            await stack.finished(key)
        assert len((await stack.deliveries.list(TENANT))[0]) == 25
        stack.advance_clock(25 * HOUR)
        await stack.tick(times=4)
        for key in keys:
            with pytest.raises(NotFound):
                await stack.history(key)
        assert await stack.deliveries.list(TENANT) == ([], None)
        assert [key for key in stack.server.all_keys() if key.startswith(("history", "deliveries"))] == []

    async def test_expired_outcomes_stay_expired_when_failed_ones_are_retried(self, stack: Stack) -> None:
        """Regression: the retry forgot that a channel had expired, and its recipients became cancelled."""
        await stack.courier(FakeCourier("vk", respond=refuse))
        expires = stack.now() + HOUR
        key = (await stack.deliver(person(1, "vk", "sms"), channels=("vk", "sms"), expires_at=expires)).key
        await until(lambda: has_reported(stack, key, 1))
        stack.advance_clock(2 * HOUR)
        await stack.finished(key)
        await stack.deliveries.retry(key, TENANT, [Status.FAILED])
        history = await stack.finished(key)
        assert history.recipients[0].outcomes["sms"].status is Status.EXPIRED
        assert history.recipients[0].outcomes["vk"].status is Status.FAILED

    async def test_a_delivery_retried_within_its_retention_is_kept_until_it_has_finished(self, stack: Stack) -> None:
        await stack.redis.hset("settings:{0}", "retention_ms", "3600000")
        courier = FakeCourier(respond=refuse)
        running = await stack.courier(courier)
        key = (await stack.deliver(person(1))).key
        await stack.finished(key)
        await stack.stop(running)
        assert await stack.deliveries.retry(key, TENANT, [Status.FAILED]) == 1
        stack.advance_clock(48 * HOUR)
        await stack.tick()
        assert (await stack.history(key)).state is DeliveryState.RELEASED
        assert await stack.redis.pttl(str(key)) == -1


def refuse(message: Message) -> Outcome:
    return Rejected(Reason.BLOCKED)
