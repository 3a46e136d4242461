"""Options with places: never more people than places, and who has waited longest gets a free one and is told."""

import asyncio
from collections.abc import Mapping, Sequence
from itertools import count
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace as with_fields

from core.answers import Answers, OpenQuestions
from core.deliveries.received import ReceivedMessages
from core.directory import Directory
from core.model.delivery import Accepted
from core.model.people import User, UserChange
from core.model.question import AnswerKind, AnswerVisibility, Option, Question
from core.queue import QueueClient
from core.updates.answer_worker import AnswerWorker
from tests.core.answers.test_reminders import pass_time
from tests.support.audited import violations_in
from tests.support.stack import TENANT, FakeCourier, Stack, people
from tests.support.waiting import until

FEW = Question(AnswerKind.CHOICE, [Option("yes", "Приду", 2), Option("no", "Не приду")], "ru")
_EVENTS = count()
Book = dict[str, list[int]]
"""Option → who has chosen it, who came first first; of these the first ones have its places."""


async def choose(stack: Stack, accepted: Accepted, recipient: int, value: str, event: str = "") -> bool:
    """Answer for a recipient; return whether it has a place."""
    name = event or f"e{next(_EVENTS)}"
    entered = accepted.key, TENANT, str(recipient), value, "anna", name
    given = await Answers(stack.store).enter(*entered, sees_hidden=True)
    return given.row.waiting == 0


async def lines(stack: Stack, accepted: Accepted, number: int) -> tuple[set[int], set[int], dict[str, int]]:
    """Return who has a place of `yes`, who waits for one, and the totals."""
    history = await stack.history(accepted.key, limit=number)
    assert history.answers
    rows = {int(one.id): one.answer.row for one in history.recipients if one.answer and one.answer.row}
    placed = {number for number, row in rows.items() if row.value == "yes" and not row.waiting and not row.freed}
    waiting = {number for number, row in rows.items() if row.value == "yes" and row.waiting}
    assert history.answers.options["yes"] == len(placed)
    assert history.answers.waiting == {"yes": len(waiting)}
    return placed, waiting, dict(history.answers.options)


async def test_of_300_at_once_exactly_20_have_a_place_and_who_withdraws_frees_it_for_the_next(stack: Stack) -> None:
    question = Question(FEW.kind, [Option("yes", "Приду", 20), Option("no", "Не приду")], "ru")
    accepted = await stack.deliver(*people(300, "nobody"), channels=("nobody",), question=question)
    order = list(range(1, 301))
    Random(9).shuffle(order)
    await asyncio.gather(*(choose(stack, accepted, number, "yes", f"e{number}") for number in order))
    placed, waiting, _ = await lines(stack, accepted, 300)
    assert (len(placed), len(waiting)) == (20, 280)
    history = await stack.history(accepted.key, limit=300)
    tickets = {int(one.id): one.answer.row.waiting for one in history.recipients if one.answer and one.answer.row}
    first = sorted(waiting, key=lambda number: tickets[number])
    leavers = sorted(placed)[:5]
    await asyncio.gather(*(choose(stack, accepted, number, "no", f"n{number}") for number in leavers))
    placed_after, waiting_after, totals = await lines(stack, accepted, 300)
    assert placed_after == placed - set(leavers) | set(first[:5])
    assert (len(waiting_after), totals["no"]) == (275, 5)
    assert await violations_in(stack.store) == []


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.tuples(st.integers(1, 6), st.sampled_from(["yes", "no"])), max_size=25))
@example(steps=[(1, "yes"), (2, "yes"), (3, "yes"), (4, "yes"), (3, "no"), (3, "yes"), (1, "no")])
async def test_every_order_of_answers_leads_to_the_line_of_the_book(
    stack: Stack, steps: Sequence[tuple[int, str]]
) -> None:
    accepted = await stack.deliver(*people(6, "nobody"), channels=("nobody",), question=FEW)
    book: Book = {"yes": [], "no": []}
    for recipient, value in steps:
        if recipient not in book[value]:
            for chosen in book.values():
                if recipient in chosen:
                    chosen.remove(recipient)
            book[value].append(recipient)
        has_place = await choose(stack, accepted, recipient, value)
        assert has_place == (value == "no" or recipient in book["yes"][:2])
        placed, waiting, totals = await lines(stack, accepted, 6)
        assert (placed, waiting) == (set(book["yes"][:2]), set(book["yes"][2:]))
        assert totals["no"] == len(book["no"])
    assert await violations_in(stack.store) == []


