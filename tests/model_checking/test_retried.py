"""Who is tried again while the parcel of the first attempt is still at work.

A courier writes what it knows while it goes on with the others of its parcel, and a provider's report may come before
the courier's own word, so a person may see a failure and have it tried again before the parcel has ended. What was
tried again belongs to the later parcel alone. Before, the first one counted it as its own: the delivery was called
finished while the new attempt was repeated for ever; and a courier that took the first parcel over sent to the same
recipient once more. Found by tests/model_checking/test_interleavings.py.
"""

import asyncio

import pytest

from core.courier.interface import Message, Outcome, Rejected
from core.courier.parcel import Parcel
from core.model.compact_json import compact_json
from core.model.history_key import HistoryKey
from core.model.states import Reason, Status
from tests.support.stack import LEASE, TENANT, Played, Stack, people, sent
from tests.support.waiting import until

pytestmark = pytest.mark.row("D-40")


async def status_of_ben(stack: Stack, key: HistoryKey) -> Status:
    records = (await stack.history(key)).recipients
    return next(record.outcomes["echo"].status for record in records if record.id == 2)


async def test_the_first_courier_tells_its_end_after_the_second_attempt_was_asked_for(stack: Stack) -> None:
    key = (await stack.deliver(*people(2))).key
    (first,) = await stack.take("echo")
    anna, ben = Parcel.of(first).entries
    await stack.store.run("record_report", 0, key.suffix, "echo", 0, compact_json(ben.item(Status.FAILED)))
    assert await stack.deliveries.retry(key, TENANT, [Status.FAILED]) == 1
    told = [anna.item(Status.SENT, attempts=1), ben.item(Status.FAILED, attempts=1)]
    assert await stack.queue.settle(first, outcomes=told) == "done"
    assert (await stack.history(key)).finished_at is None, "the second attempt has not been made"
    courier = Played()
    await stack.courier(courier)
    await stack.finished(key)
    assert await status_of_ben(stack, key) in (Status.SENT, Status.FAILED)
    assert courier.addresses == ["p2"]


async def test_who_takes_the_first_parcel_over_leaves_alone_who_was_tried_again(stack: Stack) -> None:
    """Ben is refused and Anna's attempt hangs; the courier is gone; Ben is tried again."""
    gate = asyncio.Event()

    async def answer(message: Message) -> Outcome:
        if message.address == "p1":
            await gate.wait()
            return sent(message)
        return Rejected(Reason.BLOCKED)

    crashed = await stack.courier(Played(answer=answer))
    key = (await stack.deliver(*people(2))).key

    async def failed() -> bool:
        return await status_of_ben(stack, key) is Status.FAILED

    await until(failed)
    stack.abandon(crashed)
    stack.passes(LEASE)
    assert await stack.deliveries.retry(key, TENANT, [Status.FAILED]) == 1
    successor = Played()
    await stack.courier(successor)
    await stack.finished(key)
    assert await status_of_ben(stack, key) is Status.SENT
    assert sorted(successor.addresses) == ["p1", "p2"]


async def test_who_goes_on_with_a_parcel_leaves_alone_who_was_reported_failed_meanwhile(stack: Stack) -> None:
    """Ben was put off, then his provider tells that the first message failed after all: nobody asked for another."""
    key = (await stack.deliver(*people(2))).key
    (first,) = await stack.take("echo")
    _, ben = Parcel.of(first).entries
    later = compact_json([[index, 0, 1, 0] for index in range(2)])
    assert await stack.queue.settle(first, outcomes=[], checkpoint=later) == "ready"
    await stack.store.run("record_report", 0, key.suffix, "echo", 0, compact_json(ben.item(Status.FAILED)))
    courier = Played()
    await stack.courier(courier)
    await stack.finished(key)
    assert courier.addresses == ["p1"]


async def test_who_was_to_be_tried_again_and_was_cancelled_before_is_told_as_cancelled(stack: Stack) -> None:
    """Before, his record said `queued` for ever, while the counts said `cancelled`."""
    key = (await stack.deliver(*people(2))).key
    (first,) = await stack.take("echo")
    both = Parcel.of(first).entries
    await stack.queue.settle(first, outcomes=[entry.item(Status.FAILED, attempts=1) for entry in both])
    assert await stack.deliveries.retry(key, TENANT, [Status.FAILED]) == 2
    await stack.deliveries.cancel(key, TENANT)
    history = await stack.history(key)
    assert [record.outcomes["echo"].status for record in history.recipients] == [Status.CANCELLED] * 2
    assert history.counts[Status.CANCELLED] == 2


async def test_the_audit_knows_that_who_is_tried_again_belongs_to_the_later_parcel(stack: Stack) -> None:
    """Before, it raised a false alarm while the first parcel's courier had not told its end."""
    key = (await stack.deliver(*people(2))).key
    (first,) = await stack.take("echo")
    anna, ben = Parcel.of(first).entries
    await stack.store.run("record_report", 0, key.suffix, "echo", 0, compact_json(ben.item(Status.FAILED)))
    assert await stack.deliveries.retry(key, TENANT, [Status.FAILED]) == 1
    await stack.store.run("cancel", 0, key.suffix, TENANT, 1, "[]")
    await stack.audit()
    assert await stack.queue.settle(first, outcomes=[anna.item(Status.SENT, attempts=1)]) == "done"


async def test_each_who_is_tried_again_belongs_to_a_parcel_of_his_own(stack: Stack) -> None:
    """Two are tried again one after the other, so there are two later parcels, and the first courier speaks of both."""
    key = (await stack.deliver(*people(3))).key
    (first,) = await stack.take("echo")
    anna, ben, carl = Parcel.of(first).entries
    for entry in (anna, ben):
        await stack.store.run("record_report", 0, key.suffix, "echo", 0, compact_json(entry.item(Status.FAILED)))
        assert await stack.deliveries.retry(key, TENANT, [Status.FAILED]) == 1
    told = [entry.item(Status.FAILED, attempts=1) for entry in (anna, ben)]
    assert await stack.queue.settle(first, outcomes=[*told, carl.item(Status.SENT, attempts=1)]) == "done"
    courier = Played()
    await stack.courier(courier)
    await stack.finished(key)
    assert sorted(courier.addresses) == ["p1", "p2"]
