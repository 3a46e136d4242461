"""One message a day: what all deliveries bring to a person at its hour, over shards, processes and kills."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from core.model.contacts.subscription import Subscription
from core.model.content import Content, Limits, ParseMode
from core.model.delivery import Recipient
from core.model.history_key import HistoryKey
from core.model.states import Reason, Status
from couriers.sending.interface import NEVER, Deferred, Halted, Message, Outcome, Rejected, Sent, Unknown
from tests.support.delivery_progress import SECOND
from tests.support.servers import Server
from tests.support.stack import HOUR, QUICK, TENANT, FakeCourier, PaidCourier, Stack, person
from tests.support.waiting import until

WINDOW = replace(QUICK, lease=2 * SECOND)
WIDE_WINDOW = replace(QUICK, lease=10 * SECOND)  # for parts that are not claimed in one step
LONG_WINDOW = replace(QUICK, lease=10 * HOUR)
PART = ("sent", Reason.IN_DAY_MESSAGE, "")
LAST = ("sent", Reason.IN_DAY_MESSAGE, "ref-p1")
ALL_OF_THREE = "1/3 · one\n\n2/3 · two\n\n3/3 · three"


def daily(stack: Stack, number: int = 1, *channels: str) -> Recipient:
    """A person who wants one message a day, in two hours."""
    at = stack.now() + 2 * HOUR
    return msgspec.structs.replace(person(number, *channels), hours=f"{at:%H:%M}-{at:%H:%M} UTC")


async def reach_the_hour(stack: Stack) -> None:
    stack.advance_clock(2 * HOUR)
    await stack.tick()


async def deliver(stack: Stack, *texts: str) -> list[HistoryKey]:
    return [(await stack.deliver(daily(stack), text=text)).key for text in texts]


async def end(stack: Stack, key: HistoryKey) -> tuple[str, str | None, str]:
    one = (await stack.finished(key)).recipients[0].outcomes["echo"]
    return one.status, one.reason, one.reference or ""


async def ends(stack: Stack, keys: Sequence[HistoryKey]) -> list[tuple[str, str | None, str]]:
    return [await end(stack, key) for key in keys]


async def is_sending(stack: Stack, keys: Sequence[HistoryKey]) -> bool:
    """Whether all of these are announced, and their parts wait for the window."""
    waiting = [await stack.redis.hget(name, "waiting") for name in await stack.redis.keys("daily:*")]
    return [int(one or 0) for one in waiting] == [len(keys)]


async def end_leases(stack: Stack) -> None:
    stack.advance_clock(timedelta(minutes=1))
    await stack.tick()


def texts(courier: FakeCourier) -> list[str]:
    return sorted(message.text for message in courier.attempted)


async def test_all_texts_of_a_day_come_as_one_message_over_shards_and_processes(server: Server) -> None:
    stack = await Stack.open(server, shards=16)
    couriers = [FakeCourier(remembers=NEVER), FakeCourier(remembers=NEVER)]
    for courier in couriers:
        await stack.courier(courier, WIDE_WINDOW)
    keys = await deliver(stack, "one", "two", "three")
    alone = (await stack.deliver(daily(stack, 2), text="alone")).key
    assert len({key.shard for key in keys}) > 1
    await reach_the_hour(stack)
    assert await ends(stack, [*keys, alone]) == [PART, PART, LAST, ("sent", None, "ref-p2")]
    assert sorted([*texts(couriers[0]), *texts(couriers[1])]) == [ALL_OF_THREE, "alone"]
    await stack.audit()
    await stack.close()


async def test_what_was_cancelled_before_the_hour_is_no_part(stack: Stack) -> None:
    await stack.courier(courier := FakeCourier(), WINDOW)
    keys = await deliver(stack, "one", "two", "three")
    await stack.deliveries.cancel(keys[1], "university")
    await reach_the_hour(stack)
    assert await ends(stack, [keys[0], keys[2]]) == [PART, LAST]
    assert texts(courier) == ["1/2 · one\n\n2/2 · three"]


async def test_what_is_no_plain_text_or_is_paid_in_parts_comes_as_a_message_of_its_own(stack: Stack) -> None:
    await stack.courier(courier := FakeCourier(), WINDOW)
    await stack.courier(paid := PaidCourier(), WINDOW)
    keys = await deliver(stack, "one", "two")
    marked = (await stack.deliver(daily(stack), text="<b>three</b>", content=Content(parse_mode=ParseMode.HTML))).key
    by_sms = [(await stack.deliver(daily(stack, 1, "sms"), channels=("sms",), text=text)).key for text in "ab"]
    await reach_the_hour(stack)
    assert await ends(stack, [*keys, marked]) == [PART, LAST, ("sent", None, "ref-p1")]
    for key in by_sms:
        await stack.finished(key)
    assert (texts(courier), texts(paid)) == (["1/2 · one\n\n2/2 · two", "three"], ["a", "b"])


class LimitedCourier(FakeCourier):
    limits = Limits(text=24)


@pytest.mark.parametrize(
    "way", ["too long", "wide letters", "one is refused", "deferred", "the first of two is deferred", "lost answer"]
)
async def test_every_part_has_the_outcome_of_its_message(stack: Stack, way: str) -> None:
    deferred = asyncio.Event()

    def respond(message: Message) -> Outcome:
        if way == "one is refused" and "two" in message.text:
            return Rejected(Reason.CONTENT_REFUSED)
        if "deferred" in way and not deferred.is_set():
            deferred.set()
            return Deferred(Reason.PROVIDER_DOWN, SECOND / 10)
        return Unknown() if way == "lost answer" else Sent("ref-p1")

    is_limited = way in ("too long", "wide letters", "the first of two is deferred")
    courier = LimitedCourier(respond=respond) if is_limited else FakeCourier(respond=respond)
    await stack.courier(courier, WIDE_WINDOW if "deferred" in way else WINDOW)
    keys = await deliver(stack, "😀😀😀" if way == "wide letters" else "one", "two", "three")
    await reach_the_hour(stack)
    own, refused, unknown = ("sent", None, "ref-p1"), ("failed", "content_refused", ""), ("unknown", "answer_lost", "")
    expected = {
        "too long": ([PART, LAST, own], 2),
        "wide letters": ([own, PART, LAST], 2),
        "one is refused": ([own, refused, own], 4),
        "deferred": ([PART, PART, LAST], 2),
        "the first of two is deferred": ([PART, LAST, own], 3),
        "lost answer": ([unknown] * 3, 1),
    }
    assert (await ends(stack, keys), len(courier.attempted)) == expected[way]
    if is_limited and deferred.is_set():
        assert courier.attempted[1].text == courier.attempted[0].text, "what follows waits for it"


async def test_an_account_that_stops_leaves_the_texts_to_the_courier_that_follows(stack: Stack) -> None:
    runtime = await stack.courier(FakeCourier(respond=lambda message: Halted("the token was revoked")), WINDOW)
    keys = await deliver(stack, "one", "two")
    await reach_the_hour(stack)
    await until(lambda: runtime.halted)
    await stack.stop(runtime)
    fields = [field for key in await stack.redis.keys("daily:*") for field in await stack.redis.hkeys(key)]
    assert not [field for field in fields if str(field).startswith("ended:")], "an outcome is final, this one is not"
    await stack.courier(FakeCourier(), WINDOW)
    assert [status for status, *_ in await ends(stack, keys)] == [Status.SENT] * 2


async def test_a_text_that_comes_after_all_have_left_waits_for_others(stack: Stack) -> None:
    async def join(name: str, step: str) -> list[Any]:
        words = TENANT, "echo", "p1", name, "text", step, 5000, 60_000
        return list(await stack.store.run("join_day", 0, *words))

    assert await join("a", "join") == ["gathers", 5000]
    assert await join("a", "leave") == ["left"]
    stack.advance_clock(timedelta(minutes=1))
    assert await join("b", "join") == ["gathers", 5000]


@pytest.mark.parametrize("remembers", [NEVER, HOUR])
async def test_killed_while_texts_gather_they_are_sent_once_by_the_next_claims(
    stack: Stack, remembers: timedelta
) -> None:
    runtime = await stack.courier(lost := FakeCourier(remembers=remembers), QUICK)
    keys = await deliver(stack, "one", "two", "three")
    await reach_the_hour(stack)
    await until(lambda: is_sending(stack, keys))
    stack.abandon(runtime)
    await end_leases(stack)
    await stack.courier(courier := FakeCourier(remembers=remembers), WINDOW)
    assert await ends(stack, keys) == [PART, PART, LAST]
    assert (lost.attempted, texts(courier)) == ([], [ALL_OF_THREE])


@pytest.mark.parametrize(("remembers", "reason"), [(NEVER, "answer_lost"), (HOUR, "answer_lost"), (NEVER, "crashed")])
async def test_killed_while_it_is_sent_the_message_is_not_repeated_and_unknown_for_all_parts(
    stack: Stack, remembers: timedelta, reason: str
) -> None:
    gate = asyncio.Event()

    async def respond(message: Message) -> Outcome:
        await gate.wait()
        return Sent()

    runtime = await stack.courier(lost := FakeCourier(respond=respond, remembers=remembers), WINDOW)
    keys = await deliver(stack, "one", "two", "three")
    await reach_the_hour(stack)
    await until(lambda: bool(lost.attempted))
    stack.abandon(runtime)
    for _ in range(3):
        await end_leases(stack)
    if remembers:  # so long ago that the hour and the record of the address are gone
        stack.advance_clock(HOUR)
        await stack.redis.delete(*await stack.redis.keys("daily:*"))
    if reason == "crashed":  # it is not claimed again
        for key in keys:
            await stack.deliveries.cancel(key, "university")
    await stack.courier(courier := FakeCourier(remembers=remembers), WINDOW)
    assert await ends(stack, keys) == [("unknown", reason, "")] * 3
    assert (len(lost.attempted), courier.attempted) == (1, [])


async def test_killed_before_its_outcomes_are_recorded_they_are_known_to_the_next_claims(stack: Stack) -> None:
    runtime = await stack.courier(lost := FakeCourier(), WINDOW)
    keys = await deliver(stack, "one", "two")
    await reach_the_hour(stack)
    await until(lambda: _has_ended(stack))
    stack.abandon(runtime)
    stack.advance_clock(timedelta(minutes=2))
    await stack.courier(courier := FakeCourier(), WINDOW)
    assert await ends(stack, keys) == [PART, LAST]
    assert (len(lost.attempted), courier.attempted) == (1, [])


async def _has_ended(stack: Stack) -> bool:
    fields = [await stack.redis.hkeys(name) for name in await stack.redis.keys("daily:*")]
    return "ended:" in str(fields)


async def test_a_courier_that_stops_sends_what_has_gathered(stack: Stack) -> None:
    runtime = await stack.courier(courier := FakeCourier(), LONG_WINDOW)
    keys = await deliver(stack, "one", "two", "three")
    await reach_the_hour(stack)
    await until(lambda: is_sending(stack, keys))
    await stack.stop(runtime)
    assert await ends(stack, keys) == [PART, PART, LAST]
    assert texts(courier) == [ALL_OF_THREE]


async def test_a_person_who_retries_sends_the_text_again_alone(stack: Stack) -> None:
    blocked = asyncio.Event()
    blocked.set()
    respond = lambda message: Rejected(Reason.BLOCKED) if blocked.is_set() else Sent("ref-p1")  # noqa: E731
    await stack.courier(courier := FakeCourier(respond=respond), WINDOW)
    keys = await deliver(stack, "one", "two")
    await reach_the_hour(stack)
    assert await ends(stack, keys) == [("failed", "blocked", "")] * 2
    blocked.clear()
    assert await stack.deliveries.retry(keys[0], "university", [Status.FAILED]) == 1
    assert await end(stack, keys[0]) == ("sent", None, "ref-p1")
    assert texts(courier) == ["1/2 · one\n\n2/2 · two", "one"]


class SubscribedCourier(FakeCourier):
    subscribe_key, push_service = "key", ""


async def test_the_message_of_a_day_has_the_subscription_of_its_address(stack: Stack) -> None:
    subscription = Subscription("https://push.example/1", "p", "a")
    place = stack.store.tenant_key("subscriptions", TENANT), "echo:p1"
    await stack.store.command("HSET", *place, msgspec.json.encode(subscription))
    await stack.courier(courier := SubscribedCourier(remembers=NEVER), WINDOW)
    keys = await deliver(stack, "one", "two")
    await reach_the_hour(stack)
    assert await ends(stack, keys) == [PART, LAST]
    assert [one.subscription for one in courier.attempted] == [subscription]