@pytest.mark.parametrize("visible", [AnswerVisibility.NAMED, AnswerVisibility.HIDDEN])
async def test_who_gets_a_free_place_is_told_once(stack: Stack, visible: AnswerVisibility) -> None:
    courier = FakeCourier()
    await stack.courier(courier)
    accepted = await stack.deliver(*people(4), question=with_fields(FEW, visible=visible))
    await stack.finished(accepted.key)
    for number in (1, 2, 3, 4):
        assert await choose(stack, accepted, number, "yes") == (number < 3)
    client = QueueClient(stack.store)
    presses = AnswerWorker(stack.store, client)
    await presses.open()
    worker = presses.worker()
    running = asyncio.create_task(worker.run())
    await choose(stack, accepted, 1, "no")
    await until(lambda: len(courier.attempted) == 5)
    assert courier.attempted[-1].address == "p3"
    option = ": Приду" if visible is AnswerVisibility.NAMED else ""
    assert courier.attempted[-1].text == f"Место освободилось и теперь ваше{option}.\n«hello»"
    received = ReceivedMessages(stack.store)
    await until(lambda: received.quoted(TENANT, "echo", "p3", "ref-p3"))
    quoted = await received.quoted(TENANT, "echo", "p3", "ref-p3")
    assert quoted
    assert (quoted.key, quoted.number) == (accepted.key, 2), "a reply to the notice is one to the question"
    worker.stop()
    await running
    await stack.audit()


@pytest.mark.parametrize(
    ("change", "told"),
    [({}, [3]), ({"opt_out": ("echo",)}, [4]), ({"blocked": True}, [4]), ({"contacts": {}}, [])],
)
async def test_who_wants_no_messages_gives_its_place_to_the_next_and_who_has_lost_the_address_is_not_told(
    stack: Stack, change: Mapping[str, Any], told: Sequence[int]
) -> None:
    courier, users = FakeCourier(), Directory(stack.store).users
    await users.create(TENANT, User(3, contacts={"echo": ["p3"]}))
    await users.create(TENANT, User(9))
    await stack.courier(courier)
    accepted = await stack.deliver(*people(4), question=FEW)
    await stack.finished(accepted.key)
    for number in (1, 2, 3, 4):
        await choose(stack, accepted, number, "yes")
    await users.update(TENANT, 3, UserChange(**change))
    if "contacts" in change:
        await users.update(TENANT, 9, UserChange(contacts={"echo": ["p3"]}))
    await choose(stack, accepted, 1, "no")
    await pass_time(stack, seconds=0)
    await pass_time(stack, seconds=1)  # what the first task has put
    assert (await lines(stack, accepted, 4))[0] == ({2, 4} if told == [4] else {2, 3})
    listed, _ = await stack.deliveries.list(TENANT)
    notices = [await stack.finished(one.key) for one in listed if one.kind == "place"]
    assert [one.id for notice in notices for one in notice.recipients] == told
    await stack.audit()


