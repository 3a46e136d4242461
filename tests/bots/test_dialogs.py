"""The turn of a dialog is saved before its replies are sent, so that a lost reply never shifts the dialog."""

import asyncio
from datetime import timedelta

import pytest

from bots.conversation.state import State, Turn
from bots.dialog_event import DialogEvent
from bots.dialogs import Answering, Dialogs
from bots.replies import Button, Reply
from core.errors import StoreUnavailable
from core.orders.following import NotSent, SendLater
from core.queue import Attempt, Bury, Queue, QueueClient, Retry
from core.queue.task import SettleResult
from core.updates.events import Events, dialogs_tube
from tests.support.stack import Stack

pytestmark = pytest.mark.parametrize("shards", [1, 16])

EVENT = DialogEvent("1", "telegram-bot", "100001", text="hello")
AFTER_THE_TURN = State("text", text="!")
LEASE = timedelta(seconds=30)
MINUTE = timedelta(minutes=1)


class Person:
    """A chat. `faults`: what the sending of the n-th reply raises, each time it is sent; the last one without end."""

    def __init__(self, **faults: BaseException) -> None:
        self.received: list[str] = []
        self.conversations = 0
        self.faults = faults

    async def converse(self, event: DialogEvent, state: State) -> Turn:
        self.conversations += 1
        buttons = ((Button("yes", "y"),),)
        return Turn([Reply("one"), Reply("two", buttons), Reply("three")], State("text", text=state.text + "!"))

    async def send(self, event: DialogEvent, reply: Reply) -> None:
        if reply.text in self.faults:
            raise self.faults[reply.text]
        self.received.append(reply.text)


@pytest.fixture
async def queue(stack: Stack) -> Queue:
    events = Events(QueueClient(stack.store), "default", tube=dialogs_tube("telegram-bot"))
    await events.open()
    await events.put("4242", {"id": "1", "channel": "telegram-bot", "user_id": 100001, "event_text": "hello"})
    return stack.queue


async def attempt_of(stack: Stack, lease: timedelta = LEASE) -> Attempt:
    (task,) = await stack.take(dialogs_tube("telegram-bot").name, lease=lease)
    return Attempt(stack.queue, task, lease)


def answering(stack: Stack, person: Person, tenant: str = "default") -> Answering:
    return Answering(Dialogs(stack.store, tenant), person.converse, person.send)


async def state(stack: Stack, event: DialogEvent = EVENT, tenant: str = "default") -> State:
    return await Dialogs(stack.store, tenant).load(event)


async def test_replies_are_sent_in_order_and_the_state_is_stored(stack: Stack, queue: Queue) -> None:
    person = Person()
    await answering(stack, person).handle(EVENT, await attempt_of(stack))
    assert person.received == ["one", "two", "three"]
    assert await state(stack) == AFTER_THE_TURN


async def test_the_state_is_stored_before_the_first_reply_is_sent(stack: Stack, queue: Queue) -> None:
    person = Person(one=asyncio.CancelledError())  # as if the process were killed
    with pytest.raises(asyncio.CancelledError):
        await answering(stack, person).handle(EVENT, await attempt_of(stack))
    assert person.received == []
    assert await state(stack) == AFTER_THE_TURN


async def test_an_interrupted_attempt_is_continued_with_the_next_reply(stack: Stack, queue: Queue) -> None:
    person = Person(two=asyncio.CancelledError())
    with pytest.raises(asyncio.CancelledError):
        await answering(stack, person).handle(EVENT, await attempt_of(stack, MINUTE))
    person.faults = {}
    stack.advance_clock(2 * MINUTE)
    await answering(stack, person).handle(EVENT, await attempt_of(stack))
    assert person.received == ["one", "two", "three"]
    assert person.conversations == 1
    assert await state(stack) == AFTER_THE_TURN


@pytest.mark.parametrize(
    ("fault", "pause"),
    [(SendLater(MINUTE), MINUTE), (NotSent("no connection"), None), (StoreUnavailable("no connection"), None)],
)
async def test_a_reply_that_cannot_be_sent_now_is_sent_later(
    stack: Stack, queue: Queue, fault: Exception, pause: timedelta | None, caplog: pytest.LogCaptureFixture
) -> None:
    person, attempt = Person(two=fault), await attempt_of(stack)
    retried = await answering(stack, person).handle(EVENT, attempt)
    assert isinstance(retried, Retry)
    assert retried.after == pause
    assert "Traceback" not in caplog.text
    assert await state(stack) == AFTER_THE_TURN


async def test_a_reply_that_can_never_be_sent_is_given_up_after_three_failures_of_its_own(
    stack: Stack, queue: Queue
) -> None:
    person, results = Person(), list[object]()
    for fault in (SendLater(MINUTE), NotSent("no connection"), *3 * [ValueError("a bug")]):
        person.faults = {"two": fault}
        attempt = await attempt_of(stack)
        results.append(await answering(stack, person).handle(EVENT, attempt))
        await stack.queue.settle(
            attempt.task, checkpoint=getattr(results[-1], "checkpoint", ""), result=SettleResult.RETRY
        )
    assert [type(result) for result in results] == [Retry, Retry, Retry, Retry, Bury]


async def test_an_attempt_that_has_lost_its_lease_stores_nothing(stack: Stack, queue: Queue) -> None:
    person, first = Person(), await attempt_of(stack, MINUTE)
    stack.advance_clock(2 * MINUTE)
    second = await attempt_of(stack)
    await answering(stack, person).handle(EVENT, first)
    assert person.received == []
    assert await state(stack) == State()
    assert (await stack.queue.extend(second.task, LEASE)).lease_valid


async def test_an_event_that_was_cancelled_is_not_answered(stack: Stack, queue: Queue) -> None:
    person, attempt = Person(), await attempt_of(stack)
    await stack.queue.cancel(attempt.task.task_id)
    await answering(stack, person).handle(EVENT, attempt)
    assert person.received == []
    assert await state(stack) == State()


async def test_two_tenants_and_two_people_have_dialogs_of_their_own(stack: Stack, queue: Queue) -> None:
    await answering(stack, Person()).handle(EVENT, await attempt_of(stack))
    assert await state(stack, tenant="another") == State()
    assert await state(stack, DialogEvent("2", "telegram-bot", "100002")) == State()
    assert await state(stack, DialogEvent("2", "sms", "100001")) == State()
    assert await state(stack) == AFTER_THE_TURN


async def test_a_dialog_that_has_ended_leaves_no_state(stack: Stack, queue: Queue) -> None:
    async def end(event: DialogEvent, state: State) -> Turn:
        return Turn([], State())

    dialogs, attempt = Dialogs(stack.store, "default"), await attempt_of(stack)
    assert await dialogs.save(EVENT, attempt, "{}", AFTER_THE_TURN)
    (key,) = [key async for key in stack.redis.scan_iter("dialog:*")]
    assert 86_000_000 < await stack.redis.pttl(key) <= 86_400_000
    await Answering(dialogs, end, Person().send).handle(EVENT, attempt)
    assert await state(stack) == State()
    assert [key async for key in stack.redis.scan_iter("dialog:*")] == []
