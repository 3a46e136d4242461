"""A question in a group chat: each member answers once, as its person; the chat sees only the totals (R-17)."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from core.answers import Answers, OpenQuestions
from core.answers.copies import Copies
from core.deliveries.histories.recipient_search import RecipientFilter
from core.directory import Directory
from core.model.delivery import Accepted, Recipient
from core.model.people import User, UserChange
from core.model.question import AnswerKind, AnswerState, Option, Question
from core.queue import QueueClient
from core.updates import answer_worker
from core.updates.bot_calls import ButtonChange, PressAnswer
from core.updates.events import Events
from tests.core.answers.test_anonymous import ANONYMOUS
from tests.core.answers.test_answers import BOT, COMING, READ, SHOWS, Asked, asking, respond
from tests.support.audited import violations_in
from tests.support.stack import TENANT, FakeCourier, Stack
from tests.support.waiting import until

CHAT, OTHER_CHAT = "-100500", "-100501"
GROUP = Recipient("class", contacts={BOT: [CHAT]})
ANNA = Recipient(1, contacts={BOT: ["100001"]})
STRANGER = "Вы ещё не привязаны. Напишите этому боту личное сообщение /start, потом ответьте снова."


@pytest.fixture
async def asked(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Asked]:
    monkeypatch.setattr(answer_worker, "CHAT_PAUSE", 1)
    users = Directory(stack.store).users
    for number in (1, 2, 3):
        await users.create(TENANT, User(number, f"Person {number}", contacts={BOT: [f"10000{number}"]}))
    async with asking(stack, FakeCourier(BOT, respond, shows=SHOWS)) as asked:
        yield asked


async def press(asked: Asked, account: str, option: int, event: str, chat: str = CHAT) -> PressAnswer:
    """Press a button below the message of a chat; return what the account alone sees."""
    press = {"id": event, "channel": BOT, "kind": "callback", "user_id": account, "chat_id": chat,
             "chat_type": "supergroup", "message_id": 5, "callback_id": event,
             "callback_data": asked.button(chat, option)}  # fmt: skip
    await Events(QueueClient(asked.stack.store), TENANT).put(TENANT, press)

    def answers() -> list[PressAnswer]:
        return [one for one in asked.shown if isinstance(one, PressAnswer) and one.id == event]

    await until(lambda: bool(answers()))
    return answers()[0]


def changes(asked: Asked, chat: str = CHAT) -> list[list[str]]:
    """Return the labels that the message of a chat has shown, in order."""
    found = [one for one in asked.shown if isinstance(one, ButtonChange) and str(one.chat_id) == chat]
    return [[button.text for row in one.rows for button in row] for one in found]


async def answers_of(asked: Asked, accepted: Accepted) -> dict[Any, str]:
    """Return what each person has answered, as the page of answers lists it."""
    page = await asked.stack.deliveries.recipients.page(accepted.key, TENANT, RecipientFilter(members=True), None, 100)
    rows = {one.id: one.answer.row for one in page.recipients if one.answer}
    return {id_: row.value for id_, row in rows.items() if row}


async def test_each_member_answers_once_and_privately_and_the_chat_sees_only_totals(asked: Asked) -> None:
    accepted = await asked.ask(COMING, GROUP)
    first = await press(asked, "100001", 0, "e1")
    assert (first.text, first.alert, first.user_id) == ("Your answer: I come", True, "100001")
    await press(asked, "100002", 0, "e2")
    assert (await press(asked, "100002", 1, "e3")).text == "Your answer is now: I do not"
    assert (await press(asked, "100001", 0, "e4")).text == "Noted already: I come"
    assert await answers_of(asked, accepted) == {1: "yes", 2: "no"}
    totals = (await asked.history(accepted)).answers
    assert totals
    assert (totals.options, {state: n for state, n in totals.states.items() if n}) == (
        {"yes": 1, "no": 1},
        {AnswerState.OPEN: 1, AnswerState.ANSWERED: 2},
    )
    await until(lambda: changes(asked)[-1:] == [["I come · 1", "I do not · 1"]])
    assert not any("✓" in label for labels in changes(asked) for label in labels)
    assert len(changes(asked)) <= 2  # one for each pause
    assert [one.id for one in (await asked.history(accepted)).recipients] == ["class"]


async def test_a_stranger_is_told_how_to_link_and_then_answers(asked: Asked) -> None:
    accepted = await asked.ask(READ, GROUP)
    told = await press(asked, "100009", 0, "e1")
    assert (told.text, told.alert) == (STRANGER, True)
    assert await answers_of(asked, accepted) == {}
    await Directory(asked.stack.store).users.create(TENANT, User(9, "New", contacts={BOT: ["100009"]}))
    assert (await press(asked, "100009", 0, "e2")).text == "Спасибо, отмечено."
    assert await answers_of(asked, accepted) == {9: "read"}


async def test_a_blocked_person_answers_in_no_chat(asked: Asked) -> None:
    accepted = await asked.ask(READ, GROUP)
    await Directory(asked.stack.store).users.update(TENANT, 1, UserChange(blocked=True))
    assert (await press(asked, "100001", 0, "e1")).text == STRANGER
    assert await answers_of(asked, accepted) == {}


@pytest.mark.parametrize("written", [1, "1"])
async def test_a_person_counts_once_in_two_chats_and_in_private(asked: Asked, written: int | str) -> None:
    """`written`: the id as the sender has written it; the directory has a number."""
    chats = Recipient("other", contacts={BOT: [OTHER_CHAT]})
    accepted = await asked.ask(COMING, GROUP, chats, Recipient(written, contacts=ANNA.contacts))
    await press(asked, "100001", 0, "e1")
    await until(lambda: changes(asked, "100001") == [["✓ I come", "I do not"]])
    await press(asked, "100001", 1, "e2", OTHER_CHAT)
    await press(asked, "100002", 1, "e3", OTHER_CHAT)
    await press(asked, "100002", 0, "e4")
    assert await answers_of(asked, accepted) == {written: "no", 2: "yes"}
    for chat in (CHAT, OTHER_CHAT):
        await until(lambda: changes(asked, chat)[-1:] == [["I come · 1", "I do not · 1"]])  # noqa: B023 - at once
    await asked.press("100001", asked.button("100001", 0))
    await until(lambda: changes(asked)[-1:] == [["I come · 2", "I do not"]])


async def test_the_totals_are_shown_in_all_chats_of_a_recipient_and_in_no_private_message(asked: Asked) -> None:
    await asked.stack.courier(FakeCourier("vk", respond, shows=SHOWS))
    chats = Recipient("class", contacts={BOT: [CHAT, "100009"], "vk": ["2000000001"]})
    accepted = await asked.stack.deliver(chats, channels=(BOT, "vk"), question=COMING)
    await asked.stack.finished(accepted.key)
    await press(asked, "100001", 0, "e1")
    copies = Copies(asked.stack.store, Answers(asked.stack.store))
    shown = await copies.of_chats(accepted.key)
    assert sorted((one.channel, one.address) for one in shown) == [(BOT, CHAT), ("vk", "2000000001")]


async def test_a_button_of_a_chat_works_in_no_other_and_one_of_a_person_in_no_chat(asked: Asked) -> None:
    other = Recipient("other", contacts={BOT: [OTHER_CHAT]})
    await asked.ask(READ, GROUP, other, ANNA)
    own, theirs = asked.button(CHAT), asked.button("100001")
    answers = Answers(asked.stack.store)
    for data, chat in ((own, OTHER_CHAT), (theirs, CHAT), (own, "100001")):
        with pytest.raises(Exception, match="another account"):
            await answers.press(TENANT, BOT, "100001", data, "e", chat)


async def test_the_closing_leaves_the_totals_in_the_chat_and_a_member_may_wait_for_a_place(asked: Asked) -> None:
    trip = Question(AnswerKind.CHOICE, [Option("go", "I go", 1), Option("no", "I do not")], "en")
    accepted = await asked.ask(trip, GROUP)
    await press(asked, "100001", 0, "e1")
    assert "waiting list" in (await press(asked, "100002", 0, "e2")).text
    await press(asked, "100001", 1, "e3")
    await until(lambda: "100002" in asked.courier.addresses)
    answers = Answers(asked.stack.store)
    questions = OpenQuestions(asked.stack.store)
    await answers.enter(accepted.key, TENANT, "1", "no", "dean", "e4")
    await questions.close(accepted.key, TENANT)
    await until(lambda: changes(asked)[-1:] == [["I go · 1", "I do not · 1"]])
    assert [] not in changes(asked)
    assert (await press(asked, "100003", 0, "e5")).text == "Closed. Your answer is noted as late."


async def test_an_anonymous_answer_of_a_member_joins_nothing(asked: Asked) -> None:
    accepted = await asked.ask(ANONYMOUS, GROUP)
    told = await press(asked, "100001", 1, "e1")
    assert told.text == "Your answer counts. Who answered what is not stored."
    assert (await press(asked, "100001", 0, "e2")).text == "You have answered: anonymous answers do not change."
    fields = await asked.stack.store.command("HGETALL", str(accepted.key))
    assert [name for name, text in fields.items() if "no-key" in name + text] == ["answer", "answers:option:no-key"]


async def test_a_group_with_a_name_is_asked_nothing_as_its_presses_have_another_address(asked: Asked) -> None:
    accepted = await asked.ask(READ, Recipient("named", contacts={BOT: ["@class"]}))
    (record,) = (await asked.history(accepted)).recipients
    assert record.outcomes[BOT].not_shown == ("answer",)


async def test_the_audit_finds_a_member_that_counts_twice_and_an_answer_of_nobody(asked: Asked) -> None:
    accepted = await asked.ask(COMING, GROUP)
    for number in (1, 2):
        await press(asked, f"10000{number}", 0, f"e{number}")
    history, command = str(accepted.key), asked.stack.store.command
    fields = await command("HGETALL", history)
    for name, damaged, words in (
        ("answers_member:2", fields["answers_member:1"], "2 members of chats: "),
        ("answers_members", "3", "3 members of chats: "),
        ("answer:9", fields["answer:1"], "answers of recipients [9]"),
        ("answer", None, "2 answers without a question"),
    ):
        await (command("HSET", history, name, damaged) if damaged else command("HDEL", history, name))
        found = await violations_in(asked.stack.store)
        assert {one.rule for one in found} == {"I26"}, name
        assert any(one.found.startswith(words) for one in found), found
        known = fields.get(name)
        await (command("HSET", history, name, known) if known else command("HDEL", history, name))
        assert await violations_in(asked.stack.store) == []
