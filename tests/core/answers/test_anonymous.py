"""Hidden and anonymous questions: what is stored, what is shown, and what somebody finds in the whole database."""

import logging
from collections.abc import AsyncIterator

import pytest

from core.answers import AnswerLinks, Answers, AnswerTokens, OpenQuestions
from core.answers.buttons import is_anonymous_token
from core.answers.copies import Copies
from core.errors import Conflict
from core.model.delivery import Accepted
from core.model.question import AnswerKind, AnswerState, AnswerVisibility, LinkPlace, Option, Question
from core.queue import QueueClient
from core.updates.answer_worker import AnswerWorker
from core.updates.events import Events
from tests.core.answers.test_answers import BOT, SHOWS, Asked, asking, respond
from tests.support.audited import violations_in
from tests.support.stack import TENANT, FakeCourier, Stack, person

OPTIONS = [Option("yes-key", "Satisfied"), Option("no-key", "Not satisfied")]
ANONYMOUS = Question(AnswerKind.CHOICE, OPTIONS, "en", change=False, visible=AnswerVisibility.ANONYMOUS)
HIDDEN = Question(AnswerKind.CHOICE, OPTIONS, "en", visible=AnswerVisibility.HIDDEN)


@pytest.fixture
async def asked(stack: Stack) -> AsyncIterator[Asked]:
    async with asking(stack, FakeCourier(BOT, respond, shows=SHOWS)) as asked:
        yield asked


async def survey(asked: Asked, chosen: str) -> Accepted:
    """Ask as many people as there are letters, who answer by them: y, n, or a dot for nothing."""
    people = [person(number, BOT) for number in range(1, len(chosen) + 1)]
    accepted = await asked.ask(ANONYMOUS, *people)
    for number, one in enumerate(chosen, 1):
        if one != ".":
            await asked.press(f"p{number}", asked.button(f"p{number}", "yn".index(one)))
    return accepted


