"""A retry of a recipient while the parcel of the first attempt is still taken.

A courier writes outcomes while it continues with the rest of its parcel, and a delivery report may arrive before the
outcome of the courier. So a user may see a failure and retry it before the parcel is settled. From then on the entry
belongs to the later parcel alone. The bug: the first parcel still counted it as its own, so the delivery was finished
while the retry was attempted for ever, and a courier that took over the first parcel sent to the same recipient again.
Found by tests/system/model_checking/test_interleavings.py.
"""

import asyncio

from core.model.history_key import HistoryKey
from core.model.json_form import compact_json
from core.model.states import Reason, Status
from couriers.sending.interface import Message, Outcome, Rejected
from couriers.sending.parcel import Parcel
from tests.support.stack import LEASE, TENANT, FakeCourier, Stack, people, sent
from tests.support.waiting import until


async def status_of_ben(stack: Stack, key: HistoryKey) -> Status:
    records = (await stack.history(key)).recipients
    return next(record.outcomes["echo"].status for record in records if record.id == 2)


async def test_the_first_parcel_is_settled_after_the_retry_and_the_delivery_is_not_finished(stack: Stack) -> None:
    key = (await stack.deliver(*people(2))).key
    (first,) = await stack.take("echo")
    anna, ben = Parcel.of(first).entries
    await stack.store.run("record_report", 0, key.suffix, "echo", 0, compact_json(ben.item(Status.FAILED)))
    assert await stack.deliveries.retry(key, TENANT, [Status.FAILED]) == 1
    outcomes = [anna.item(Status.SENT, attempts=1), ben.item(Status.FAILED, attempts=1)]
    assert await stack.queue.settle(first, outcomes=outcomes) == "done"
    assert (await stack.history(key)).finished_at is None, "the second attempt has not been made"
    courier = FakeCourier()
    await stack.courier(courier)
    await stack.finished(key)
    assert await status_of_ben(stack, key) in (Status.SENT, Status.FAILED)
    assert courier.addresses == ["p2"]


async def test_a_courier_that_takes_over_the_first_parcel_skips_the_retried_recipient(stack: Stack) -> None:
    """Ben is rejected and the attempt for Anna hangs; the courier dies; Ben is retried."""
    gate = asyncio.Event()

    async def answer(message: Message) -> Outcome:
        if message.address == "p1":
            await gate.wait()
            return sent(message)
        return Rejected(Reason.BLOCKED)

    crashed = await stack.courier(FakeCourier(respond=answer))
    key = (await stack.deliver(*people(2))).key

    async def failed() -> bool:
        return await status_of_ben(stack, key) is Status.FAILED

    await until(failed)
    stack.abandon(crashed)
    stack.advance_clock(LEASE)
    assert await stack.deliveries.retry(key, TENANT, [Status.FAILED]) == 1
    successor = FakeCourier()
    await stack.courier(successor)
    await stack.finished(key)
    assert await status_of_ben(stack, key) is Status.SENT
    assert sorted(successor.addresses) == ["p1", "p2"]


async def test_a_courier_that_continues_a_parcel_skips_a_recipient_reported_as_failed_meanwhile(stack: Stack) -> None:
    """Ben was deferred, then a delivery report marks the first message as failed: no retry was asked for."""
    key = (await stack.deliver(*people(2))).key
    (first,) = await stack.take("echo")
    _, ben = Parcel.of(first).entries
    later = compact_json([[index, 0, 1, 0] for index in range(2)])
    assert await stack.queue.settle(first, outcomes=[], checkpoint=later) == "ready"
    await stack.store.run("record_report", 0, key.suffix, "echo", 0, compact_json(ben.item(Status.FAILED)))
    courier = FakeCourier()
    await stack.courier(courier)
    await stack.finished(key)
    assert courier.addresses == ["p1"]


async def test_a_retried_recipient_of_a_cancelled_delivery_is_cancelled(stack: Stack) -> None:
    """The bug: the record stayed `queued` for ever, while the counts had `cancelled`."""
    key = (await stack.deliver(*people(2))).key
    (first,) = await stack.take("echo")
    both = Parcel.of(first).entries
    await stack.queue.settle(first, outcomes=[entry.item(Status.FAILED, attempts=1) for entry in both])
    assert await stack.deliveries.retry(key, TENANT, [Status.FAILED]) == 2
    await stack.deliveries.cancel(key, TENANT)
    history = await stack.history(key)
    assert [record.outcomes["echo"].status for record in history.recipients] == [Status.CANCELLED] * 2
    assert history.counts[Status.CANCELLED] == 2


async def test_the_audit_counts_a_retried_recipient_to_the_later_parcel(stack: Stack) -> None:
    """The bug: a false alarm while the first parcel was not settled."""
    key = (await stack.deliver(*people(2))).key
    (first,) = await stack.take("echo")
    anna, ben = Parcel.of(first).entries
    await stack.store.run("record_report", 0, key.suffix, "echo", 0, compact_json(ben.item(Status.FAILED)))
    assert await stack.deliveries.retry(key, TENANT, [Status.FAILED]) == 1
    await stack.store.run("cancel", 0, key.suffix, TENANT, 1, "[]")
    await stack.audit()
    assert await stack.queue.settle(first, outcomes=[anna.item(Status.SENT, attempts=1)]) == "done"


async def test_two_recipients_retried_one_by_one_belong_to_a_parcel_each(stack: Stack) -> None:
    """There are two later parcels, and the courier of the first parcel reports an outcome for both recipients."""
    key = (await stack.deliver(*people(3))).key
    (first,) = await stack.take("echo")
    anna, ben, carl = Parcel.of(first).entries
    for entry in (anna, ben):
        await stack.store.run("record_report", 0, key.suffix, "echo", 0, compact_json(entry.item(Status.FAILED)))
        assert await stack.deliveries.retry(key, TENANT, [Status.FAILED]) == 1
    outcomes = [entry.item(Status.FAILED, attempts=1) for entry in (anna, ben)]
    assert await stack.queue.settle(first, outcomes=[*outcomes, carl.item(Status.SENT, attempts=1)]) == "done"
    courier = FakeCourier()
    await stack.courier(courier)
    await stack.finished(key)
    assert sorted(courier.addresses) == ["p1", "p2"]
