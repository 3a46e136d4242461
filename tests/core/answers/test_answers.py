"""Questions of deliveries: buttons, presses, states, totals. The provider is simulated; the way in is the real one."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from random import Random
from typing import Any

import pytest

from core.answers import Answers, OpenQuestions
from core.directory import Directory
from core.errors import NotFound
from core.model.clock import to_ms
from core.model.content import Feature
from core.model.delivery import Accepted, Recipient, Sender
from core.model.history import History, RecipientRecord
from core.model.people import User
from core.model.question import AnswerKind, AnswerState, Late, Option, Question, row_field
from core.model.states import Reason, Status
from core.queue import QueueClient
from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.server_checks import configure
from core.updates.answer_worker import AnswerWorker
from core.updates.bot_calls import BotCalls, ButtonChange, PressAnswer
from core.updates.events import Events
from couriers.sending.interface import Message, Rejected
from tests.support.audited import violations_in
from tests.support.stack import TENANT, FakeCourier, Stack, person, sent
from tests.support.waiting import until

BOT = "telegram-bot"
SHOWS = frozenset({Feature.INLINE, Feature.ANSWER})
READ = Question(AnswerKind.CONFIRM, [Option("read", "Прочитано")], "ru")
COMING = Question(AnswerKind.CHOICE, [Option("yes", "I come"), Option("no", "I do not")], "en")


@dataclass
class Asked:
    """A bot on the stack that asks and counts. `shown`: what the calls of the bot show, in order."""

    stack: Stack
    courier: FakeCourier
    shown: list[Any] = field(default_factory=list)
    numbers: "count[int]" = field(default_factory=count)

    async def ask(self, question: Question, *people: Recipient, **options: Any) -> Accepted:
        accepted = await self.stack.deliver(*people, channels=(BOT,), question=question, **options)
        await self.stack.finished(accepted.key)
        return accepted

    def button(self, address: str, option: int = 0) -> str:
        """Return the data of a button that an account has got."""
        (message,) = [one for one in self.courier.attempted if one.address == address]
        assert message.content
        return [one.data for row in message.content.inline for one in row][option]

    async def press(self, address: str, data: str, event: str = "") -> None:
        """Press a button and wait until the bot has shown what came of it."""
        before, number = len(self.shown), event or f"e{next(self.numbers)}"
        press = {
            "id": number,
            "channel": BOT,
            "kind": "callback",
            "user_id": address,
            "chat_id": address,
            "chat_type": "private",
            "message_id": 5,
            "callback_id": f"c{number}",
            "callback_data": data,
        }
        if await Events(QueueClient(self.stack.store), TENANT).put(TENANT, press):
            await until(lambda: any(isinstance(one, PressAnswer) for one in self.shown[before:]))

    async def history(self, accepted: Accepted) -> History:
        return await self.stack.history(accepted.key)

    async def answer_of(self, accepted: Accepted, recipient: int) -> tuple[AnswerState, str]:
        record = await self.record(accepted, recipient)
        assert record.answer
        return record.answer.state, record.answer.row.value if record.answer.row else ""

    async def record(self, accepted: Accepted, recipient: int) -> RecipientRecord:
        return next(one for one in (await self.history(accepted)).recipients if one.id == recipient)

    async def totals(self, accepted: Accepted) -> dict[str, int]:
        """Return the totals without zeros, and check that they are the sum of the recipients."""
        history = await self.history(accepted)
        assert history.answers
        counted = {str(state): n for state, n in history.answers.states.items() if n}
        states = [one.answer.state for one in history.recipients if one.answer]
        assert counted == {str(state): states.count(state) for state in set(states)}
        return counted | {key: n for key, n in history.answers.options.items() if n}

    @property
    def texts(self) -> list[str]:
        return [one.text for one in self.shown if isinstance(one, PressAnswer)]

    @property
    def labels(self) -> list[str]:
        """Return what the buttons show after the last press."""
        change = [one for one in self.shown if isinstance(one, ButtonChange)][-1]
        return [one.text for row in change.rows for one in row]


@asynccontextmanager
async def asking(stack: Stack, courier: FakeCourier) -> AsyncIterator[Asked]:
    asked, client = Asked(stack, courier), QueueClient(stack.store)
    presses, calls = AnswerWorker(stack.store, client), BotCalls(client, TENANT, BOT)
    await presses.open()
    await calls.open()

    async def make(call: Any) -> bool:
        asked.shown.append(call)
        return True

    workers = [presses.worker(), calls.worker(make)]
    await stack.courier(courier)
    running = [asyncio.create_task(worker.run()) for worker in workers]
    yield asked
    for worker in workers:
        worker.stop()
    await asyncio.gather(*running)
    await stack.audit()


def respond(message: Message) -> Any:
    return Rejected(Reason.BLOCKED) if message.address == "p9" else sent(message)


@pytest.fixture
async def asked(stack: Stack) -> AsyncIterator[Asked]:
    async with asking(stack, FakeCourier(BOT, respond, shows=SHOWS)) as asked:
        yield asked


async def test_a_confirmation_counts_once_and_shows_that_the_message_has_arrived(asked: Asked) -> None:
    accepted = await asked.ask(READ, person(1, BOT), person(2, BOT), person(9, BOT), Recipient(4))
    assert await asked.totals(accepted) == {"open": 2, "unreachable": 2}
    data = asked.button("p1")
    await asked.press("p1", data)
    await asked.press("p1", data)
    assert asked.texts == ["Спасибо, отмечено.", "Уже записано: Прочитано"]
    assert asked.labels == ["✓ Прочитано"]
    assert await asked.totals(accepted) == {"answered": 1, "open": 1, "unreachable": 2, "read": 1}
    record = await asked.record(accepted, 1)
    outcome = record.outcomes[BOT]
    assert (outcome.status, outcome.reason, outcome.reference) == (Status.READ, Reason.ANSWERED, "ref-p1")
    assert record.answer
    assert record.answer.row
    assert (record.answer.row.by, record.answer.row.channel, record.answer.row.revisions) == ("press", BOT, ())
    assert (await asked.record(accepted, 2)).outcomes[BOT].status is Status.SENT


async def test_the_last_answer_counts_and_all_are_kept(asked: Asked) -> None:
    accepted = await asked.ask(COMING, person(1, BOT))
    await asked.press("p1", asked.button("p1", 0))
    await asked.press("p1", asked.button("p1", 1))
    assert asked.texts == ["Your answer: I come", "Your answer is now: I do not"]
    assert asked.labels == ["I come", "✓ I do not"]
    assert await asked.totals(accepted) == {"answered": 1, "no": 1}
    record = await asked.record(accepted, 1)
    assert record.answer
    assert record.answer.row
    assert [one.value for one in record.answer.row.revisions] == ["yes"]


async def test_a_final_answer_can_be_corrected_for_a_minute(asked: Asked) -> None:
    final = Question(COMING.kind, COMING.options, "en", change=False)
    accepted = await asked.ask(final, person(1, BOT), person(2, BOT))
    await asked.press("p1", asked.button("p1", 0))
    await asked.press("p1", asked.button("p1", 1))
    asked.stack.advance_clock(timedelta(seconds=61))
    await asked.press("p1", asked.button("p1", 0))
    assert asked.texts[-1] == "Answers cannot be changed. Yours: I do not"
    assert await asked.totals(accepted) == {"answered": 1, "open": 1, "no": 1}


@pytest.mark.parametrize("late", Late)
async def test_a_late_answer_is_kept_and_counts_only_if_it_is_wanted(asked: Asked, late: Late) -> None:
    until_ms = to_ms(asked.stack.now() + timedelta(hours=1))
    question = Question(COMING.kind, COMING.options, "en", until=until_ms, late=late)
    accepted = await asked.ask(question, person(1, BOT), person(2, BOT), person(3, BOT))
    await asked.press("p1", asked.button("p1", 0))
    asked.stack.advance_clock(timedelta(hours=1, seconds=1))
    await asked.press("p2", asked.button("p2", 0))
    assert asked.texts[-1] == (
        "Your answer was late and counts: I come" if late is Late.COUNT else "Closed. Your answer is noted as late."
    )
    assert await asked.answer_of(accepted, 2) == (AnswerState.LATE, "yes")
    counted = 2 if late is Late.COUNT else 1
    assert await asked.totals(accepted) == {"answered": 1, "late": 1, "silent": 1, "yes": counted}
    await asked.press("p1", asked.button("p1", 1))
    assert (await asked.answer_of(accepted, 1))[1] == ("no" if late is Late.COUNT else "yes")


async def test_a_question_closes_at_its_time_by_hand_and_when_all_have_confirmed(asked: Asked) -> None:
    timed = Question(COMING.kind, COMING.options, "en", until=to_ms(asked.stack.now() + timedelta(hours=1)))
    by_time = await asked.ask(timed, person(1, BOT))
    asked.stack.advance_clock(timedelta(hours=1, seconds=1))

    async def is_closed() -> bool:
        answers = (await asked.history(by_time)).answers
        return answers is not None and answers.closed_at > 0

    await until(is_closed)
    by_hand, questions = await asked.ask(COMING, person(2, BOT)), OpenQuestions(asked.stack.store)
    assert await questions.close(by_hand.key, TENANT)
    assert not await questions.close(by_hand.key, TENANT)
    assert await asked.totals(by_hand) == {"silent": 1}
    signed = Question(READ.kind, READ.options, "ru", change=False)
    by_all = await asked.ask(signed, person(3, BOT), person(4, BOT))
    await asked.press("p3", asked.button("p3"))
    assert (await asked.history(by_all)).answers.closed_at == 0  # type: ignore[union-attr]
    await asked.press("p4", asked.button("p4"))
    assert (await asked.history(by_all)).answers.closed_at > 0  # type: ignore[union-attr]


async def test_a_question_closes_at_its_last_end_however_often_it_was_opened_again(asked: Asked) -> None:
    """Each opening has an end of its own, also while the task of an earlier one still waits."""
    accepted, questions = await asked.ask(COMING, person(1, BOT)), OpenQuestions(asked.stack.store)
    for hours in (1, 2, 3):
        assert await questions.close(accepted.key, TENANT)
        assert await questions.reopen(accepted.key, TENANT, asked.stack.now() + timedelta(hours=hours))
    answers = (await asked.history(accepted)).answers
    assert answers
    assert answers.closed_at == 0

    async def is_closed() -> bool:
        answers = (await asked.history(accepted)).answers
        return answers is not None and answers.closed_at > 0

    for _ in range(3):
        assert not await is_closed()
        asked.stack.advance_clock(timedelta(hours=1, seconds=1))
    await until(is_closed)


async def test_the_closing_removes_the_buttons_and_the_sender_gets_one_result(asked: Asked) -> None:
    stack, sender = asked.stack, Sender(7)
    await Directory(stack.store).users.create(TENANT, User(7, "Anna", locale="en", contacts={BOT: ["100007"]}))
    accepted = await asked.ask(COMING, *(person(number, BOT) for number in (1, 2, 9)), sender=sender)
    await asked.press("p1", asked.button("p1", 0))
    questions = OpenQuestions(stack.store)
    await questions.remind(accepted.key, TENANT)
    await until(lambda: len([one for one in asked.courier.attempted if one.address == "p2"]) == 2)
    await questions.close(accepted.key, TENANT)
    await questions.close(accepted.key, TENANT)

    def unbuttoned() -> list[tuple[str, str]]:
        return sorted(
            (str(one.chat_id), str(one.message_id))
            for one in asked.shown
            if isinstance(one, ButtonChange) and not one.rows
        )

    await until(lambda: len(unbuttoned()) == 2)
    assert unbuttoned() == [("p1", "ref-p1"), ("p2", "ref-p2")]
    await until(lambda: "100007" in asked.courier.addresses)
    (result,) = [one.text for one in asked.courier.attempted if one.address == "100007"]
    assert result == "Closed: “hello”\nI come: 1\nI do not: 0\nNo answer: 1\nNot reached: 1"


async def test_only_the_account_that_was_asked_may_answer(asked: Asked) -> None:
    accepted = await asked.ask(READ, person(1, BOT), person(2, BOT))
    data = asked.button("p1")
    await asked.press("p2", data)
    await asked.press("p1", f"{data[:-1]}{'A' if data[-1] != 'A' else 'B'}")
    await asked.press("p1", f"{data[:5]}{'A' if data[5] != 'A' else 'B'}{data[6:]}")
    assert asked.texts == ["Этот вопрос задан не вам."] * 2 + ["Эта кнопка не действует."]
    assert await asked.totals(accepted) == {"open": 2}


async def test_a_press_on_what_is_no_longer_kept_is_answered(asked: Asked) -> None:
    accepted = await asked.ask(READ, person(1, BOT))
    data = asked.button("p1")
    asked.stack.advance_clock(timedelta(days=40))
    await asked.stack.tick()
    await asked.press("p1", data)
    assert asked.texts == ["Этот вопрос больше не хранится."]
    with pytest.raises(NotFound):
        await asked.history(accepted)


async def test_a_deleted_person_answers_nothing(asked: Asked) -> None:
    accepted = await asked.ask(READ, person(1, BOT), person(2, BOT))
    await asked.stack.deliveries.of_person.erase(TENANT, "1")
    await asked.press("p1", asked.button("p1"))
    await asked.press("p2", asked.button("p2"))
    assert asked.texts == ["Не учтено: данные этого человека удалены.", "Спасибо, отмечено."]
    assert await asked.totals(accepted) == {"answered": 1, "open": 1, "read": 1}


async def test_an_event_that_is_handled_again_after_a_change_changes_nothing(asked: Asked) -> None:
    """The process of the first press dies before its end; the second press comes in another lane meanwhile."""
    accepted = await asked.ask(COMING, person(1, BOT))
    answers = Answers(asked.stack.store)
    first = await answers.press(TENANT, BOT, "p1", asked.button("p1", 0), "first")
    await answers.press(TENANT, BOT, "p1", asked.button("p1", 1), "second")
    again = await answers.press(TENANT, BOT, "p1", asked.button("p1", 0), "first")
    assert (first.given.result, again.given.result, again.given.row.value) == ("answered", "answered", "no")
    assert await asked.totals(accepted) == {"answered": 1, "no": 1}


async def test_an_answer_on_behalf_is_marked_and_the_person_may_change_it(asked: Asked) -> None:
    accepted = await asked.ask(COMING, person(1, BOT), person(9, BOT))
    answers = Answers(asked.stack.store)
    for recipient in ("1", "9"):
        await answers.enter(accepted.key, TENANT, recipient, "yes", "anna", f"b{recipient}")
    assert await asked.totals(accepted) == {"answered": 2, "yes": 2}
    record = await asked.record(accepted, 1)
    assert record.outcomes[BOT].status is Status.SENT
    assert record.answer
    assert record.answer.row
    assert (record.answer.row.by, record.answer.row.who) == ("on_behalf", "anna")
    await asked.press("p1", asked.button("p1", 1))
    assert await asked.answer_of(accepted, 1) == (AnswerState.ANSWERED, "no")
    assert await asked.totals(accepted) == {"answered": 2, "yes": 1, "no": 1}


async def test_who_answers_before_the_message_arrives_is_counted_once(asked: Asked) -> None:
    hour = asked.stack.now() + timedelta(hours=1)
    accepted = await asked.stack.deliver(
        person(1, BOT), person(2, BOT), channels=(BOT,), question=READ, deliver_at=hour
    )
    await Answers(asked.stack.store).enter(accepted.key, TENANT, "1", "read", "anna", "e")
    assert await asked.totals(accepted) == {"answered": 1, "not_asked": 1, "read": 1}
    asked.stack.advance_clock(timedelta(hours=1, seconds=1))
    await asked.stack.tick()
    await asked.stack.finished(accepted.key)
    assert await asked.totals(accepted) == {"answered": 1, "open": 1, "read": 1}


async def test_the_audit_finds_totals_that_are_not_those_of_the_answers(stack: Stack) -> None:
    accepted = await stack.deliver(person(1, "nobody"), channels=("nobody",), question=READ)
    await Answers(stack.store).enter(accepted.key, TENANT, "1", "read", "anna", "e")
    await stack.store.command("HSET", str(accepted.key), "answers:answered", 2)
    (violation,) = await violations_in(stack.store)
    assert (violation.rule, violation.key) == ("I26", str(accepted.key))
    await stack.store.command("HSET", str(accepted.key), "answers:answered", 1)


async def test_a_channel_that_receives_no_presses_says_so(stack: Stack) -> None:
    await stack.courier(FakeCourier(shows=frozenset({Feature.INLINE})))
    accepted = await stack.deliver(person(1), question=READ)
    history = await stack.finished(accepted.key)
    assert history.recipients[0].outcomes["echo"].not_shown == (Feature.ANSWER,)


async def test_a_delivery_without_a_question_has_nothing_of_it(stack: Stack) -> None:
    accepted = await stack.deliver(person(1))
    fields = await stack.store.command("HKEYS", str(accepted.key))
    assert not [name for name in fields if name.startswith(("answer", "asked"))]
    assert not [key for key in await stack.dump() if key.startswith("questions:")]


async def test_the_stream_of_events_goes_on_until_the_closing(asked: Asked) -> None:
    accepted = await asked.ask(COMING, person(1, BOT), person(2, BOT))
    await asked.press("p1", asked.button("p1", 0))
    seen: list[tuple[str, str]] = []

    async def follow() -> None:
        async for change in asked.stack.tracker.follow(accepted.key, TENANT, answers=True):
            named = change.answer.value if change.answer else str(change.outcome.status if change.outcome else "")
            seen.append((str(change.recipient or ""), named or ("closed" if change.closed_at else "end")))

    following = asyncio.create_task(follow())
    await until(lambda: ("", "end") in seen)
    await asked.press("p1", asked.button("p1", 1))
    await asked.press("p2", asked.button("p2", 0))
    await OpenQuestions(asked.stack.store).close(accepted.key, TENANT)
    await asyncio.wait_for(following, 60)
    before = [("1", "read"), ("1", "yes"), ("2", "sent")]
    assert sorted(seen[:3]) == before
    assert seen[3:] == [("", "end"), ("1", "no"), ("2", "read"), ("2", "yes"), ("", "closed")]
    ended = [change async for change in asked.stack.tracker.follow(accepted.key, TENANT)]
    assert (ended[-1].recipient, ended[-1].closed_at) == (None, None)
    versions = [change.version for change in ended]
    assert versions == sorted(versions)


async def test_many_presses_with_repeats_in_two_channels_end_in_one_answer_each(stack: Stack) -> None:
    """Each person presses several times in two channels at once, events are repeated, and one of two workers is lost
    with what it has claimed. The book of the test knows which options a person has pressed: each press is counted once,
    one of them is the answer, the same on every read, and the totals are the sum.
    """
    number_of_people, other = 60, "vk"
    couriers = [FakeCourier(channel, shows=SHOWS) for channel in (BOT, other)]
    for courier in couriers:
        await stack.courier(courier)
    people = [person(number, BOT, other) for number in range(1, number_of_people + 1)]
    accepted = await stack.deliver(*people, channels=(BOT, other), question=COMING)
    await stack.finished(accepted.key)
    chosen, client = Random(7), QueueClient(stack.store)
    tokens = {
        (courier.channel, message.address): [one.data for row in message.content.inline for one in row]
        for courier in couriers
        for message in courier.attempted
        if message.content
    }
    presses = [
        (channel, address, token, f"{channel}{address}{number}")
        for (channel, address), data in tokens.items()
        for number, token in enumerate(chosen.choices(data, k=3))
    ]
    pressed = [*presses, *chosen.sample(presses, len(presses) // 3)]
    chosen.shuffle(pressed)
    workers = [AnswerWorker(stack.store, client) for _ in range(2)]
    for one in workers:
        await one.open()
    running = [asyncio.create_task(one.worker().run()) for one in workers]
    for number, (channel, address, token, event) in enumerate(pressed):
        press = {"id": event, "channel": channel, "kind": "callback", "user_id": address, "chat_id": address,
                 "callback_data": token}  # fmt: skip
        await Events(client, TENANT).put(TENANT, press)
        if number == len(pressed) // 2:
            await cancel_and_wait(running.pop())
    stack.advance_clock(timedelta(minutes=1))

    async def counted() -> list[str]:
        rows = await stack.store.command("HMGET", str(accepted.key), *map(row_field, range(number_of_people)))
        return [line for row in rows if row for line in json.loads(row)["events"]]

    async def all_are_counted() -> bool:
        return len(await counted()) >= len(presses)

    await until(all_are_counted)
    events = [line.split()[0] for line in await counted()]
    assert len(events) == len(set(events)) == len(presses)
    await cancel_and_wait(*running)
    history = await stack.history(accepted.key, limit=number_of_people)
    assert history.answers
    rows = [one.answer.row for one in history.recipients if one.answer and one.answer.row]
    assert history.answers.states[AnswerState.ANSWERED] == len(rows) == number_of_people
    assert sum(history.answers.options.values()) == number_of_people
    for key, n in history.answers.options.items():
        assert n == sum(row.value == key for row in rows)
    assert all(len(row.revisions) < 6 for row in rows)
    assert (await stack.history(accepted.key, limit=number_of_people)).recipients == history.recipients
    await stack.audit()


DAY = timedelta(days=1)


async def days_left(stack: Stack, accepted: Accepted) -> int:
    """Return for how many days the history of a delivery and its answers are kept."""
    suffix = accepted.key.suffix
    drop_at = await stack.redis.zscore("deliveries:{0}:retained", f"{TENANT}|{suffix}") or 0
    shortest = min([await stack.redis.pttl(one) async for one in stack.redis.scan_iter(f"*{suffix}*")])
    days = round(timedelta(milliseconds=drop_at - to_ms(stack.now())) / DAY)
    assert shortest > (days - 1) * DAY / timedelta(milliseconds=1), "each key lives as long"
    return days


@pytest.mark.parametrize("kept", [7, 400])
async def test_answers_are_kept_for_a_time_of_their_own_after_the_closing(asked: Asked, kept: int) -> None:
    await configure(asked.stack.store, 30 * DAY, answers_retention=kept * DAY)
    stack, questions = asked.stack, OpenQuestions(asked.stack.store)
    accepted = await asked.ask(COMING, person(1, BOT))
    plain = await stack.deliver(person(2, BOT), channels=(BOT,))
    await stack.finished(plain.key)
    assert [await days_left(stack, one) for one in (accepted, plain)] == [kept, 30]
    stack.advance_clock(5 * DAY)
    assert await questions.close(accepted.key, TENANT)
    assert await days_left(stack, accepted) == kept, "counted from the closing, not from the sending"
    assert await questions.reopen(accepted.key, TENANT, stack.now() + 50 * DAY)
    assert await days_left(stack, accepted) == kept + 50, "an open question is not dropped"
    assert await questions.close(accepted.key, TENANT)
    assert await days_left(stack, accepted) == kept


async def test_without_a_setting_answers_are_kept_as_long_as_histories(asked: Asked) -> None:
    await configure(asked.stack.store, 20 * DAY)
    assert await days_left(asked.stack, await asked.ask(COMING, person(1, BOT))) == 20