async def test_nothing_in_the_database_and_the_logs_joins_a_person_and_its_answer(
    asked: Asked, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever has all keys and all logs finds the same row for everybody, and what was said only in one total."""
    caplog.set_level(logging.DEBUG)
    accepted = await survey(asked, "ynyyyy.")
    fields = await asked.stack.store.command("HGETALL", str(accepted.key))
    rows = {name: text for name, text in fields.items() if name.startswith("answer:")}
    assert sorted(rows) == [f"answer:{number}" for number in range(6)]
    assert len(set(rows.values())) == 1
    dump = await asked.stack.dump()
    naming = {key: value for key, value in dump.items() if "no-key" in repr(value) or "Not satisfied" in repr(value)}
    assert set(naming) == {str(accepted.key)}  # the question, and its totals
    assert [name for name, text in fields.items() if "no-key" in name + text] == ["answer", "answers:option:no-key"]
    tokens = {number: asked.button(f"p{number}", 1) for number in range(1, 8)}
    for token in tokens.values():
        assert token not in repr(sorted(dump.items()))
        assert token not in caplog.text
    assert "no-key" not in caplog.text
    events = await asked.stack.store.command("XRANGE", f"events:{{{accepted.key.shard}}}", "-", "+")
    assert "answer" not in [dict(zip(entry[::2], entry[1::2], strict=True)).get("event") for _, entry in events]
    outcomes = (await asked.history(accepted)).recipients
    assert {str(one.outcomes[BOT].status) for one in outcomes} == {"sent"}  # a press notes no time of reading


async def test_the_buttons_of_a_question_that_is_opened_again_are_counted_without_being_stored(asked: Asked) -> None:
    accepted = await survey(asked, "y.")
    copies = Copies(asked.stack.store, Answers(asked.stack.store))
    data = [button.data async for copy in copies.all(accepted.key) for row in copy.buttons for button in row]
    assert [is_anonymous_token(one) for one in data] == [True] * 4


async def test_results_are_shown_after_the_closing_and_from_five_answers_on(asked: Asked) -> None:
    answers = Answers(asked.stack.store)
    questions = OpenQuestions(asked.stack.store)
    few, enough = await survey(asked, "ynyy."), await asked.stack.deliver(
        *[person(n, "nobody") for n in range(1, 7)], channels=("nobody",), question=ANONYMOUS
    )  # fmt: skip
    await questions.close(few.key, TENANT)
    totals = (await asked.history(few)).answers
    assert totals
    assert (totals.withheld, totals.options, totals.states[AnswerState.ANSWERED]) == (True, {}, 4)
    links, tokens = AnswerLinks(asked.stack.store, answers), AnswerTokens(asked.stack.store)
    token = ""
    for number in range(5):
        token = await tokens.sign_link(LinkPlace.of(enough.key, "nobody", number, 0, 0))
        given = await links.answer(token, "no-key" if number else "yes-key", f"e{number}")
        assert (given.result, given.row.value, given.row.at) == ("answered", "", 0)
    assert (await links.answer(token, "yes-key", "again")).result == "same"
    totals = (await asked.history(enough)).answers
    assert totals
    assert (totals.withheld, totals.options) == (True, {})
    await questions.close(enough.key, TENANT)
    totals = (await asked.history(enough)).answers
    assert totals
    assert (totals.withheld, totals.options) == (False, {"yes-key": 1, "no-key": 4})
    late = await tokens.sign_link(LinkPlace.of(enough.key, "nobody", 5, 0, 0))
    assert (await links.answer(late, "yes-key", "late")).result == "closed"


async def test_an_anonymous_press_shows_no_option_and_is_not_changed(asked: Asked) -> None:
    accepted = await survey(asked, "y.")
    await asked.press("p1", asked.button("p1", 1))
    assert asked.texts == [
        "Your answer counts. Who answered what is not stored.",
        "You have answered: anonymous answers do not change.",
    ]
    assert all("✓" not in repr(one) for one in asked.shown)
    await asked.press("p2", asked.button("p1", 0))
    assert asked.texts[-1] == "This question was not asked of you."
    assert await asked.answer_of(accepted, 2) == (AnswerState.OPEN, "")
    with pytest.raises(Conflict):
        await Answers(asked.stack.store).enter(accepted.key, TENANT, "2", "yes-key", "anna", "e")


async def test_the_events_of_a_hidden_question_have_no_answers(asked: Asked) -> None:
    accepted = await asked.ask(HIDDEN, person(1, BOT), person(2, BOT))
    await asked.press("p1", asked.button("p1", 1))
    await asked.press("p1", asked.button("p1", 0))
    assert await asked.answer_of(accepted, 1) == (AnswerState.ANSWERED, "")
    totals = (await asked.history(accepted)).answers
    assert totals
    assert totals.options == {"yes-key": 1, "no-key": 0}
    events = await asked.stack.store.command("XRANGE", f"events:{{{accepted.key.shard}}}", "-", "+")
    assert "-key" not in repr(events)
    changes = await asked.stack.tracker.changes(accepted.key, TENANT)
    assert [one.answer.value for one in changes if one.answer] == [""]
    rows = await Answers(asked.stack.store).rows(accepted.key, TENANT)
    assert (rows["1"].value, [one.value for one in rows["1"].revisions]) == ("yes-key", ["no-key"])


async def test_the_audit_finds_what_joins_a_person_and_its_answer(asked: Asked) -> None:
    accepted = await survey(asked, "yy")
    row = await asked.stack.store.command("HGET", str(accepted.key), "answer:0")
    await asked.stack.store.command("HSET", str(accepted.key), "answer:0", row.replace('"at":0', '"at":17'))
    assert [one.rule for one in await violations_in(asked.stack.store)] == ["I30"]
    await asked.stack.store.command("HSET", str(accepted.key), "answer:0", row)
    await asked.stack.store.command("HINCRBY", str(accepted.key), "answers:option:no-key", 1)
    assert [one.rule for one in await violations_in(asked.stack.store)] == ["I26"]
    await asked.stack.store.command("HINCRBY", str(accepted.key), "answers:option:no-key", -1)


@pytest.mark.parametrize("option", [0, 1])
async def test_a_press_that_waits_in_the_queue_has_no_option(stack: Stack, option: int) -> None:
    """The process that answers presses is down: what waits for it is the same, whatever was pressed."""
    courier, client = FakeCourier(BOT, shows=SHOWS), QueueClient(stack.store)
    await stack.courier(courier)
    await AnswerWorker(stack.store, client).open()
    accepted = await stack.deliver(person(1, BOT), channels=(BOT,), question=ANONYMOUS)
    await stack.finished(accepted.key)
    asked, press = Asked(stack, courier), {"id": "e", "channel": BOT, "kind": "callback", "user_id": "p1"}
    token = asked.button("p1", option)
    assert await Events(client, TENANT).put(TENANT, {**press, "callback_id": "c", "callback_data": token})
    dump = repr(sorted((await stack.dump()).items()))
    assert '"answer_result":{"result":"answered","locale":"en","refused":""}' in dump.replace('\\\\"', '"')
    assert token not in dump
    assert not await Events(client, TENANT).put(TENANT, {**press, "callback_id": "c", "callback_data": token})
    assert await asked.totals(accepted) == {"answered": 1}