@pytest.mark.parametrize("visible", [AnswerVisibility.NAMED, AnswerVisibility.HIDDEN])
async def test_who_still_waits_when_the_question_closes_is_told_once_for_each_closing(
    stack: Stack, visible: AnswerVisibility
) -> None:
    courier, users = FakeCourier(), Directory(stack.store).users
    await users.create(TENANT, User(4, blocked=True))
    await stack.courier(courier)
    accepted = await stack.deliver(*people(5), question=with_fields(FEW, visible=visible))
    await stack.finished(accepted.key)
    for number in (1, 2, 3, 4):
        await choose(stack, accepted, number, "yes")
    questions = OpenQuestions(stack.store)
    for closings in (1, 2):
        await questions.close(accepted.key, TENANT)
        await pass_time(stack, seconds=0)
        await until(lambda: len(courier.attempted) == 5 + closings)  # noqa: B023 - at once
        told = courier.attempted[-1]
        assert (told.address, told.text) == ("p3", "Приём ответов закончен, место не освободилось.\n«hello»")
        listed, _ = await stack.deliveries.list(TENANT)
        assert [one.kind for one in listed] == ["no_place"] * closings + ["message"]
        await questions.reopen(accepted.key, TENANT)


async def test_a_question_with_final_answers_closes_when_all_places_are_taken(stack: Stack) -> None:
    final = Question(FEW.kind, FEW.options, "ru", change=False)
    accepted = await stack.deliver(*people(4, "nobody"), channels=("nobody",), question=final)
    await choose(stack, accepted, 1, "yes")
    assert not (await stack.history(accepted.key)).answers.closed_at  # type: ignore[union-attr]
    await choose(stack, accepted, 2, "yes")
    assert (await stack.history(accepted.key)).answers.closed_at  # type: ignore[union-attr]


@pytest.mark.parametrize("is_closed", [False, True])
async def test_the_place_of_a_person_whose_data_are_deleted_goes_to_who_has_waited_longest(
    stack: Stack, is_closed: bool
) -> None:
    """After the closing the totals are fixed. The second one waits: no place is given to who is not there any more."""
    accepted = await stack.deliver(*people(5, "nobody"), channels=("nobody",), question=FEW)
    for number in (1, 2, 3, 4):
        await choose(stack, accepted, number, "yes")
    if is_closed:
        await OpenQuestions(stack.store).close(accepted.key, TENANT)
    for person in ("3", "1", "1", "5"):
        await stack.deliveries.of_person.erase(TENANT, person)
    history = await stack.history(accepted.key)
    assert history.answers
    assert (history.answers.options["yes"], history.answers.waiting) == (2, {"yes": 2 if is_closed else 0})
    rows = {int(one.id): one.answer.row for one in history.recipients if one.answer and one.answer.row}
    assert [number for number, row in rows.items() if row.freed] == ([] if is_closed else [1, 3])
    assert [row.value for row in rows.values()] == ["yes"] * 4, "what was said stays under the id"
    assert rows[4].waiting == (2 if is_closed else 0)
    assert await violations_in(stack.store) == []


async def test_the_place_of_a_member_of_a_group_chat_goes_with_its_data_too(stack: Stack) -> None:
    accepted = await stack.deliver(*people(1, "nobody"), channels=("nobody",), question=FEW)
    key = accepted.key
    for member in ("i71", "i72", "i73", "stext"):
        given = f"e{member}", "yes", "", "press", "", "nobody", 0, "[]", 0
        await stack.store.run("answer", key.shard, key.suffix, TENANT, member, -1, *given)
    for person in ("72", "text"):
        await stack.deliveries.of_person.erase(TENANT, person)
    history = await stack.history(key)
    assert history.answers
    assert (history.answers.options["yes"], history.answers.waiting) == (2, {"yes": 0})
    assert await violations_in(stack.store) == []


@pytest.mark.parametrize("places", [1, 3])
async def test_the_audit_finds_more_people_than_places_and_who_waits_for_a_free_one(stack: Stack, places: int) -> None:
    accepted = await stack.deliver(*people(3, "nobody"), channels=("nobody",), question=FEW)
    for number in (1, 2, 3):
        await choose(stack, accepted, number, "yes")
    two_places = await stack.store.command("HGET", str(accepted.key), "answer")
    damaged = two_places.replace('"places":2', f'"places":{places}')
    await stack.store.command("HSET", str(accepted.key), "answer", damaged)
    assert [one.rule for one in await violations_in(stack.store)] == ["I28"]
    await stack.store.command("HSET", str(accepted.key), "answer", two_places)
