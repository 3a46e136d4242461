"""No event is lost, whatever stops the reading: restarts, a trimmed stream, a receiver that is down for long."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import pytest

from core.answers import Answers, OpenQuestions
from core.errors import StoreUnavailable
from core.model.delivery import Accepted
from core.model.question import AnswerKind, Option, Question
from core.queue import NewTask, TaskFilter
from core.redis.constants import EVENTS_KEPT
from core.redis.server_checks import configure
from core.webhooks.event_reader import EventReader, ReadingLimits, put_message
from core.webhooks.http_client import WebhookClient
from core.webhooks.registry import Webhooks
from core.webhooks.webhook import EventType
from tests.core.webhooks.conftest import NO_LIMITS, Installation
from tests.core.webhooks.receiver import Receiver, status
from tests.support.servers import Server
from tests.support.stack import TENANT, Stack, people
from tests.support.waiting import stays, until

POSITION = "webhooks:{0}:position"


async def deliver(installation: Installation, count: int, recipients: int = 1) -> list[Accepted]:
    """Deliveries that have finished."""
    made = [await installation.stack.deliver(*people(recipients)) for _ in range(count)]
    for accepted in made:
        await installation.stack.finished(accepted.key)
    return made


def ids(made: Sequence[Accepted]) -> set[str]:
    return {accepted.key.id for accepted in made}


def reader(installation: Installation, limits: ReadingLimits = NO_LIMITS) -> EventReader:
    stack = installation.stack
    return EventReader(stack.store, 0, stack.queue, installation.webhooks, limits)


async def read_all(events: EventReader) -> None:
    while await events.step():
        pass


async def waiting_ids(installation: Installation, webhook_id: str) -> list[str]:
    found = await installation.stack.queue.inspector.select(TaskFilter(user=webhook_id), 1000)
    return sorted(str(task.body).split('"id":"')[1].split('"')[0] for task in found)


async def test_events_before_the_creation_are_not_sent(installation: Installation, receiver: Receiver) -> None:
    await installation.courier()
    await deliver(installation, 2)
    await asyncio.sleep(0.01)
    await installation.add(receiver, [EventType.FINISHED])
    installation.start()
    made = await deliver(installation, 1)
    await until(lambda: receiver.calls)
    assert receiver.finished() == ids(made)


async def test_events_while_no_process_sends_are_sent_by_the_next_one(
    installation: Installation, receiver: Receiver
) -> None:
    await installation.courier()
    await installation.add(receiver, [EventType.FINISHED])
    installation.start()
    first = await deliver(installation, 1)
    await until(lambda: receiver.calls)
    await installation.stop()
    second = await deliver(installation, 3)
    installation.start()
    await until(lambda: receiver.finished() == ids([*first, *second]))
    assert set(receiver.copies().values()) == {1}


async def test_a_process_that_dies_between_put_and_position_repeats_with_the_same_ids(
    installation: Installation, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    await installation.courier()
    webhook = await installation.add(receiver)
    await deliver(installation, 2, recipients=3)
    dying = reader(installation)

    async def die(*_: object) -> bool:
        raise StoreUnavailable("killed")

    await dying.step()  # moves the position to the creation of the webhook
    monkeypatch.setattr(dying, "_advance", die)
    with pytest.raises(StoreUnavailable):
        await dying.step()
    once = await waiting_ids(installation, webhook.id)
    await dying.release()
    await read_all(reader(installation))
    twice = await waiting_ids(installation, webhook.id)
    assert len(once) == 8
    assert twice == sorted([*once, *once])


async def test_one_process_reads_at_a_time_and_the_others_take_over(
    installation: Installation, receiver: Receiver
) -> None:
    await installation.courier()
    webhook = await installation.add(receiver, [EventType.FINISHED])
    first, second = reader(installation), reader(installation)
    await read_all(first)
    await deliver(installation, 1)
    await read_all(second)
    assert await waiting_ids(installation, webhook.id) == []
    await first.release()
    await read_all(second)
    assert len(await waiting_ids(installation, webhook.id)) == 1
    await deliver(installation, 1)
    await read_all(first)
    assert len(await waiting_ids(installation, webhook.id)) == 1


async def test_a_process_that_was_frozen_while_another_took_over_does_not_move_the_position(
    installation: Installation, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    await installation.courier()
    await installation.add(receiver, [EventType.FINISHED])
    frozen, other = reader(installation), reader(installation)
    await read_all(frozen)
    await deliver(installation, 1)
    put = frozen._put

    async def put_late(found: object) -> None:
        await installation.stack.redis.delete("webhooks:{0}:reader")
        await deliver(installation, 1)
        await read_all(other)
        await put(found)  # type: ignore[arg-type]

    monkeypatch.setattr(frozen, "_put", put_late)
    await frozen.step()
    newest = await installation.stack.redis.xrevrange("events:{0}", count=1)
    assert newest
    assert await installation.stack.redis.hget(POSITION, "entry") == newest[0][0]


async def test_events_that_were_trimmed_unread_are_sent_from_the_histories(
    installation: Installation, receiver: Receiver
) -> None:
    """As after a long stop of all senders: the histories still have what became of each delivery."""
    await installation.courier()
    webhook = await installation.add(receiver)
    await read_all(reader(installation))
    made = await deliver(installation, 3, recipients=2)
    await installation.stack.redis.xtrim("events:{0}", maxlen=0, approximate=False)
    await pretend_last_read_long_ago(installation)
    later = await deliver(installation, 1, recipients=2)
    installation.start()
    await until(lambda: receiver.finished() == ids([*made, *later]))
    await until(lambda: len({call.id for call in receiver.of_type("outcome")}) == 8)
    assert not await installation.stack.redis.hexists(POSITION, f"behind:{webhook.id}")


async def pretend_last_read_long_ago(installation: Installation) -> None:
    position = await installation.stack.redis.hget(POSITION, "read")
    await installation.stack.redis.hset(POSITION, "read", int(position or 0) - 120_000)
    await installation.stack.redis.delete("webhooks:{0}:reader")


async def test_the_end_of_an_old_delivery_that_asks_is_sent_from_its_history(
    installation: Installation, receiver: Receiver
) -> None:
    """Its answers, and so its history, are kept for a shorter time than others: by this time its end was looked for."""
    stack, day = installation.stack, timedelta(days=1)
    await configure(stack.store, 30 * day, answers_retention=2 * day)
    await installation.courier()
    await installation.add(receiver, [EventType.FINISHED])
    await read_all(reader(installation))
    accepted = await stack.deliver(*people(1), question=Question(AnswerKind.CONFIRM, [Option("read", "Read")], "en"))
    await stack.finished(accepted.key)
    await stack.redis.zadd(f"deliveries:{{0}}:listed:{TENANT}", {accepted.key.suffix: 1})  # as if ordered long before
    await stack.redis.xtrim("events:{0}", maxlen=0, approximate=False)
    await pretend_last_read_long_ago(installation)
    installation.start()
    await until(lambda: receiver.finished() == ids([accepted]))


async def test_messages_from_the_histories_have_the_ids_of_those_from_the_stream(
    installation: Installation, receiver: Receiver
) -> None:
    await installation.courier()
    webhook = await installation.add(receiver)
    events = reader(installation)
    await read_all(events)
    await deliver(installation, 3, recipients=2)
    before = await installation.stack.redis.hget(POSITION, "entry")
    await read_all(events)
    from_stream = await waiting_ids(installation, webhook.id)
    await installation.stack.queue.cancel_by(TaskFilter(user=webhook.id))
    await installation.stack.redis.hset(POSITION, "entry", before)
    await installation.stack.redis.xtrim("events:{0}", maxlen=0, approximate=False)
    await pretend_last_read_long_ago(installation)
    await read_all(reader(installation))
    assert await waiting_ids(installation, webhook.id) == from_stream
    assert len(from_stream) == 9


async def test_a_reader_that_reads_all_the_time_takes_a_trimmed_stream_for_read(
    installation: Installation, receiver: Receiver
) -> None:
    await installation.courier()
    webhook = await installation.add(receiver, [EventType.FINISHED])
    events = reader(installation)
    await read_all(events)
    await deliver(installation, 1)
    await read_all(events)
    await installation.stack.redis.xtrim("events:{0}", maxlen=0, approximate=False)
    await deliver(installation, 1)
    await read_all(events)
    assert len(await waiting_ids(installation, webhook.id)) == 2
    assert not await installation.stack.redis.hexists(POSITION, f"behind:{webhook.id}")


async def test_a_stream_that_was_trimmed_by_length_is_noticed(installation: Installation, receiver: Receiver) -> None:
    await installation.courier()
    webhook = await installation.add(receiver, [EventType.FINISHED])
    await read_all(reader(installation))
    made = await deliver(installation, 2)
    fields = "'history', '7:1763712000000000000', 'event', 'reported', 'state', 'released', 'version', '1'"
    add = f"redis.call('XADD', KEYS[1], '*', {fields}, 'reported', '1', 'finished', '0', 'changes', '')"
    fill = f"for n = 1, {EVENTS_KEPT} do {add} end"
    await installation.stack.redis.eval(fill, 1, "events:{0}")
    await installation.stack.redis.xtrim("events:{0}", maxlen=EVENTS_KEPT, approximate=False)
    await installation.stack.redis.delete("webhooks:{0}:reader")
    await read_all(reader(installation))
    assert len(await waiting_ids(installation, webhook.id)) == len(made)
    await installation.stack.redis.xtrim("events:{0}", maxlen=0, approximate=False)


async def test_what_waits_for_a_receiver_that_is_down_is_bounded_and_nothing_is_lost(
    installation: Installation, receiver: Receiver
) -> None:
    receiver.answer = status(503)
    webhook = await installation.add(receiver)
    await installation.courier()
    installation.start(limits=ReadingLimits(pending=20, kept_dead=5))
    made = [one for _ in range(12) for one in await deliver(installation, 1, recipients=5)]
    pending = []

    async def is_full() -> bool:
        pending.append(await installation.webhooks.pending(webhook.id))
        return pending[-1] > 0 and await is_behind(installation, webhook.id)

    await until(is_full)
    assert max(pending) <= 20
    receiver.answer = status(200)
    await until(lambda: receiver.finished() == ids(made))
    await until(lambda: len(receiver.copies()) == 12 * 6)  # only those about one recipient come in their order
    await until(lambda: is_up_to_date(installation, webhook.id))
    more = await deliver(installation, 1)
    await until(lambda: ids(more) <= receiver.finished())


async def is_behind(installation: Installation, webhook_id: str) -> bool:
    return bool(await installation.stack.redis.hexists(POSITION, f"behind:{webhook_id}"))


async def is_up_to_date(installation: Installation, webhook_id: str) -> bool:
    return not await is_behind(installation, webhook_id)


async def test_the_oldest_messages_are_dropped_whenever_they_were_given_up(
    installation: Installation, receiver: Receiver
) -> None:
    webhook, queue = await installation.add(receiver), installation.stack.queue
    tasks = [await queue.put("webhooks", NewTask(str(number), TENANT, user=webhook.id)) for number in range(5)]
    for task in reversed(tasks):
        installation.stack.advance_clock(timedelta(minutes=1))
        await queue.bury(task)
    assert await installation.webhooks.drop_dead(webhook.id, 2) == 3
    found = await queue.inspector.select(TaskFilter(user=webhook.id), 100)
    assert [task.body for task in found if task.state == "buried"] == ["3", "4"]


async def test_dead_letters_are_dropped_when_they_leave_no_room(installation: Installation, receiver: Receiver) -> None:
    webhook = await installation.add(receiver, [EventType.FINISHED])
    events = reader(installation, ReadingLimits(pending=10, kept_dead=3))
    queue = installation.stack.queue
    for number in range(10):
        await queue.bury(await queue.put("webhooks", NewTask(str(number), TENANT, user=webhook.id)))
    await installation.courier()
    made = await deliver(installation, 2)
    await read_all(events)
    await read_all(events)
    found = await queue.inspector.select(TaskFilter(user=webhook.id), 100)
    assert [task.body for task in found if task.state == "buried"] == ["7", "8", "9"]
    assert len(found) == 3 + len(made)


async def test_an_event_beside_the_stream_reaches_each_webhook_that_wants_it(
    installation: Installation, receiver: Receiver
) -> None:
    """Also those behind one that is disabled, or wants other events."""
    webhooks, queue = installation.webhooks, installation.stack.queue
    await webhooks.disable(await installation.add(receiver, [EventType.REPLY]))
    await installation.add(receiver, [EventType.FINISHED])
    await installation.add(receiver, [EventType.REPLY], tenant="another")
    wanting = [await installation.add(receiver, [EventType.REPLY], path=path) for path in ("/b", "/c")]
    await put_message(webhooks, queue, TENANT, EventType.REPLY, "thread 1", installation.stack.now(), {})
    found = await queue.inspector.ready_tasks()
    assert found == {"webhooks": 2}
    assert [len(await waiting_ids(installation, one.id)) for one in wanting] == [1, 1]


async def test_a_webhook_that_falls_behind_misses_no_event_of_the_page(
    installation: Installation, receiver: Receiver
) -> None:
    webhook = await installation.add(receiver, [EventType.FINISHED])
    await installation.courier()
    made = await deliver(installation, 4)
    await read_all(reader(installation, ReadingLimits(pending=3, kept_dead=1)))
    found = await installation.stack.queue.inspector.select(TaskFilter(user=webhook.id), 10)
    assert [one.key.id in str(found[0].body) for one in made] == [True, False, False, False]
    assert await is_behind(installation, webhook.id)


async def test_without_webhooks_nothing_is_written_and_no_worker_runs(installation: Installation) -> None:
    installation.start()
    await installation.courier()
    await deliver(installation, 1)
    await stays(lambda: not [key for key in installation.stack.server.all_keys() if "webhooks" in key])


async def test_the_events_of_all_shards_are_sent(server: Server, receiver: Receiver) -> None:
    stack = await Stack.open(server, shards=3)
    async with WebhookClient(allow_private=True) as client:
        installation = Installation(stack, client, Webhooks(stack.store, stack.queue, client))
        await installation.add(receiver)
        installation.start()
        await installation.courier()
        made = await deliver(installation, 12)
        assert len({accepted.key.shard for accepted in made}) > 1
        await until(lambda: receiver.finished() == ids(made))
        await until(lambda: len(receiver.calls) == 24)
        await installation.stop()
    await stack.close()


@pytest.mark.parametrize("is_behind", [False, True])
async def test_answers_and_the_closing_of_a_question_are_sent(
    installation: Installation, receiver: Receiver, is_behind: bool
) -> None:
    """Those of a webhook that is behind are made from the history."""
    stack, answers = installation.stack, Answers(installation.stack.store)
    questions = OpenQuestions(installation.stack.store)
    await installation.courier()
    await installation.add(receiver, [EventType.ANSWER, EventType.CLOSED])
    await read_all(reader(installation))
    question = Question(AnswerKind.CHOICE, [Option("yes", "Yes"), Option("no", "No")], "en")
    accepted = await stack.deliver(*people(2), question=question)
    await stack.finished(accepted.key)
    for number, value in enumerate(("yes", "no")):
        await answers.enter(accepted.key, TENANT, "1", value, "anna", f"event{number}")
    await questions.close(accepted.key, TENANT)
    if is_behind:
        await stack.redis.xtrim("events:{0}", maxlen=0, approximate=False)
        await pretend_last_read_long_ago(installation)
    installation.start()
    await until(lambda: receiver.of_type("closed") and len(receiver.of_type("answer")) == 2 - is_behind)
    sent = [(call.data["recipient"], call.data["value"], call.data["changes"]) for call in receiver.of_type("answer")]
    assert sent == ([] if is_behind else [(1, "yes", 0)]) + [(1, "no", 1)]
    (closed,) = receiver.of_type("closed")
    assert (closed.data["answers"]["answered"], closed.data["options"]) == (1, {"yes": 0, "no": 1})
