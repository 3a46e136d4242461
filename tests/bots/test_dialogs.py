"""The state of a dialog is stored, and an attempt that is interrupted is continued."""

from datetime import timedelta

import pytest

from bots.conversation.state import State, Turn
from bots.dialogs import Answering, Dialogs
from bots.replies import Button, Reply
from bots.updates import Update, Updates, tube_of
from core.queue import Attempt, Queue, QueueClient
from tests.support.stack import Stack

UPDATE = Update("1", "telegram-bot", "100001", text="hello")
LEASE = timedelta(seconds=30)
MINUTE = timedelta(minutes=1)


class Person:
    """A chat that fails at the `fails_at`-th reply."""

    def __init__(self, fails_at: int = 0) -> None:
        self.received: list[str] = []
        self.conversations = 0
        self._fails_at = fails_at

    async def converse(self, update: Update, state: State) -> Turn:
        self.conversations += 1
        buttons = ((Button("yes", "y"),),)
        return Turn([Reply("one"), Reply("two", buttons), Reply("three")], State("text", text=state.text + "!"))

    async def send(self, update: Update, reply: Reply) -> None:
        if len(self.received) + 1 == self._fails_at:
            self._fails_at = 0
            raise ConnectionError("the provider cannot be reached")
        self.received.append(reply.text)


@pytest.fixture
async def queue(stack: Stack) -> Queue:
    updates = Updates(QueueClient(stack.store), "default", "telegram-bot", "4242")
    await updates.open()
    await updates.put(UPDATE)
    return stack.queue


async def attempt_of(stack: Stack, lease: timedelta = LEASE) -> Attempt:
    (task,) = (await stack.claim(tube_of("telegram-bot"), lease=lease)).tasks
    return Attempt(stack.queue, task, lease)


async def test_replies_are_sent_in_order_and_the_state_is_stored(stack: Stack, queue: Queue) -> None:
    person, dialogs = Person(), Dialogs(stack.store, "default")
    await Answering(dialogs, person.converse, person.send).handle(UPDATE, await attempt_of(stack))
    assert person.received == ["one", "two", "three"]
    assert await dialogs.load(UPDATE) == State("text", text="!")


async def test_an_interrupted_attempt_is_continued_with_the_next_reply(stack: Stack, queue: Queue) -> None:
    person, dialogs = Person(fails_at=2), Dialogs(stack.store, "default")
    answering = Answering(dialogs, person.converse, person.send)
    with pytest.raises(ConnectionError):
        await answering.handle(UPDATE, await attempt_of(stack, MINUTE))
    stack.advance_clock(2 * MINUTE)
    await answering.handle(UPDATE, await attempt_of(stack))
    assert person.received == ["one", "two", "three"]
    assert person.conversations == 1


async def test_an_attempt_that_has_lost_its_lease_stores_nothing(stack: Stack, queue: Queue) -> None:
    person, dialogs = Person(), Dialogs(stack.store, "default")
    first = await attempt_of(stack, MINUTE)
    stack.advance_clock(2 * MINUTE)
    await attempt_of(stack)
    await Answering(dialogs, person.converse, person.send).handle(UPDATE, first)
    assert person.received == []
    assert await dialogs.load(UPDATE) == State()
