"""Answers by SMS: numbers of their own for each open question of an address, words, notes, and what is unclear."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest

from core.answers import OpenQuestions
from core.deliveries.histories.recipient_search import RecipientFilter
from core.model.clock import to_ms
from core.model.content import Button, Content, Limits
from core.model.delivery import Accepted, GuardedChild, Recipient
from core.model.question import AnswerKind, Late, Option, Question
from core.queue import QueueClient
from core.redis.keys import KEYS
from core.updates.answer_worker import AnswerWorker
from core.updates.events import SEND_REPLY
from couriers.inbound import events_ingress
from couriers.sending import EVERY_FEATURE, Feature
from tests.support.stack import TENANT, FakeCourier, Stack, person
from tests.support.waiting import until

SMS = "sms"
COMING = Question(AnswerKind.CHOICE, [Option("yes", "Приду"), Option("no", "Не приду")], "ru")
SWIM = Question(AnswerKind.CHOICE, [Option("yes", "I swim"), Option("no", "I do not")], "en")


@dataclass
class SmsCourier(FakeCourier):
    """A courier whose number can be answered."""

    channel: str = SMS
    limits: Limits = field(default_factory=lambda: Limits(in_sms=True, numbers=True))

    def as_text(self, content: Content) -> frozenset[Feature]:
        return EVERY_FEATURE


@dataclass
class Phones:
    """People who get SMS and write back."""

    stack: Stack
    courier: SmsCourier
    ingress: Any
    numbers: "count[int]" = field(default_factory=count)

    async def ask(self, question: Question, *people: int, text: str = "Придёте?") -> Accepted:
        recipients = [person(one, SMS) for one in people or (1,)]
        accepted = await self.stack.deliver(*recipients, channels=(SMS,), question=question, text=text)
        await self.stack.finished(accepted.key)
        return accepted

    def texts(self, number: int = 1) -> list[str]:
        return [one.text for one in self.courier.attempted if one.address == address(number)]

    async def write(self, text: str, number: int = 1, event: str = "") -> None:
        await self.ingress.put({"id": event or f"m{next(self.numbers)}", "number": address(number), "text": text})

    async def answer_of(self, accepted: Accepted, number: int = 1) -> tuple[str, str, str] | None:
        history = await self.stack.history(accepted.key)
        found = next(one.answer for one in history.recipients if one.id == number)
        assert found
        return (found.row.value, found.row.text, found.row.by) if found.row else None

    async def answers(self, accepted: Accepted, *expected: str, number: int = 1) -> None:
        """Wait until a person has answered this."""

        async def is_answered() -> bool:
            return await self.answer_of(accepted, number) == (*expected,)

        await until(is_answered)


def address(number: int) -> str:
    return person(number, SMS).contacts[SMS][0]


@pytest.fixture
async def phones(stack: Stack) -> AsyncIterator[Phones]:
    courier = SmsCourier()
    await stack.courier(courier)
    client = QueueClient(stack.store)
    presses, ingress = AnswerWorker(stack.store, client), events_ingress(stack.store, client, TENANT)[SMS]
    await presses.open()
    await ingress.open()
    worker = presses.worker()
    running = asyncio.create_task(worker.run())
    yield Phones(stack, courier, ingress)
    worker.stop()
    await running
    await client.close()


async def test_each_open_question_of_a_number_has_its_own_digits(phones: Phones) -> None:
    first = await phones.ask(COMING, 1, 2)
    second = await phones.ask(SWIM, text="Pool?")
    other = await phones.ask(SWIM, 2, text="Pool?")
    assert phones.texts(1) == ["Придёте?\nОтветьте 1 – Приду, 2 – Не приду", "Pool?\nReply 3 - I swim, 4 - I do not"]
    await phones.write("1")
    await phones.answers(first, "yes", "", "number")
    await phones.write("4")
    await phones.answers(second, "no", "", "number")
    await phones.write("1, но опоздаю", number=2)
    await phones.answers(first, "yes", "но опоздаю", "number", number=2)
    assert await phones.answer_of(other, 2) is None
    reached = (await phones.stack.history(first.key)).recipients[0].outcomes[SMS]
    assert (reached.status, reached.reason) == ("read", "answered")
    assert len(phones.texts(1)) == 2  # a reply costs an SMS


async def test_a_bare_yes_counts_for_the_only_open_question_and_otherwise_they_are_listed(phones: Phones) -> None:
    first = await phones.ask(COMING)
    await phones.write("Да, но опоздаю")
    await phones.answers(first, "yes", "но опоздаю", "text")
    second = await phones.ask(SWIM, text="Pool?")
    await phones.write("нет")
    await until(lambda: len(phones.texts()) == 3)
    assert phones.texts()[2].splitlines() == [
        "Неясно, на какой вопрос ответ. Ответьте так:",
        "Придёте?: 1 - Приду, 2 - Не приду",
        "Pool?: 3 - I swim, 4 - I do not",
    ]
    assert await phones.answer_of(second) is None
    await OpenQuestions(phones.stack.store).close(first.key, TENANT)
    await phones.write("no")
    await phones.answers(second, "no", "", "text")
    assert (await phones.answer_of(first)) == ("yes", "но опоздаю", "text")


async def test_one_sms_answers_for_two_children_and_what_is_unclear_comes_back(phones: Phones) -> None:
    """`1 и 4` counted for the first child, with a note; the second answer was lost."""
    children = [GuardedChild("i", "Иван"), GuardedChild("v", "Вера")]
    guardian = Recipient(1, contacts={SMS: [address(1)]}, children=children)
    accepted = await phones.stack.deliver(guardian, channels=(SMS,), question=COMING, text="Придёте?")
    await phones.stack.finished(accepted.key)
    await phones.write("1 нет 2")
    await until(lambda: len(phones.texts()) == 2)
    assert "4 - Вера: Не приду" in phones.texts()[1]
    await phones.write("1 и 4")

    async def answered() -> bool:
        page = await phones.stack.deliveries.recipients.page(
            accepted.key, TENANT, RecipientFilter(members=True), None, 10
        )
        rows = {one.id: one.answer.row.value for one in page.recipients if one.answer and one.answer.row}
        return (rows.get("i"), rows.get("v")) == ("yes", "no")

    await until(answered)
    assert len(phones.texts()) == 2


async def test_the_number_that_sends_a_held_reply_is_no_answer_to_an_open_question(phones: Phones) -> None:
    """`1` was unclear, again and again, and the held message was never sent."""
    accepted = await phones.ask(COMING)
    send = Content(inline=[[Button("Отправить", f"{SEND_REPLY}addresses.x")]])
    held = await phones.stack.deliver(person(1, SMS), channels=(SMS,), content=send, text="Отправить?")
    await phones.stack.finished(held.key)
    await phones.write("1")
    (press,) = [json.loads(one.body) for one in await phones.stack.take("replies", 10)]
    assert (press["kind"], press["callback_data"]) == ("callback", f"{SEND_REPLY}addresses.x")
    assert await phones.answer_of(accepted) is None


async def test_a_late_answer_is_told_and_its_number_is_not_given_to_another_question_for_a_day(phones: Phones) -> None:
    first = await phones.ask(COMING)
    await OpenQuestions(phones.stack.store).close(first.key, TENANT)
    await phones.ask(SWIM, text="Pool?")
    assert phones.texts()[1] == "Pool?\nReply 3 - I swim, 4 - I do not"
    await phones.write("1")
    await until(lambda: len(phones.texts()) == 3)
    assert phones.texts()[2] == "Приём ответов закончен. Ответ отмечен как поздний."


async def test_the_numbers_of_an_address_live_as_long_as_the_question_that_ends_last(phones: Phones) -> None:
    stack, key = phones.stack, KEYS["answer_numbers"].at(0, TENANT, SMS, address(1))
    days = []
    for ends in (5, 60, 1):
        closes = to_ms(stack.now() + timedelta(days=ends))
        await phones.ask(Question(COMING.kind, COMING.options, "ru", until=closes))
        days.append(round(timedelta(milliseconds=await stack.redis.pttl(key)) / timedelta(days=1)))
    assert days == [6, 61, 61], "a day longer than the question"


async def test_the_numbers_of_a_question_that_is_gone_are_free_again(phones: Phones) -> None:
    first = await phones.ask(COMING)
    await phones.stack.store.command("HSET", str(first.key), "answers_closed", 1)
    await phones.ask(SWIM, text="Pool?")
    assert phones.texts()[1] == "Pool?\nReply 1 - I swim, 2 - I do not"


async def test_the_same_sms_twice_counts_once_and_a_repeat_of_a_reply_is_not_sent(phones: Phones) -> None:
    first = await phones.ask(COMING)
    for _ in range(3):
        await phones.write("2", event="same")
    await phones.answers(first, "no", "", "number")
    history = await phones.stack.history(first.key)
    assert history.answers
    assert history.answers.options == {"yes": 0, "no": 1}


async def test_a_number_of_a_later_menu_is_unclear_and_numbers_avoid_those_of_an_earlier_one(phones: Phones) -> None:
    menu = Content(inline=[[Button("Schedule", "schedule")], [Button("Help", "help")]])
    await phones.stack.finished((await phones.stack.deliver(person(1, SMS), channels=(SMS,), content=menu)).key)
    first = await phones.ask(COMING)
    assert phones.texts()[1] == "Придёте?\nОтветьте 3 – Приду, 4 – Не приду"
    bigger = Content(inline=[[Button(f"b{n}", f"b{n}")] for n in range(4)])
    await phones.stack.finished((await phones.stack.deliver(person(1, SMS), channels=(SMS,), content=bigger)).key)
    await phones.write("3")
    await until(lambda: len(phones.texts()) == 4)
    assert "Неясно" in phones.texts()[3]
    assert await phones.answer_of(first) is None
    await phones.write("приду")
    await phones.answers(first, "yes", "", "text")


async def test_what_answers_nothing_goes_to_the_bot(phones: Phones) -> None:
    await phones.ask(COMING)
    for text in ("9", "расписание", "11.30"):
        await phones.write(text)
    states = await phones.stack.store.command("HGETALL", "queue:{0}:states")
    assert int(states["events:ready"]) == 3


async def test_a_question_of_the_bot_that_waits_has_precedence(phones: Phones) -> None:
    first = await phones.ask(COMING)
    key = f"questions:{{0}}:of:{TENANT}:{SMS}:{address(1)}:{address(1)}"
    await phones.stack.store.command("SET", key, "{}")
    await phones.write("1")
    await phones.stack.store.command("DEL", key)
    await phones.write("2")
    await phones.answers(first, "no", "", "number")
    history = await phones.stack.history(first.key)
    row = history.recipients[0].answer
    assert row
    assert row.row
    assert row.row.revisions == ()


async def test_without_numbers_and_an_address_for_links_the_question_is_not_shown(stack: Stack) -> None:
    courier = SmsCourier(limits=Limits(in_sms=True))
    await stack.courier(courier)
    accepted = await stack.deliver(person(1, SMS), channels=(SMS,), question=COMING)
    await stack.finished(accepted.key)
    assert "Ответьте" not in courier.attempted[0].text
    assert (await stack.history(accepted.key)).recipients[0].outcomes[SMS].not_shown == ("answer",)


async def test_a_hundred_open_questions_leave_no_number_wrong(phones: Phones) -> None:
    until_ms = to_ms(datetime.now(UTC) + timedelta(hours=1))
    many = Question(AnswerKind.CHOICE, [Option(str(n), f"o{n}") for n in range(40)], "en", until_ms, late=Late.KEEP)
    for _ in range(3):
        await phones.ask(many, text="Which?")
    assert "1 - o0" in phones.texts()[0]
    assert "41 - o0" in phones.texts()[1]
    assert "Reply" not in phones.texts()[2]
