"""Who is tried again while the parcel of the first attempt is still at work.

A courier writes what it knows while it goes on with the others of its parcel, and a provider's report may come before
the courier's own word, so a person may see a failure and have it tried again before the parcel has ended. What was
tried again belongs to the later parcel alone. Before, the first one counted it as its own: the delivery was called
finished while the new attempt was repeated for ever; and a courier that took the first parcel over sent to the same
recipient once more. Found by tests/proof/test_interleavings.py.
"""

import asyncio

import pytest

from core.orders import HistoryKey
from core.parcels import compact, load_parcel
from core.port import Message, Outcome, Rejected
from core.words import Reason, Status
from tests.core.house import LEASE, TENANT, House, Played, people, sent
from tests.waiting import until

pytestmark = pytest.mark.row("D-40")


async def status_of_ben(house: House, key: HistoryKey) -> Status:
    records = (await house.history(key)).recipients
    return next(record.outcomes["echo"].status for record in records if record.id == 2)


async def test_the_first_courier_tells_its_end_after_the_second_attempt_was_asked_for(house: House) -> None:
    key = (await house.deliver(*people(2))).key
    (first,) = await house.take("echo")
    _, (anna, ben) = load_parcel(first.parcel)
    await house.store.run("report", 0, key.suffix, "echo", 0, compact(ben.item(Status.FAILED)))
    assert await house.histories.retry(key, TENANT, [Status.FAILED]) == 1
    told = [anna.item(Status.SENT, attempts=1), ben.item(Status.FAILED, attempts=1)]
    assert await house.queue.settle(first, outcomes=told) == "done"
    assert (await house.history(key)).finished_at is None, "the second attempt has not been made"
    courier = Played()
    await house.courier(courier)
    await house.finished(key)
    assert await status_of_ben(house, key) in (Status.SENT, Status.FAILED)
    assert courier.addresses == ["p2"]


async def test_who_takes_the_first_parcel_over_leaves_alone_who_was_tried_again(house: House) -> None:
    """Ben is refused and Anna's attempt hangs; the courier is gone; Ben is tried again."""
    gate = asyncio.Event()

    async def answer(message: Message) -> Outcome:
        if message.address == "p1":
            await gate.wait()
            return sent(message)
        return Rejected(Reason.BLOCKED)

    crashed = await house.courier(Played(answer=answer))
    key = (await house.deliver(*people(2))).key

    async def failed() -> bool:
        return await status_of_ben(house, key) is Status.FAILED

    await until(failed)
    house.abandon(crashed)
    house.passes(LEASE)
    assert await house.histories.retry(key, TENANT, [Status.FAILED]) == 1
    successor = Played()
    await house.courier(successor)
    await house.finished(key)
    assert await status_of_ben(house, key) is Status.SENT
    assert sorted(successor.addresses) == ["p1", "p2"]


async def test_who_goes_on_with_a_parcel_leaves_alone_who_was_reported_failed_meanwhile(house: House) -> None:
    """Ben was put off, then his provider tells that the first message failed after all: nobody asked for another."""
    key = (await house.deliver(*people(2))).key
    (first,) = await house.take("echo")
    _, (_, ben) = load_parcel(first.parcel)
    later = compact([[index, 0, 1, 0] for index in range(2)])
    assert await house.queue.settle(first, outcomes=[], checkpoint=later) == "ready"
    await house.store.run("report", 0, key.suffix, "echo", 0, compact(ben.item(Status.FAILED)))
    courier = Played()
    await house.courier(courier)
    await house.finished(key)
    assert courier.addresses == ["p1"]


async def test_who_was_to_be_tried_again_and_was_cancelled_before_is_told_as_cancelled(house: House) -> None:
    """Before, his record said `queued` for ever, while the counts said `cancelled`."""
    key = (await house.deliver(*people(2))).key
    (first,) = await house.take("echo")
    _, both = load_parcel(first.parcel)
    await house.queue.settle(first, outcomes=[entry.item(Status.FAILED, attempts=1) for entry in both])
    assert await house.histories.retry(key, TENANT, [Status.FAILED]) == 2
    await house.histories.cancel(key, TENANT)
    history = await house.history(key)
    assert [record.outcomes["echo"].status for record in history.recipients] == [Status.CANCELLED] * 2
    assert history.counts[Status.CANCELLED] == 2


async def test_the_audit_knows_that_who_is_tried_again_belongs_to_the_later_parcel(house: House) -> None:
    """Before, it raised a false alarm while the first parcel's courier had not told its end."""
    key = (await house.deliver(*people(2))).key
    (first,) = await house.take("echo")
    _, (anna, ben) = load_parcel(first.parcel)
    await house.store.run("report", 0, key.suffix, "echo", 0, compact(ben.item(Status.FAILED)))
    assert await house.histories.retry(key, TENANT, [Status.FAILED]) == 1
    await house.store.run("cancel", 0, key.suffix, TENANT, 1, "[]")
    await house.audit()
    assert await house.queue.settle(first, outcomes=[anna.item(Status.SENT, attempts=1)]) == "done"


async def test_each_who_is_tried_again_belongs_to_a_parcel_of_his_own(house: House) -> None:
    """Two are tried again one after the other, so there are two later parcels, and the first courier speaks of both."""
    key = (await house.deliver(*people(3))).key
    (first,) = await house.take("echo")
    _, (anna, ben, carl) = load_parcel(first.parcel)
    for entry in (anna, ben):
        await house.store.run("report", 0, key.suffix, "echo", 0, compact(entry.item(Status.FAILED)))
        assert await house.histories.retry(key, TENANT, [Status.FAILED]) == 1
    told = [entry.item(Status.FAILED, attempts=1) for entry in (anna, ben)]
    assert await house.queue.settle(first, outcomes=[*told, carl.item(Status.SENT, attempts=1)]) == "done"
    courier = Played()
    await house.courier(courier)
    await house.finished(key)
    assert sorted(courier.addresses) == ["p1", "p2"]
