"""When the status of a delivery is looked at again, and until when."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from msgspec.structs import replace

from bots.replies import Reply
from core.errors import StoreUnavailable
from core.model.delivery import Accepted
from core.model.history import History
from core.model.history_key import HistoryKey
from core.orders.following import NotSent, SendLater, StatusHandler, StatusTask, StatusTasks
from core.queue import Attempt, QueueClient, Result, Retry
from core.queue.task import SettleResult
from tests.support.stack import TENANT, Stack, person
from tests.support.waiting import until

LEASE = timedelta(seconds=30)
SECOND = timedelta(seconds=1)


class Chat:
    """The message that shows a delivery. `fault`: what its next change raises."""

    def __init__(self, stack: Stack) -> None:
        self.shown: list[str] = []
        self.fault: Exception | None = None
        self.can_change = True
        self.handler = StatusHandler(stack.tracker, TENANT, self.show, self.edit)

    def show(self, history: History, followed: StatusTask) -> Reply:
        return Reply(str(history.state))

    async def edit(self, followed: StatusTask, reply: Reply) -> bool:
        fault, self.fault = self.fault, None
        if fault:
            raise fault
        self.shown.append(reply.text)
        return self.can_change


@pytest.fixture
async def status_tasks(stack: Stack) -> StatusTasks:
    status_tasks = StatusTasks(QueueClient(stack.store), TENANT, "telegram-bot")
    await status_tasks.open()
    return status_tasks


def followed(accepted: Accepted) -> StatusTask:
    return StatusTask(str(accepted.key), "telegram-bot", "100001", "5", "en")


async def look(stack: Stack, chat: Chat) -> Result:
    """One look, as the worker makes it."""
    (task,) = await until(lambda: stack.take("status.telegram-bot"))
    result = await chat.handler.handle(Attempt(stack.queue, task, LEASE))
    await stack.queue.settle(task)
    return result


async def scheduled(stack: Stack, status_tasks: StatusTasks, after: timedelta) -> Accepted:
    accepted = await stack.deliver(person(1), deliver_at=datetime.now(UTC) + after)
    await status_tasks.begin(followed(accepted), "1")
    return accepted


@pytest.mark.parametrize(
    ("due_in", "least", "most"),
    [(timedelta(days=1), 60, 60), (timedelta(seconds=20), 10, 20), (timedelta(seconds=0.5), 1, 1)],
)
async def test_a_scheduled_delivery_is_looked_at_once_a_minute_and_when_it_is_due(
    stack: Stack, status_tasks: StatusTasks, due_in: timedelta, least: int, most: int
) -> None:
    await scheduled(stack, status_tasks, due_in)
    result = await look(stack, Chat(stack))
    assert isinstance(result, Retry)
    assert result.after is not None
    assert least * SECOND <= result.after <= most * SECOND


async def test_a_message_that_shows_the_newest_is_not_changed_again(stack: Stack, status_tasks: StatusTasks) -> None:
    accepted, chat = await scheduled(stack, status_tasks, timedelta(days=1)), Chat(stack)
    again = await look(stack, chat)
    assert isinstance(again, Retry)
    seen = msgspec.json.decode(again.body, type=StatusTask)
    await status_tasks.begin(seen, "2")
    await look(stack, chat)
    assert chat.shown == ["scheduled"]
    await stack.deliveries.cancel(accepted.key, TENANT)
    await status_tasks.begin(seen, "3")
    assert await look(stack, chat) is None
    assert chat.shown == ["scheduled", "cancelled"]


@pytest.mark.parametrize(
    ("fault", "pause"),
    [
        (SendLater(7 * SECOND), 7 * SECOND),
        (SendLater(timedelta()), SECOND),
        (NotSent("no connection"), 5 * SECOND),
        (StoreUnavailable("no connection"), 5 * SECOND),
    ],
)
async def test_a_change_that_cannot_be_made_now_is_made_later(
    stack: Stack, status_tasks: StatusTasks, fault: Exception, pause: timedelta, caplog: pytest.LogCaptureFixture
) -> None:
    await scheduled(stack, status_tasks, timedelta(days=1))
    chat = Chat(stack)
    chat.fault = fault
    assert await look(stack, chat) == Retry(pause)
    assert "Traceback" not in caplog.text


async def test_a_message_that_cannot_be_changed_any_more_is_not_followed(
    stack: Stack, status_tasks: StatusTasks
) -> None:
    await scheduled(stack, status_tasks, timedelta(days=1))
    chat = Chat(stack)
    chat.can_change = False
    assert await look(stack, chat) is None


async def test_a_delivery_that_is_not_there_any_more_is_not_followed(stack: Stack, status_tasks: StatusTasks) -> None:
    accepted = await stack.deliver(person(1), deliver_at=datetime.now(UTC) + timedelta(days=1))
    unknown = HistoryKey(accepted.key.shard, accepted.key.sender, accepted.key.ns + 1)
    await status_tasks.begin(replace(followed(accepted), key=str(unknown)), "1")
    assert await look(stack, Chat(stack)) is None


async def test_a_delivery_of_another_tenant_is_not_followed(stack: Stack, status_tasks: StatusTasks) -> None:
    await scheduled(stack, status_tasks, timedelta(days=1))
    chat = Chat(stack)
    chat.handler = StatusHandler(stack.tracker, "another", chat.show, chat.edit)
    assert await look(stack, chat) is None
    assert chat.shown == []


async def test_one_update_begins_once_and_another_one_again(stack: Stack, status_tasks: StatusTasks) -> None:
    accepted = await stack.deliver(person(1), deliver_at=datetime.now(UTC) + timedelta(days=1))
    for cause in ("1", "1", "2"):
        await status_tasks.begin(followed(accepted), cause)
    assert len(await stack.finish_all("status.telegram-bot")) == 2


async def test_a_delivery_that_is_followed_twice_is_looked_at_by_one_process_at_a_time(
    stack: Stack, status_tasks: StatusTasks
) -> None:
    """Two readings at once could show an older status behind a newer one."""
    accepted = await stack.deliver(person(1), deliver_at=datetime.now(UTC) + timedelta(days=1))
    for cause in ("1", "2"):
        await status_tasks.begin(followed(accepted), cause)
    assert len(await stack.take("status.telegram-bot", 2)) == 1


async def test_a_delivery_is_followed_as_long_as_it_has_not_ended(stack: Stack, status_tasks: StatusTasks) -> None:
    """It may be scheduled for next week, or be under way for days."""
    await scheduled(stack, status_tasks, timedelta(days=7))
    (task,) = await stack.take("status.telegram-bot")
    await stack.queue.settle(task, result=SettleResult.RETRY, due=task.claimed + 60_000)
    stack.advance_clock(timedelta(days=6))
    await stack.tick("status.telegram-bot")
    assert len(await stack.take("status.telegram-bot")) == 1
