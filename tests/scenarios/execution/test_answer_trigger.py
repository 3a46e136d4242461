"""A scenario begins when somebody answers the question of a delivery, whichever way the answer comes."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from core.answers import Answers, OpenQuestions
from core.model.delivery import Accepted
from core.model.question import AnswerKind, AnswerVisibility, Option, Question
from core.queue import QueueClient
from core.redis.keys import KEYS
from core.updates.answer_worker import AnswerWorker
from tests.scenarios.execution.conftest import Installation
from tests.support.stack import TENANT, person
from tests.support.waiting import until

pytestmark = pytest.mark.parametrize("shards", [16])

BOT = """
comes:
  actions:
    - {type: send, text: "Come in: {event_text} {answer_value} {answer_state} {answer_by} {delivery_text}"}
other:
  actions:
    - {type: send, text: "Noted: {event_text}"}
"""
COMING = Question(AnswerKind.CHOICE, [Option("yes", "I come"), Option("no", "I stay")], "en")


@pytest.fixture
async def asking(bare: Installation) -> AsyncIterator[Installation]:
    await bare.start_courier()
    bare.write("scenarios/s.yaml", BOT)
    bare.write("triggers.yaml", "answer: {exact: {i come: s.comes}, '*': s.other}")
    presses = AnswerWorker(bare.stack.store, QueueClient(bare.stack.store))
    await presses.open()
    running = asyncio.create_task(presses.worker().run())
    yield bare
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def ask(asking: Installation, question: Question = COMING) -> Accepted:
    accepted = await asking.stack.deliver(person(1, "echo"), person(2, "echo"), question=question)
    await asking.stack.finished(accepted.key)
    return accepted


async def answer(asking: Installation, accepted: Accepted, who: str, value: str, event: str) -> None:
    await Answers(asking.stack.store).enter(accepted.key, TENANT, who, value, "anna", event)


def replies(asking: Installation) -> list[str]:
    return [text for text in asking.texts if text != "hello"]


async def test_an_answer_and_its_change_begin_scenarios_once_each(asking: Installation) -> None:
    await asking.start()
    accepted = await ask(asking)
    for _ in range(2):
        await answer(asking, accepted, "1", "yes", "e1")
    await until(lambda: len(replies(asking)) == 1)
    await answer(asking, accepted, "1", "no", "e2")
    await until(lambda: len(replies(asking)) == 2)
    assert replies(asking) == ["Come in: I come yes answered on_behalf hello", "Noted: I stay"]
    await OpenQuestions(asking.stack.store).close(accepted.key, TENANT)
    await answer(asking, accepted, "2", "yes", "e3")
    await until(lambda: replies(asking)[2:] == ["Come in: I come yes late on_behalf hello"])
    await asking.stack.audit()


async def test_the_words_of_a_hidden_answer_are_left_out(asking: Installation) -> None:
    await asking.start()
    accepted = await ask(asking, Question(COMING.kind, COMING.options, "en", visible=AnswerVisibility.HIDDEN))
    await answer(asking, accepted, "1", "yes", "e1")
    await until(lambda: replies(asking) == ["Noted: "])


async def test_only_a_bot_with_the_trigger_gets_answers(asking: Installation) -> None:
    await asking.start()
    shards = range(asking.stack.store.shards)
    assert [await listeners(asking, shard) for shard in shards] == [[TENANT] for _ in shards]
    asking.write("triggers.yaml", "text: {'*': s.other}")
    await asking.start()
    assert [await listeners(asking, shard) for shard in shards] == [[] for _ in shards]
    accepted = await ask(asking)
    await answer(asking, accepted, "1", "yes", "e1")
    await until(lambda: is_empty(asking))
    assert replies(asking) == []


async def listeners(asking: Installation, shard: int) -> list[str]:
    return list(await asking.stack.store.command("SMEMBERS", KEYS["answer_bots"].at(shard)))


async def is_empty(asking: Installation) -> bool:
    """Whether no task is left in any shard."""
    shards = range(asking.stack.store.shards)
    states = [await asking.stack.store.command("HGETALL", KEYS["states"].at(shard)) for shard in shards]
    return not any(int(count) for one in states for count in one.values())
