"""Replies and results as deliveries: how many a day, how long they are of use, whether quiet hours hold."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bots.delivered_replies import KIND, DeliveredReplies
from bots.dialog_event import DialogEvent
from bots.replies import Reply
from core.admission.reply_limit import MOST_REPLIES
from core.model.delivery import Recipient, Repeat
from core.orders import Caller, Order
from core.orders.following import StatusTask
from core.redis.keys import KEYS
from tests.support.stack import TENANT, Stack

pytestmark = pytest.mark.parametrize("shards", [1, 16])

ADDRESS = "+79991112233"
FOLLOWED = StatusTask("0.d1", "sms", ADDRESS, "", "en")


@dataclass
class Sendings:
    """In place of `core.orders.Sending`: keeps what is sent."""

    sent: list[tuple[Order, Caller, Repeat]] = field(default_factory=list)

    def clock(self) -> datetime:
        return datetime.now(UTC)

    async def send(self, order: Order, caller: Caller, repeat: Repeat) -> None:
        self.sent.append((order, caller, repeat))


@pytest.fixture
def sendings() -> Sendings:
    return Sendings()


@pytest.fixture
def replies(stack: Stack, sendings: Sendings) -> DeliveredReplies:
    sending: Any = sendings
    return DeliveredReplies(stack.store, sending, TENANT)


async def test_an_address_gets_a_number_of_replies_in_a_day_and_the_log_says_it_once(
    stack: Stack, replies: DeliveredReplies, sendings: Sendings, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(MOST_REPLIES + 3):
        await replies.send(event(number), Reply("hello"))
    assert len(sendings.sent) == MOST_REPLIES
    assert caplog.messages == [f"a person in sms got {MOST_REPLIES} replies in a day, and no more"]
    shard = stack.store.shard_of_person(TENANT, "sms", ADDRESS)
    left = await stack.store.command("TTL", KEYS["replies"].at(shard, TENANT, "sms", ADDRESS))
    assert 86_000 < left <= 86_400


async def test_a_reply_is_sent_at_once_and_is_of_use_for_an_hour(replies: DeliveredReplies, sendings: Sendings) -> None:
    await replies.send(event(1), Reply(""))
    await replies.send(event(1), Reply("hello"))
    ((order, caller, _),) = sendings.sent
    assert (order.urgent, caller) == (True, Caller(TENANT, is_admin=True, may_be_urgent=True))
    assert list(order.addressees) == [Recipient(ADDRESS, contacts={"sms": [ADDRESS]})]
    assert (order.delivery.text, order.delivery.kind, order.delivery.priority) == ("hello", KIND, 1)
    assert is_about(order, timedelta(hours=1))


async def test_a_result_waits_for_the_end_of_quiet_hours_and_is_of_use_for_two_days(
    replies: DeliveredReplies, sendings: Sendings
) -> None:
    assert await replies.send_result(FOLLOWED, Reply("All were reached")) is False
    ((order, _, repeat),) = sendings.sent
    assert (order.urgent, repeat) == (False, Repeat(f"result.{FOLLOWED.key}", "result"))
    assert is_about(order, timedelta(days=2))


async def test_replies_to_one_event_have_keys_of_their_texts(replies: DeliveredReplies, sendings: Sendings) -> None:
    for number, text in ((1, "a"), (1, "b"), (2, "a"), (1, "a")):
        await replies.send(event(number), Reply(text))
    first, second, other, again = (repeat for _, _, repeat in sendings.sent)
    assert len({first.key, second.key, other.key}) == 3
    assert again == first


def event(number: int) -> DialogEvent:
    return DialogEvent(str(number), "sms", ADDRESS, text="hello")


def is_about(order: Order, expected: timedelta) -> bool:
    assert order.delivery.expires_at
    return abs(order.delivery.expires_at - datetime.now(UTC) - expected) < timedelta(minutes=5)
