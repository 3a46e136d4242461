"""A question to guardians: an answer for each child, from any guardian; of a consent a refusal counts (R-32)."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from core.answers import AnswerLinks, Answers, OpenQuestions
from core.answers.buttons import AnswerTokens
from core.answers.copies import Copies
from core.answers.values import answer_text
from core.deliveries.delivery_reports import DeliveryReports, EntryName
from core.deliveries.histories.reader import HistoryReader
from core.deliveries.histories.recipient_search import RecipientFilter
from core.directory import Directory
from core.errors import Conflict, Forbidden
from core.model.delivery import Accepted, GuardedChild, Recipient
from core.model.history import RecipientRecord
from core.model.people import User, UserChange
from core.model.question import LinkPlace
from core.model.states import Reason, Status
from core.threads.threads import Threads
from core.updates.bot_calls import ButtonChange
from tests.core.answers.test_answers import BOT, COMING, SHOWS, Asked, asking, respond
from tests.support.stack import TENANT, FakeCourier, Stack
from tests.support.waiting import until

IVAN, VERA = GuardedChild(161, "Иван"), GuardedChild("v", "Вера")
OLGA = Recipient(7, "Ольга", contacts={BOT: ["olga"]}, children=[IVAN, VERA])
PAVEL = Recipient(8, "Павел", contacts={BOT: ["pavel"]}, children=[IVAN])
LOST = Recipient(9, "Глеб", contacts={BOT: ["p9"]}, children=[GuardedChild(163, None)])
CONSENT = replace(COMING, consent=True)
PAVELS = "100008"
YES, NO, VERA_YES, VERA_NO = range(4)


@pytest.fixture
async def asked(stack: Stack) -> AsyncIterator[Asked]:
    async with asking(stack, FakeCourier(BOT, respond, shows=SHOWS)) as asked:
        yield asked


async def listed(asked: Asked, accepted: Accepted) -> dict[Any, RecipientRecord]:
    page = await asked.stack.deliveries.recipients.page(accepted.key, TENANT, RecipientFilter(members=True), None, 100)
    return {one.id: one for one in page.recipients}


async def states(asked: Asked, accepted: Accepted) -> dict[Any, str]:
    """Return the state and the counting answer of each recipient and child, a conflict marked."""
    found = {}
    for name, one in (await listed(asked, accepted)).items():
        assert one.answer
        row = one.answer.row
        found[name] = f"{one.answer.state}{f' {row.value}' if row else ''}{' !' if row and row.conflict else ''}"
    return found


async def totals(asked: Asked, accepted: Accepted) -> dict[str, int]:
    found = (await asked.history(accepted)).answers
    assert found
    counted = {str(state): n for state, n in found.states.items()} | dict(found.options) | {"!": found.conflicts}
    return {name: n for name, n in counted.items() if n}


async def test_a_guardian_answers_for_each_child_and_the_totals_are_of_children(asked: Asked) -> None:
    accepted = await asked.ask(COMING, OLGA, PAVEL, LOST)
    (message,) = [one for one in asked.courier.attempted if one.address == "olga"]
    assert message.content
    labels = [button.text for row in message.content.inline for button in row]
    assert labels == ["Иван: I come", "Иван: I do not", "Вера: I come", "Вера: I do not"]
    assert await totals(asked, accepted) == {"open": 2, "unreachable": 1}
    await asked.press("olga", asked.button("olga", YES))
    assert await states(asked, accepted) == {
        7: "open", 8: "answered", 9: "unreachable", 161: "answered yes", "v": "open", 163: "unreachable",
    }  # fmt: skip
    await asked.press("olga", asked.button("olga", VERA_NO))
    assert asked.texts == ["Your answer: Иван: I come", "Your answer: Вера: I do not"]
    assert asked.labels == ["✓ Иван: I come", "Иван: I do not", "Вера: I come", "✓ Вера: I do not"]
    assert await totals(asked, accepted) == {"answered": 2, "unreachable": 1, "yes": 1, "no": 1}
    assert (await states(asked, accepted))[7] == "answered"
    assert (await listed(asked, accepted))["v"].answer.row.who == "7"  # type: ignore[union-attr]
    copies = Copies(asked.stack.store, Answers(asked.stack.store))
    shown = {
        one.address: [button.text for row in one.buttons for button in row] async for one in copies.all(accepted.key)
    }
    assert shown == {"olga": asked.labels, "pavel": ["I come", "I do not"]}, "each its own, when it is opened again"


@pytest.mark.parametrize(("question", "counts"), [(COMING, "yes"), (CONSENT, "no")])
async def test_two_answers_for_a_child_are_a_conflict_and_of_a_consent_no_counts(
    asked: Asked, question: Any, counts: str
) -> None:
    accepted = await asked.ask(question, OLGA, PAVEL)
    await asked.press("pavel", asked.button("pavel", NO))
    await asked.press("olga", asked.button("olga", YES))
    assert (await states(asked, accepted))[161] == f"answered {counts} !"
    assert await totals(asked, accepted) == {"answered": 1, "open": 1, counts: 1, "!": 1}
    answer = (await listed(asked, accepted))[161].answer
    assert answer
    assert answer.row
    assert [(one.who, one.value) for one in answer.row.voices] == [("8", "no"), ("7", "yes")]
    assert asked.labels[:2] == ["✓ Иван: I come", "Иван: I do not"], "each sees its own answer"
    await asked.press("pavel", asked.button("pavel", YES))
    assert (await states(asked, accepted))[161] == "answered yes"
    assert await totals(asked, accepted) == {"answered": 1, "open": 1, "yes": 1}
    answers, users = Answers(asked.stack.store), Directory(asked.stack.store).users
    await asked.press("olga", asked.button("olga", NO))
    with pytest.raises(Forbidden) as deleted:
        await answers.enter(accepted.key, TENANT, "161", "yes", "office", "e0")
    assert deleted.value.code == "ANSWER_PERSON_DELETED", "the directory has no such child"
    await users.create(TENANT, User(161))
    await answers.enter(accepted.key, TENANT, "161", "yes", "office", "e1")
    assert (await states(asked, accepted))[161] == "answered yes", "what the office enters settles it"
    with pytest.raises(Conflict) as refused:
        await answers.enter(accepted.key, TENANT, "7", "yes", "office", "e2")
    assert refused.value.code == "ANSWER_OF_CHILDREN"


@pytest.mark.parametrize("answers_first", [True, False])
async def test_the_totals_are_the_same_whether_a_child_or_a_failed_report_comes_first(
    asked: Asked, answers_first: bool
) -> None:
    accepted, stack = await asked.ask(COMING, OLGA, PAVEL), asked.stack
    await Directory(stack.store).users.create(TENANT, User("v"))

    async def answer() -> None:
        await Answers(stack.store).enter(accepted.key, TENANT, "v", "yes", "office", "e1")

    async def fail() -> None:
        name = EntryName(accepted.key.shard, accepted.key.suffix, BOT, 0, 7, 0, 0, 1)
        assert await DeliveryReports(stack.store).record_entry(name, Status.FAILED, "ref-olga", Reason.BLOCKED)

    for step in (answer, fail) if answers_first else (fail, answer):
        await step()
    assert await totals(asked, accepted) == {"answered": 1, "open": 1, "yes": 1}


async def test_who_has_no_child_without_an_answer_is_not_reminded(asked: Asked) -> None:
    accepted = await asked.ask(COMING, OLGA, PAVEL)
    await asked.press("pavel", asked.button("pavel", YES))
    questions = OpenQuestions(asked.stack.store)
    assert await questions.remind(accepted.key, TENANT) == ("reminded", 1)
    await asked.press("olga", asked.button("olga", VERA_YES), "e9")
    assert await questions.remind(accepted.key, TENANT) == ("reminded", 0)


async def test_a_final_question_closes_with_the_last_child_and_a_later_answer_is_late_or_refused(asked: Asked) -> None:
    accepted = await asked.ask(replace(COMING, change=False), OLGA, PAVEL)
    await asked.press("olga", asked.button("olga", YES))
    history = await asked.history(accepted)
    assert history.answers
    assert not history.answers.closed_at
    await asked.press("olga", asked.button("olga", VERA_YES))
    closed = (await asked.history(accepted)).answers
    assert closed
    assert closed.closed_at
    await asked.press("pavel", asked.button("pavel", YES))
    assert asked.texts[-1] == "Closed. Your answer does not count.", "what Olga has answered is not shown to Pavel"
    assert (await states(asked, accepted))[161] == "answered yes"


async def test_a_final_consent_stays_open_for_who_may_refuse(asked: Asked) -> None:
    accepted = await asked.ask(replace(CONSENT, change=False), replace(OLGA, children=[IVAN]), PAVEL)
    await asked.press("olga", asked.button("olga", YES))
    await asked.press("pavel", asked.button("pavel", NO))
    assert (await states(asked, accepted))[161] == "answered no !"


@pytest.mark.parametrize(
    ("moved", "to", "expected"),
    [("8", 9, "open"), ("8", 7, "open"), ("", 9, "open"), ("8 is 9", 9, "answered no")],
    ids=["to another", "to another guardian", "to nobody", "with its person"],
)
async def test_who_has_an_account_afterwards_does_not_consent_as_its_former_owner(
    asked: Asked, moved: str, to: int, expected: str
) -> None:
    """Neither by a press nor by the link of the message; the heir of a merge is the same person."""
    users, threads = Directory(asked.stack.store).users, Threads(asked.stack.store)
    for one in (User(7), User(8, contacts={BOT: [PAVELS]}), User(9), User(161, "Иван", guardians=["7", "8"])):
        await users.create(TENANT, one)
    accepted = await asked.ask(CONSENT, OLGA, replace(PAVEL, contacts={BOT: [PAVELS]}))
    if moved == "8 is 9":
        await users.merge(TENANT, 9, 8)
        await threads.merge(TENANT, 9, 8)
    else:
        await users.update(TENANT, 8, UserChange(contacts={}))
        if moved:
            await users.update(TENANT, to, UserChange(contacts={BOT: [PAVELS]}))
    await asked.press(PAVELS, asked.button(PAVELS, NO))
    assert (await states(asked, accepted))[161] == expected
    assert (asked.texts[-1] == "This question was not asked of you.") == (expected == "open")
    links = AnswerLinks(asked.stack.store, Answers(asked.stack.store))
    token = await AnswerTokens(asked.stack.store).sign_link(LinkPlace.of(accepted.key, BOT, 1, 0, 0))
    linked = (await links.open(token)).asked
    if expected == "open":
        with pytest.raises(Forbidden) as refused:
            await links.answer(token, linked.question.options[NO].key, "e1")
        assert refused.value.code == "ANSWER_NOT_YOURS"


@pytest.mark.parametrize("change", [{"blocked_guardians": ["8"]}, {"guardians": ["7"]}])
async def test_who_is_no_guardian_of_a_child_any_more_changes_no_consent_and_its_old_voice_stays(
    asked: Asked, change: Any
) -> None:
    users = Directory(asked.stack.store).users
    for one in (User(7), User(8), User(161, "Иван", guardians=["7", "8"])):
        await users.create(TENANT, one)
    accepted = await asked.ask(CONSENT, OLGA, PAVEL)
    await asked.press("pavel", asked.button("pavel", NO))
    await users.update(TENANT, 161, UserChange(**change))
    await asked.press("pavel", asked.button("pavel", YES))
    assert asked.texts[-1] == "This question was not asked of you."
    assert (await states(asked, accepted))[161] == "answered no"
    await asked.press("olga", asked.button("olga", YES))
    assert (await states(asked, accepted))[161] == "answered no !"


@pytest.mark.parametrize("heir", [False, True])
async def test_only_who_is_a_guardian_still_is_reminded(asked: Asked, heir: bool) -> None:
    users, threads = Directory(asked.stack.store).users, Threads(asked.stack.store)
    for one in (User(7), User(8), User(9), User(161, "Иван", guardians=["7", "8"])):
        await users.create(TENANT, one)
    accepted = await asked.ask(COMING, OLGA, PAVEL)
    if heir:
        await users.merge(TENANT, 9, 8)
        await threads.merge(TENANT, 9, 8)
    else:
        await users.update(TENANT, 161, UserChange(guardians=["7"]))
    assert await OpenQuestions(asked.stack.store).remind(accepted.key, TENANT) == ("reminded", 1 + heir)


async def test_who_is_blocked_for_a_child_meanwhile_neither_answers_nor_gets_anything_more(asked: Asked) -> None:
    users = Directory(asked.stack.store).users
    for one in (User(7, "Ольга"), User(8, "Павел"), User(161, "Иван", guardians=["7", "8"])):
        await users.create(TENANT, one)
    accepted = await asked.ask(COMING, OLGA, PAVEL)
    soon = datetime.now(UTC) + timedelta(hours=1)
    later = await asked.stack.deliver(OLGA, PAVEL, channels=(BOT,), question=COMING, deliver_at=soon)
    await users.update(TENANT, 161, UserChange(blocked_guardians=["8"]))
    await asked.press("pavel", asked.button("pavel", NO))
    assert asked.texts[-1] == "This question was not asked of you."
    assert (await states(asked, accepted))[161] == "open"
    assert await OpenQuestions(asked.stack.store).remind(accepted.key, TENANT) == ("reminded", 1)

    async def is_left_out() -> bool:
        olga, pavel = (await asked.stack.history(later.key)).recipients
        return (olga.outcomes[BOT].status, pavel.outcomes[BOT].reason) == (Status.QUEUED, Reason.PERSON_BLOCKED)

    await until(is_left_out)


async def test_for_a_child_that_is_deleted_nobody_answers_and_nobody_is_reminded(asked: Asked) -> None:
    """One that was merged into another record is the same child: its guardians go on answering."""
    users, threads = Directory(asked.stack.store).users, Threads(asked.stack.store)
    for one in (User(7), User(8), User(161, guardians=["7", "8"]), User(162), User("v", guardians=["7"])):
        await users.create(TENANT, one)
    accepted = await asked.ask(COMING, OLGA, PAVEL)
    await users.merge(TENANT, 162, 161)
    await threads.merge(TENANT, 162, 161)
    await asked.press("pavel", asked.button("pavel", YES))
    assert (await states(asked, accepted))[161] == "answered yes"
    await users.delete(TENANT, "v")
    await threads.forget(TENANT, "v")
    await asked.stack.deliveries.of_person.erase(TENANT, "v")
    await asked.press("olga", asked.button("olga", VERA_YES))
    assert (await states(asked, accepted))["v"] == "open"
    assert asked.texts[-1] == "Not counted: the data of this person were deleted."
    assert await OpenQuestions(asked.stack.store).remind(accepted.key, TENANT) == ("reminded", 0)


async def test_the_words_of_an_answer_go_with_the_person_and_the_figures_stay(asked: Asked) -> None:
    accepted = await asked.ask(COMING, OLGA, PAVEL)
    answers, words, place = Answers(asked.stack.store), "words", LinkPlace.of(accepted.key, BOT, 1, 0, 0)
    olga = await answers.find(place.shard, place.code, 0)
    pavel = await answers.find(place.shard, place.code, 1)
    for event, (who, child) in enumerate([(olga, 2), (pavel, 2), (olga, 3), (olga, 3)]):
        await answers.record(who, f"e{event}", f"{child}:yes", "text", text=f"{words} {event}")
    await asked.stack.deliveries.of_person.erase(TENANT, "8")
    rows = await answers.rows(accepted.key, TENANT)
    assert [rows["161"].text, rows["161"].revisions[0].text, rows["v"].text] == ["", "words 0", "words 3"]
    await asked.stack.deliveries.of_person.erase(TENANT, "v")
    (stored,) = (await HistoryReader(asked.stack.store).read_fields(accepted.key, ["answer:3"])).values()
    assert stored
    assert words not in stored
    assert await totals(asked, accepted) == {"answered": 2, "yes": 2}


async def test_the_page_of_a_final_question_is_open_until_the_last_answer_of_a_guardian_is_final(asked: Asked) -> None:
    """It offered to answer for ever, and each answer was refused."""
    accepted = await asked.ask(replace(COMING, change=False), OLGA, PAVEL, LOST)
    links = AnswerLinks(asked.stack.store, Answers(asked.stack.store))
    place = LinkPlace.of(accepted.key, BOT, 0, 0, 0)
    token = await AnswerTokens(asked.stack.store).sign_link(place)
    a_minute = timedelta(minutes=1, seconds=1)
    for number, option in enumerate((YES, VERA_NO), 1):
        linked = await links.open(token)
        assert linked.is_open
        await links.answer(token, linked.asked.question.options[option].key, f"e{number}")
        assert (await links.open(token)).is_open, "a wrong button can be corrected"
        asked.stack.advance_clock(a_minute)
        await asked.press("pavel", asked.button("pavel", NO))  # another guardian's answer is its own
    assert not (await links.open(token)).is_open


async def test_a_child_that_is_asked_too_and_whose_mother_was_reached_is_open(asked: Asked) -> None:
    accepted = await asked.ask(CONSENT, Recipient(161, "Иван", contacts={BOT: []}, children=[IVAN]), OLGA)
    assert await states(asked, accepted) == {161: "open", 7: "open", "v": "open"}
    assert await totals(asked, accepted) == {"open": 2}


async def test_a_child_that_is_asked_too_is_one_of_the_voices_and_a_link_answers_for_each_child(asked: Asked) -> None:
    own = Recipient(161, "Иван", contacts={BOT: ["ivan"]}, children=[IVAN])
    accepted = await asked.ask(CONSENT, own, OLGA)
    await asked.press("ivan", asked.button("ivan", YES))
    assert await states(asked, accepted) == {161: "answered yes", 7: "open", "v": "open"}
    links = AnswerLinks(asked.stack.store, Answers(asked.stack.store))
    place = LinkPlace.of(accepted.key, BOT, 1, 0, 0)
    token = await AnswerTokens(asked.stack.store).sign_link(place)
    options = (await links.open(token)).asked.question.options
    assert [one.text for one in options][1::2] == ["Иван: I do not", "Вера: I do not"]
    given = await links.answer(token, options[1].key, "e1")
    assert answer_text(given.question, given.row) == "Иван: I do not"
    linked = await links.open(token)
    assert (linked.chosen, linked.is_open) == ([options[1].key], True)
    assert await states(asked, accepted) == {161: "answered no !", 7: "open", "v": "open"}
    assert await totals(asked, accepted) == {"answered": 1, "open": 1, "no": 1, "!": 1}
    assert not any(isinstance(one, ButtonChange) and one.chat_id == "olga" for one in asked.shown)
