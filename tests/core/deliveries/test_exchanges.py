"""What the providers said is kept for seven days, beside the outcomes and bounded (D-48)."""

import time
from datetime import timedelta

import pytest

from core.deliveries.delivery_reports import Exchange
from core.errors import NotFound
from core.model.clock import Backoff
from core.model.history_key import HistoryKey
from core.model.states import Reason, Status
from core.monitoring import Overviews, SampleStep
from core.monitoring.figures import Samples
from core.monitoring.overview import MatterKind
from core.redis.keys import KEYS
from core.webhooks.http_client import WebhookClient
from core.webhooks.registry import Webhooks
from couriers.provider_calls import noted_call
from couriers.sending.interface import NEVER, Deferred, Message, Outcome, Rejected, Sent, Unknown
from couriers.sending.services import CourierOptions
from tests.support.stack import FLOOR, TENANT, FakeCourier, Stack, people, person

MANY = CourierOptions(max_sleep=FLOOR, backoff=Backoff(timedelta(milliseconds=20), timedelta(milliseconds=20), 20))


class Talking:
    """A provider that says the next of these words at each attempt, and then takes the message."""

    def __init__(self, *words: str) -> None:
        self._words = list(words)

    def __call__(self, message: Message) -> Outcome:
        with noted_call("send") as call:
            if not self._words:
                call.answered(200)
                return Sent("r")
            call.answered(500, self._words.pop(0))
            return Deferred(Reason.PROVIDER_DOWN, detail="refused")


async def said(stack: Stack, key: HistoryKey, recipient: str = "1") -> list[Exchange]:
    return await stack.deliveries.exchanges.of_recipient(key, TENANT, recipient)


async def test_attempts_that_end_alike_are_one_line_and_a_success_behind_them_is_another(stack: Stack) -> None:
    await stack.courier(FakeCourier(respond=Talking("no", "no", "no", "never")), MANY)
    key = (await stack.deliver(*people(1))).key
    (record,) = (await stack.finished(key)).recipients
    found = await said(stack, key)
    shown = [(one.times, one.attempt.outcome, one.attempt.reason, one.attempt.detail) for one in found]
    assert shown == [
        (3, "deferred", "provider_down", "500 refused: no"),
        (1, "deferred", "provider_down", "500 refused: never"),
        (1, "sent", "", ""),
    ]
    assert [(call.method, call.status, call.words) for call in found[0].attempt.calls] == [("send", 500, "no")]
    assert [(call.method, call.status, call.words) for call in found[2].attempt.calls] == [("send", 200, "")]
    assert found[0].attempt.at <= found[1].attempt.at <= found[2].attempt.at
    outcome = record.outcomes["echo"]
    assert (outcome.status, outcome.detail, outcome.reference) == (Status.SENT, None, "r")


async def test_the_last_five_ways_of_ending_are_kept_and_what_arrived_at_once_keeps_nothing(stack: Stack) -> None:
    await stack.courier(FakeCourier(respond=Talking(*(f"answer {letter}" for letter in "abcdefgh"))), MANY)
    key = (await stack.deliver(*people(1))).key
    await stack.finished(key)
    assert [one.attempt.detail[-1:] for one in await said(stack, key)] == ["e", "f", "g", "h", ""]
    other = (await stack.deliver(*people(3))).key
    await stack.finished(other)
    assert [await said(stack, other, str(number)) for number in (1, 2, 3)] == [[], [], []]
    assert await stack.redis.exists(KEYS["exchanges"].at(0, other.suffix)) == 0


async def test_after_seven_days_nothing_is_shown_and_the_key_ends_by_itself(stack: Stack) -> None:
    await stack.courier(FakeCourier(respond=lambda _: Rejected(Reason.BLOCKED, "blocked by the user")))
    key = (await stack.deliver(*people(1))).key
    await stack.finished(key)
    assert len(await said(stack, key)) == 1
    left = await stack.redis.pttl(KEYS["exchanges"].at(0, key.suffix))
    assert 0 < left <= timedelta(days=7).total_seconds() * 1000
    stack.advance_clock(timedelta(days=7, seconds=1))
    assert await said(stack, key) == []


async def test_each_contact_of_each_recipient_has_its_own(stack: Stack) -> None:
    """The ids begin alike, have letters of patterns and colons."""
    await stack.courier(FakeCourier(respond=lambda _: Rejected(Reason.BLOCKED, "no")))
    ids = ["1", "1:echo", "*", "1*"]
    key = (await stack.deliver(*(person(one, echo=["a1a1", "b2b2"]) for one in ids))).key
    await stack.finished(key)
    for one in ids:
        assert sorted((each.channel, each.contact) for each in await said(stack, key, one)) == [
            ("echo", 0),
            ("echo", 1),
        ]
    assert await said(stack, key, "2") == []
    with pytest.raises(NotFound):
        await stack.deliveries.exchanges.of_recipient(key, "another", "1")


async def test_what_the_provider_said_stays_with_an_end_without_an_attempt_and_goes_with_a_success(
    stack: Stack,
) -> None:
    courier = FakeCourier(respond=lambda _: Unknown("502 Bad Gateway"), remembers=NEVER)
    await stack.courier(courier)
    key = (await stack.deliver(*people(1))).key
    (record,) = (await stack.finished(key)).recipients
    assert record.outcomes["echo"].detail == "502 Bad Gateway"
    courier.respond = lambda _: Sent("r")
    await stack.deliveries.retry(key, TENANT, [Status.UNKNOWN])
    (record,) = (await stack.finished(key)).recipients
    assert (record.outcomes["echo"].status, record.outcomes["echo"].detail) == (Status.SENT, None)
    await stack.audit()


async def test_a_failing_channel_in_the_overview_has_the_providers_words(stack: Stack) -> None:
    await stack.courier(FakeCourier(respond=lambda _: Unknown("502 Bad Gateway"), remembers=NEVER))
    samples, now = Samples(stack.store, stack.queue), int(time.time() * 1000)
    await samples.save(SampleStep.FINE, await samples.take(now - 30_000))
    key = (await stack.deliver(*people(12))).key
    await stack.finished(key)
    await samples.save(SampleStep.FINE, await samples.take(now))
    webhooks = Webhooks(stack.store, stack.queue, WebhookClient(allow_private=True))
    overviews = Overviews(stack.store, stack.queue, stack.deliveries.channels, webhooks)
    found = [one for one in (await overviews.show()).matters if one.kind is MatterKind.FAILURES]
    assert [(one.subject, one.count, one.reason, one.words) for one in found] == [
        ("echo", 12, "answer_lost", "502 Bad Gateway")
    ]
