"""Answers that people write: a text, a number or a date, as a reply, as the next message, or by SMS with a number."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from io import BytesIO
from itertools import count
from typing import Any

import pytest
from msgspec.structs import replace

from core.answers import AnsweredMessage, AnswerNumbers, Answers, OpenQuestions
from core.answers.values import read_value
from core.deliveries.received import ReceivedMessages
from core.directory import Directory
from core.errors import Forbidden
from core.model.clock import to_ms
from core.model.content import Feature
from core.model.delivery import Accepted, Recipient
from core.model.history import History
from core.model.people import User, UserChange
from core.model.question import AnswerKind, AnswerState, AnswerVisibility, Late, Option, Question
from core.queue import QueueClient
from core.redis.server_checks import configure
from core.updates.answer_worker import AnswerWorker
from core.updates.events import NO_ANSWER_TO, Events
from core.uploads import Uploads
from tests.core.answers.test_answers import BOT, SHOWS
from tests.core.answers.test_numbers import SMS, SmsCourier
from tests.support.audited import violations_in
from tests.support.stack import TENANT, FakeCourier, Stack, person
from tests.support.waiting import until

TEXT, NUMBER, DATE, FILE = AnswerKind.TEXT, AnswerKind.NUMBER, AnswerKind.DATE, AnswerKind.FILE
ADDRESS = {BOT: "p1", SMS: person(1, SMS).contacts[SMS][0]}


@dataclass
class Writers:
    """A person who gets questions over a bot and SMS, and writes."""

    stack: Stack
    couriers: dict[str, FakeCourier]
    numbers: "count[int]" = field(default_factory=count)

    async def ask(self, kind: AnswerKind, *, channel: str = BOT, **more: Any) -> Accepted:
        accepted = await self.stack.deliver(
            person(1, channel), channels=(channel,), question=Question(kind, [], "ru", **more), text="Сколько вас?"
        )
        await self.stack.finished(accepted.key)
        return accepted

    async def ask_with_replies(self, question: Question) -> Accepted:
        accepted = await self.stack.deliver(person(1, BOT), channels=(BOT,), question=question, replies="sender")

        async def is_noted() -> bool:
            newest = await ReceivedMessages(self.stack.store).last(TENANT, BOT, "p1", 0)
            return newest is not None and newest.key == accepted.key

        await until(is_noted)
        return accepted

    async def write(self, text: str, *, channel: str = BOT, quotes: str = "", **more: Any) -> str:
        """Write to the bot, or an SMS; return the tube that gets it."""
        store, name = self.stack.store, f"e{next(self.numbers)}"
        events = Events(QueueClient(store), TENANT, received=ReceivedMessages(store), numbers=AnswerNumbers(store))
        await events.open()
        event = {"id": name, "channel": channel, "kind": "text", "user_id": ADDRESS[channel], "event_text": text}
        await events.put(TENANT, {**event, **more, **({"reply_message_id": quotes} if quotes else {})})
        return "events" if await self.stack.take("events") else "answers"

    async def answers(self, accepted: Accepted, value: str, text: str = "") -> History:
        async def is_answered() -> bool:
            answer = (await self.stack.history(accepted.key)).recipients[0].answer
            row = answer.row if answer else None
            return row is not None and (row.value, row.text) == (value, text)

        await until(is_answered)
        return await self.stack.history(accepted.key)

    def replies_with(self, text: str, channel: str) -> int:
        return sum(text in one.text for one in self.couriers[channel].attempted)

    async def is_told(self, text: str, channel: str = BOT) -> None:
        await until(lambda: text in [one.text for one in self.couriers[channel].attempted])


@pytest.fixture
async def writers(stack: Stack) -> AsyncIterator[Writers]:
    couriers: dict[str, FakeCourier] = {BOT: FakeCourier(BOT, shows=SHOWS), SMS: SmsCourier()}
    for one in couriers.values():
        await stack.courier(one)
    presses = AnswerWorker(stack.store, QueueClient(stack.store))
    await presses.open()
    worker = presses.worker()
    running = asyncio.create_task(worker.run())
    yield Writers(stack, couriers)
    worker.stop()
    await running
    await stack.audit()


async def test_a_text_answers_the_only_open_question_once_and_a_quote_changes_the_answer(writers: Writers) -> None:
    accepted = await writers.ask(TEXT)
    assert writers.couriers[BOT].attempted[0].text == "Сколько вас?\nОтветьте на это сообщение: текстом."
    await writers.write("Двое, и собака")
    history = await writers.answers(accepted, "", "Двое, и собака")
    assert history.recipients[0].outcomes[BOT].reason == "answered"
    await writers.is_told("Ответ записан: Двое, и собака")
    await writers.write("Трое", quotes="ref-p1")
    history = await writers.answers(accepted, "", "Трое")
    assert history.recipients[0].answer
    assert history.recipients[0].answer.row
    assert [one.text for one in history.recipients[0].answer.row.revisions] == ["Двое, и собака"]
    assert await writers.write("спасибо") == "events"  # the question has its answer


@pytest.mark.parametrize(("channel", "address"), [(BOT, "100001"), (SMS, "+79991112233")])
async def test_who_has_an_address_afterwards_does_not_answer_as_its_former_owner(
    writers: Writers, channel: str, address: str
) -> None:
    """Its words are its own: they go on as any others."""
    store, users = writers.stack.store, Directory(writers.stack.store).users
    await users.create(TENANT, User(1, contacts={channel: [address]}))
    await users.create(TENANT, User(2))
    question = Question(TEXT, [], "ru")
    accepted = await writers.stack.deliver(
        Recipient(1, contacts={channel: [address]}), channels=(channel,), question=question
    )
    await writers.stack.finished(accepted.key)
    numbers, reply = AnswerNumbers(store), (accepted.key, 0, AnsweredMessage(channel, 0, 0))
    meant = await numbers.read(TENANT, channel, address, "Двое")
    assert meant
    assert await numbers.read_mail("Двое", *reply)
    await users.update(TENANT, 1, UserChange(contacts={}))
    await users.update(TENANT, 2, UserChange(contacts={channel: [address]}))
    assert await numbers.read(TENANT, channel, address, "Двое") is None
    assert await numbers.read_mail("Двое", *reply) is None
    assert await numbers.open_questions(TENANT, channel, address) == []
    with pytest.raises(Forbidden) as refused:  # what was read before the address has moved
        await numbers.answer(TENANT, channel, meant, "e")
    assert refused.value.code == "ANSWER_NOT_YOURS"


async def test_a_number_has_one_form_and_what_is_none_is_said(writers: Writers) -> None:
    accepted = await writers.ask(NUMBER)
    await writers.write("12 человек")
    await writers.is_told("Нужно число, например 12 или 3,5.")
    await writers.write("1 012,50")
    history = await writers.answers(accepted, "1012.5")
    assert history.answers
    assert (history.answers.sum, history.answers.counted, history.answers.options) == (101250, 1, {})
    await writers.write("-2", quotes="ref-p1")
    history = await writers.answers(accepted, "-2")
    assert history.answers
    assert history.answers.sum == -200
    assert await writers.write("какие люди?") == "events"


@pytest.mark.parametrize("quotes", ["ref-p1", ""])
async def test_an_edit_of_an_answer_changes_it_where_it_may_be_changed(writers: Writers, quotes: str) -> None:
    first = await writers.ask(NUMBER)
    await writers.write("3", quotes=quotes, message_id=5)
    await writers.answers(first, "3")
    await writers.write("4", kind="edited", message_id=5)
    await writers.answers(first, "4")
    await writers.is_told("Ответ изменён: 4")
    assert await writers.write("4", kind="edited", message_id=5) == "events"  # the text is the same
    await writers.write("four", kind="edited", message_id=5)
    await writers.is_told("Нужно число, например 12 или 3,5.")
    final = await writers.ask(NUMBER, change=False)
    await writers.write("7", message_id=6)
    await writers.answers(final, "7")
    await writers.write("8", kind="edited", message_id=6)
    await until(lambda: writers.replies_with("7", BOT) == 2)
    await writers.answers(final, "7")


async def test_a_hidden_answer_stands_in_no_reply_to_it(writers: Writers) -> None:
    """A reply has a history, which more people read than may see the answer."""
    accepted = await writers.ask(NUMBER, visible=AnswerVisibility.HIDDEN, change=False)
    await writers.write("4711")
    await writers.is_told("Ответ записан. Отправитель его не видит.")
    await OpenQuestions(writers.stack.store).close(accepted.key, TENANT)
    await writers.write("12", quotes="ref-p1")
    await writers.is_told("Приём ответов закончен. Записано: …")
    assert "4711" not in "".join(one.text for one in writers.couriers[BOT].attempted)


async def test_a_date_is_read_with_the_day_first(writers: Writers) -> None:
    accepted = await writers.ask(DATE)
    await writers.write("31.02.2027")
    await writers.is_told("Нужна дата, например 31.12.2026.")
    await writers.write("1.3.27")
    await writers.answers(accepted, "2027-03-01")


async def test_two_open_questions_are_listed_and_the_quoted_one_is_answered(writers: Writers) -> None:
    first, second = await writers.ask(TEXT), await writers.ask(NUMBER)
    await writers.write("12")
    listed = "Неясно, на какой вопрос ответ. Ответьте так:" + 2 * "\nСколько вас?: ответьте на само сообщение"
    await writers.is_told(listed)
    await writers.write("12", quotes="ref-p1")  # both messages have this id: the newest is quoted
    await writers.answers(second, "12")
    await writers.write("двое")
    await writers.answers(first, "", "двое")


async def test_what_quotes_another_message_and_the_words_of_an_option_are_no_answer_to_a_question_for_a_text(
    writers: Writers,
) -> None:
    """ "Приду" to one question was counted as the text that another one has asked for."""
    choice_of = Question(AnswerKind.CHOICE, [Option("yes", "Приду"), Option("no", "Не приду")], "ru")
    choice = await writers.ask_with_replies(choice_of)
    await writers.write("Приду", quotes="ref-p1")
    await writers.answers(choice, "yes")
    await writers.write("Не приду. А когда сбор?", quotes="ref-p1")
    await writers.answers(choice, "no", "А когда сбор?")
    await writers.is_told("Ответ изменён: Не приду")
    await until(lambda: writers.stack.take("replies"))  # the sender gets the words, too
    await writers.write(" не приду ")
    await writers.answers(choice, "no")
    await writers.is_told("Ответ изменён: Не приду")
    written = await writers.ask(TEXT)
    await writers.ask_with_replies(Question(AnswerKind.CONFIRM, [Option("read", "Прочитано")], "ru"))
    await writers.write("Приду")
    await writers.answers(choice, "yes")
    assert await writers.write("Двое", quotes="of-another-program") == "events"
    assert (await writers.stack.history(written.key)).answers.states[AnswerState.OPEN] == 1  # type: ignore[union-attr]
    await writers.write("Двое")
    await writers.answers(written, "", "Двое")
    await writers.is_told("Ответ записан: Двое\nЭто ответ на: «Сколько вас?»")  # a later message may have been meant
    await writers.ask_with_replies(choice_of)
    received = await ReceivedMessages(writers.stack.store).received_since(TENANT, BOT, "p1", 0)
    option = await AnswerNumbers(writers.stack.store).read_option(TENANT, BOT, "p1", "Не приду", received)
    assert option is None, "both questions have it"


async def test_what_a_person_has_answered_leaves_the_replies_to_it_with_its_data(writers: Writers) -> None:
    """They stood under the address, with the words, for as long as histories are kept."""
    number = "+79991112233"
    await Directory(writers.stack.store).users.create(TENANT, User(1, contacts={SMS: [number]}))
    asked = await writers.stack.deliver(
        Recipient(1, contacts={SMS: [number]}), channels=(SMS,), question=Question(TEXT, [], "ru")
    )
    await writers.stack.finished(asked.key)
    await writers.write("1 Двое, и собака", channel=SMS, user_id=number)
    await writers.answers(asked, "", "Двое, и собака")
    await OpenQuestions(writers.stack.store).close(asked.key, TENANT)
    await writers.write("1 Трое", channel=SMS, user_id=number)
    await writers.is_told("Приём ответов закончен. Записано: Двое, и собака", SMS)
    listed, _ = await writers.stack.deliveries.list(TENANT)
    for one in listed:
        await writers.stack.finished(one.key)
    await writers.stack.deliveries.of_person.erase(TENANT, "1")
    left = [await writers.stack.history(one.key) for one in listed]
    assert [one.text for one in left if "собака" in one.text] == []
    assert [recipient.id for one in left for recipient in one.recipients] == [1, 1]


async def test_a_reminder_says_until_when_a_question_is_open_that_was_opened_again(writers: Writers) -> None:
    questions = OpenQuestions(writers.stack.store)
    first, later = (datetime(2050, 12, day, 18, tzinfo=UTC) for day in (1, 9))
    accepted = await writers.ask(NUMBER, until=to_ms(first))
    asked = "Сколько вас?\nОтветьте на это сообщение: числом.\nОтветить можно до {}.12.2050, 18:00."
    assert writers.couriers[BOT].attempted[0].text == asked.format("01")
    await questions.close(accepted.key, TENANT)
    await questions.reopen(accepted.key, TENANT, later)
    await questions.remind(accepted.key, TENANT)
    await writers.is_told(f"Напоминание:\n{asked.format('09')}")


async def test_each_person_is_asked_reminded_and_told_in_its_own_language(writers: Writers) -> None:
    """What Ada adds to a question was in the language of its text for all."""
    stack = writers.stack
    line = {"en": "Reply to this message with a number.", "ru": "Ответьте на это сообщение: числом."}
    again = {"en": "Reminder:", "ru": "Напоминание:"}
    for number, (locale, text) in enumerate([("ru", "hello"), ("en", "привет")], 1):
        other = "ru" if locale == "en" else "en"
        people = [replace(person(n, BOT), locale=one) for n, one in ((number, other), (number + 5, ""), (9, locale))]
        question = Question(NUMBER, [], locale)
        asked = await stack.deliver(*people, channels=(BOT,), question=question, text=text)
        await stack.finished(asked.key)
        await OpenQuestions(stack.store).remind(asked.key, TENANT)
        await until(lambda: len(writers.couriers[BOT].attempted) == 6)
        for address, said in ((f"p{number}", other), (f"p{number + 5}", locale), ("p9", locale)):
            got = [one.text for one in writers.couriers[BOT].attempted if one.address == address]
            assert got == [f"{text}\n{line[said]}", f"{again[said]}\n{text}\n{line[said]}"]
        writers.couriers[BOT].attempted.clear()
        if number == 1:
            await writers.write("x1")
            await writers.is_told("The answer is a number, such as 12 or 3.5.")
            await writers.write("12")
            await writers.is_told("Your answer: 12")
            writers.couriers[BOT].attempted.clear()
    confirm = Question(AnswerKind.CONFIRM, [Option("read", "Прочитано")], "ru")
    people = [replace(person(n, SMS), locale=one) for n, one in ((1, "en"), (2, "ru"))]
    asked = await stack.deliver(*people, channels=(SMS,), question=confirm, text="Нет пар")
    await stack.finished(asked.key)
    shown = {one.address: one.text for one in writers.couriers[SMS].attempted}
    assert shown[people[0].contacts[SMS][0]] == "Нет пар\nReply 1 - I have read it"
    assert shown[people[1].contacts[SMS][0]] == "Нет пар\nОтветьте 1 – Прочитано"


async def test_an_answer_by_sms_has_the_number_of_its_question(writers: Writers) -> None:
    first, second = await writers.ask(NUMBER, channel=SMS), await writers.ask(TEXT, channel=SMS)
    texts = [one.text for one in writers.couriers[SMS].attempted]
    assert texts == ["Сколько вас?\nОтветьте 1 и число", "Сколько вас?\nОтветьте 2 и текст"]
    await writers.write("1 40", channel=SMS)
    await writers.answers(first, "40")
    await writers.write("2. Двое", channel=SMS)
    await writers.answers(second, "", "Двое")
    assert len(writers.couriers[SMS].attempted) == 2  # a reply costs an SMS


async def test_a_number_with_words_that_are_none_of_its_kind_is_corrected_and_answers_no_other_question(
    writers: Writers,
) -> None:
    """`1 forty` went to the sender as a reply if question 1 had its answer, and answered a question for a text."""
    first = await writers.ask(NUMBER, channel=SMS)
    await writers.write("1 40", channel=SMS)
    await writers.answers(first, "40")
    second = await writers.ask(TEXT, channel=SMS)
    await writers.write("1 сорок", channel=SMS)
    await writers.is_told("Нужно число, например 12 или 3,5.", SMS)
    answer = (await writers.stack.history(second.key)).recipients[0].answer
    assert answer is not None
    assert answer.row is None
    await writers.write("двое", channel=SMS)
    await writers.answers(second, "", "двое")


@pytest.mark.parametrize(("kind", "wanted"), [(NUMBER, "Нужно число"), (DATE, "Нужна дата")])
@pytest.mark.parametrize("channel", [BOT, SMS])
async def test_words_that_are_no_answer_go_to_the_sender_of_the_question_as_well(
    writers: Writers, kind: AnswerKind, wanted: str, channel: str
) -> None:
    """`1 сентября придём` was a wrong number: its author was corrected, and the sender never read it."""
    asked = await writers.ask(kind, channel=channel)
    later = await writers.stack.deliver(person(1, channel), channels=(channel,), text="Of somebody else")
    await writers.stack.finished(later.key)
    for number, text in enumerate(("1 сентября придём", "99.99.99.99"), 1):
        await writers.write(text, channel=channel)
        await until(lambda: writers.replies_with(wanted, channel) == number)  # noqa: B023 - awaited at once
    (reply,) = [json.loads(one.body) for one in await writers.stack.take("replies", 10)]
    assert (reply["event_text"], reply[NO_ANSWER_TO]) == ("1 сентября придём", [asked.key.id, 0])
    answer = (await writers.stack.history(asked.key)).recipients[0].answer
    assert answer
    assert answer.state is AnswerState.OPEN


async def test_words_that_are_no_answer_to_a_hidden_question_do_not_go_to_its_sender(writers: Writers) -> None:
    await writers.ask(NUMBER, visible=AnswerVisibility.HIDDEN)
    await writers.write("1 сентября придём")
    await writers.is_told("Нужно число, например 12 или 3,5.")
    assert await writers.stack.take("replies") == []


async def test_a_late_number_is_kept_and_counts_only_if_it_is_wanted(writers: Writers) -> None:
    for late, total in ((Late.KEEP, 0), (Late.COUNT, 700)):
        accepted = await writers.ask(NUMBER, late=late)
        await writers.stack.store.run("close_answers", accepted.key.shard, accepted.key.suffix, TENANT, 0)
        await writers.write("7", quotes="ref-p1")
        answers = (await writers.answers(accepted, "7")).answers
        assert answers
        assert (answers.sum, answers.states["late"]) == (total, 1)  # type: ignore[index]


async def test_the_audit_finds_a_wrong_sum(writers: Writers) -> None:
    accepted = await writers.ask(NUMBER)
    await writers.write("7")
    await writers.answers(accepted, "7")
    await writers.stack.store.command("HSET", str(accepted.key), "answers:sum", 800)
    assert [one.rule for one in await violations_in(writers.stack.store)] == ["I26"]
    await writers.stack.store.command("HSET", str(accepted.key), "answers:sum", 700)


async def test_a_file_is_not_asked_for_where_there_is_no_page(stack: Stack) -> None:
    await stack.courier(FakeCourier(shows=SHOWS))
    accepted = await stack.deliver(person(1), question=Question(FILE, [], "ru"))
    assert (await stack.finished(accepted.key)).recipients[0].outcomes["echo"].not_shown == (Feature.ANSWER,)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (NUMBER, "+7", "7"), (NUMBER, "−3,50", "-3.5"), (NUMBER, "1 000 000", "1000000"), (NUMBER, "007", "7"),
        (NUMBER, "-0", "0"), (NUMBER, "1e5", None), (NUMBER, "1,234", None), (NUMBER, "1 2", None), (NUMBER, "٣", None),
        (NUMBER, "1234567890123", None), (DATE, "2026-12-31", "2026-12-31"), (DATE, "31/12/26", "2026-12-31"),
        (DATE, "12.31.2026", None), (DATE, "1.3.00", "2000-03-01"), (DATE, "1.3.0000", None),
        (DATE, "1.3.0026", None), (DATE, "0026-03-01", None), (DATE, "1.3.1000", "1000-03-01"),
        (DATE, "завтра", None), (TEXT, "  ", None), (TEXT, "a" * 4097, None),
        (FILE, "a", None),
    ],
)  # fmt: skip
def test_what_is_a_value(kind: AnswerKind, text: str, value: str | None) -> None:
    found = read_value(kind, text)
    assert (found[0] if found else None) == value


async def test_a_file_is_kept_as_long_as_answers_from_the_closing_on(stack: Stack) -> None:
    await configure(stack.store, timedelta(days=30), answers_retention=timedelta(days=200))
    now = datetime.now(UTC)
    for name, closes, days in (
        ("open.pdf", None, 200),
        ("early.pdf", now + timedelta(days=40), 240),
        ("late.pdf", now - timedelta(days=9), 200),
    ):
        uploads = Uploads(stack.store)
        sent = await uploads.store(TENANT, name, BytesIO(b"%PDF"))
        question = Question(FILE, [], "ru", until=to_ms(closes) if closes else 0)
        assert await Answers(stack.store).entered(question, TENANT, sent.id) == (sent.id, name)
        kept = (await uploads.find(TENANT, sent.id)).expires_at - now
        assert abs(kept - timedelta(days=days)) < timedelta(hours=1)
