"""What is paid is counted in the step that writes an outcome, once, and it is what the histories say."""

from collections import Counter
from datetime import UTC, datetime

import pytest

from core.deliveries.costs import Cost, added, price_of, totals
from core.deliveries.histories.parcels import PaidParts
from core.model.delivery import Sender
from core.model.history import OutcomeRecord
from core.model.history_key import HistoryKey
from core.model.json_form import compact_json
from core.model.states import Reason, Status
from couriers.sending.interface import NEVER, Message, Outcome, Rejected, Sent, Unknown
from tests.support.delivery_progress import Gate
from tests.support.every_verb import entry_of, report_token
from tests.support.stack import TENANT, FakeCourier, PaidCourier, Stack, people, person
from tests.support.waiting import until

TWO_PARTS = "Пары не будет. " * 6


def this_month() -> str:
    return f"{datetime.now(UTC):%Y-%m}"


async def costs(stack: Stack) -> list[Cost]:
    return await stack.deliveries.costs.read(TENANT, [this_month()])


async def outcomes_by_channel(stack: Stack, *deliveries: tuple[str, HistoryKey]) -> Counter[tuple[str, str, str]]:
    """Return (sender, channel, what) → messages and parts, as the histories have them."""
    found: Counter[tuple[str, str, str]] = Counter()
    for sender, key in deliveries:
        history = await stack.finished(key)
        for recipient in history.recipients:
            for channel, outcome in recipient.outcomes.items():
                was_sent = outcome.status in (Status.SENT, Status.DELIVERED, Status.READ, Status.UNKNOWN)
                found[sender, channel, "messages"] += was_sent
                found[sender, channel, "parts"] += outcome.parts
    return found


def answer_of(message: Message) -> Outcome:
    if message.address == "p2":
        return Rejected(Reason.BLOCKED)
    return Unknown() if message.address == "p3" else Sent("r")


@pytest.mark.parametrize("shards", [1, 16])
async def test_the_costs_of_each_sender_and_channel_are_those_of_the_histories(stack: Stack) -> None:
    await stack.courier(PaidCourier(respond=answer_of))
    await stack.courier(FakeCourier(respond=answer_of, remembers=NEVER))
    sent = []
    for number, (sender, text) in enumerate([("7", "Short"), ("7", TWO_PARTS), ("a:b", TWO_PARTS)]):
        recipients = people(4 - number, "echo", "sms")
        options = {"text": text, "sender": Sender(sender), "lane": f"lane {number}"}  # each in its shard
        accepted = await stack.deliver(*recipients, channels=("echo", "sms"), **options)
        sent.append((sender, accepted.key))
    said = await outcomes_by_channel(stack, *sent)
    found = await costs(stack)
    assert {(one.sender, one.channel): (one.messages, one.parts) for one in found} == {
        (sender, channel): (said[sender, channel, "messages"], said[sender, channel, "parts"])
        for sender in ("7", "a:b")
        for channel in ("echo", "sms")
    }
    assert {(one.sender, one.channel): (one.messages, one.parts, one.sums) for one in found} == {
        ("7", "echo"): (5, 0, []),
        ("a:b", "echo"): (1, 0, []),
        ("7", "sms"): (5, 7, ["29.40 ₽"]),
        ("a:b", "sms"): (1, 2, ["8.40 ₽"]),
    }
    assert [(one.channel, one.messages, one.parts, one.sums) for one in totals(found)] == [
        ("echo", 6, 0, []),
        ("sms", 6, 9, ["37.80 ₽"]),
    ]


async def outcome_of(stack: Stack, key: HistoryKey) -> OutcomeRecord:
    return (await stack.finished(key)).recipients[0].outcomes["sms"]


async def is_paid(stack: Stack, parts: int) -> bool:
    return sum(one.parts for one in await costs(stack)) == parts


async def test_a_report_that_comes_before_the_answer_of_the_gateway_is_paid_once(stack: Stack) -> None:
    gate = Gate()
    await stack.courier(PaidCourier(respond=gate))
    key = (await stack.deliver(*people(2, "sms"), channels=("sms",), text=TWO_PARTS)).key
    await stack.deliveries.record_report(await report_token(stack, key, "sms"), Status.DELIVERED, "r")
    gate.opened.set()
    await until(lambda: is_paid(stack, 4))  # the report ended the delivery, maybe before the answer came
    found = await outcome_of(stack, key)
    assert (found.status, found.reference, found.parts) == (Status.DELIVERED, "r", 2)
    assert [(one.messages, one.parts) for one in await costs(stack)] == [(2, 4)]


async def test_outcomes_that_are_written_again_are_paid_once_and_a_retry_is_paid_again(stack: Stack) -> None:
    await stack.courier(PaidCourier())
    key = (await stack.deliver(person(1, "sms"), channels=("sms",), text=TWO_PARTS)).key
    await stack.finished(key)
    again = (await entry_of(stack, key, "sms", 0, 0)).item(Status.SENT, "", "r", 1, paid=PaidParts(2, "4.20 ₽"))
    await stack.store.run("record_late", key.shard, key.suffix, "sms", 0, compact_json([again]))
    assert [(one.messages, one.parts) for one in await costs(stack)] == [(1, 2)]
    await stack.deliveries.record_report(await report_token(stack, key, "sms"), Status.FAILED, "r")
    await stack.deliveries.retry(key, TENANT, [Status.FAILED])
    assert (await outcome_of(stack, key)).parts == 4
    assert [(one.messages, one.parts) for one in await costs(stack)] == [(2, 4)]


@pytest.mark.parametrize(
    "moment", ["2027-12-31T23:59:58", "2028-01-01T00:00:00", "2028-02-29T12:00:00", "2028-03-01T00:00:00"]
)
async def test_a_month_is_that_of_the_calendar_in_utc(stack: Stack, moment: str) -> None:
    at = datetime.fromisoformat(moment).replace(tzinfo=UTC)
    stack.advance_clock(at - stack.now())
    key = (await stack.deliver(person(1))).key
    await stack.deliveries.record_report(await report_token(stack, key), Status.SENT, "r")
    months = ["2027-12", "2028-01", "2028-02", "2028-03"]
    assert [(one.month, one.messages) for one in await stack.deliveries.costs.read(TENANT, months)] == [(moment[:7], 1)]


@pytest.mark.parametrize(
    ("price", "count", "total"),
    [("4.20 ₽", 14, "58.80 ₽"), ("4,2 руб.", 3, "12.60 руб."), ("$0.0075", 1000, "$7.50"), ("free", 3, "free")],
)
def test_a_sum_has_the_form_of_the_price(price: str, count: int, total: str) -> None:
    assert price_of(price, count) == total


def test_prices_of_one_currency_are_added_and_of_two_are_not() -> None:
    assert added(["4.20 ₽", "1,10 ₽", "$2", "$0.5"]) == ["5.30 ₽", "$2.50"]
