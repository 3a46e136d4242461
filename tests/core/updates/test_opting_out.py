"""Who opts out, or is blocked, gets nothing more: also not what was ordered before and is still to be sent. An address
that a person has no more gets nothing either: it may be another person's.
"""

from datetime import timedelta
from io import BytesIO
from typing import Any

import pytest

from core.answers import AnsweredMessage, Answers, OpenQuestions
from core.directory import Directory
from core.directory.csv_cells import FileKind
from core.directory.departed import DepartedPeople
from core.directory.importing import Importing
from core.model.delivery import Recipient
from core.model.history_key import HistoryKey, code_of
from core.model.people import User, UserChange
from core.model.question import AnswerKind, Option, Question
from core.model.states import Reason, Status, Verdict
from core.orders import Addressee, Caller, Order, Sending
from couriers.sending import Rejected
from tests.core.answers.test_reminders import pass_time
from tests.support.stack import TENANT, FakeCourier, Stack, order, person, sent
from tests.support.waiting import until

REMOVED = (Status.CANCELLED, Reason.CONTACT_REMOVED)
BLOCKED = (Status.SKIPPED, Reason.PERSON_BLOCKED)
LEFT_OUT = (Status.SKIPPED, Reason.OPTED_OUT)
SENT = (Status.SENT, None)


async def changes(stack: Stack, **change: Any) -> None:
    """Change the first person, and do what follows."""
    await Directory(stack.store).users.update(TENANT, 1, UserChange(**change))
    await pass_time(stack, seconds=0)


@pytest.fixture
async def both(stack: Stack) -> dict[str, FakeCourier]:
    """Two couriers; the directory knows the first person."""
    await Directory(stack.store).users.create(TENANT, User(1, "Anna", contacts={"echo": ["p1"]}))
    return {"echo": FakeCourier(), "sms": FakeCourier("sms")}


async def outcomes(stack: Stack, key: Any) -> list[tuple[Status, str | None]]:
    history = await stack.finished(key)
    return [(one.status, one.reason) for recipient in history.recipients for one in recipient.outcomes.values()]


@pytest.mark.parametrize(
    ("change", "expected", "verdict"),
    [
        ({"opt_out": ("sms",)}, [SENT, LEFT_OUT], Verdict.ALL_REACHED),
        ({"blocked": True}, [BLOCKED, BLOCKED], Verdict.NOTHING_WORKED),
        ({"contacts": {"echo": ["p3"]}}, [REMOVED, SENT], Verdict.ALL_REACHED),
        ({"contacts": {"echo": ["p3", "p1"]}}, [SENT, SENT], Verdict.ALL_REACHED),
    ],
)
async def test_who_opts_out_or_loses_a_contact_does_not_get_what_is_scheduled(
    stack: Stack, both: dict[str, FakeCourier], change: dict[str, Any], expected: Any, verdict: Verdict
) -> None:
    for courier in both.values():
        await stack.courier(courier)
    tomorrow = stack.now() + timedelta(days=1)
    mine = await stack.deliver(person(1, *both), channels=tuple(both), deliver_at=tomorrow)
    others = await stack.deliver(person(2, *both), channels=tuple(both), deliver_at=tomorrow)
    await changes(stack, **change)
    stack.advance_clock(timedelta(days=1, minutes=1))
    assert await outcomes(stack, mine.key) == expected
    assert await outcomes(stack, others.key) == [SENT, SENT]
    assert (await stack.history(mine.key)).verdict == verdict


@pytest.mark.parametrize("strategy", ["all", "first"])
async def test_who_opts_out_does_not_get_what_waits_for_a_courier(
    stack: Stack, both: dict[str, FakeCourier], strategy: str
) -> None:
    """With the strategy `first` the next channel is tried at once."""
    accepted = await stack.deliver(person(1, *both), channels=("sms", "echo"), strategy=strategy)
    await stack.tick()  # the second channel waits for what becomes of the first
    await changes(stack, opt_out=("sms",))
    for courier in both.values():
        await stack.courier(courier)
    assert await outcomes(stack, accepted.key) == [LEFT_OUT, SENT]


AS_NAMED = pytest.mark.parametrize(
    "named",
    [person(1), Recipient("echo:p1", contacts={"echo": ["p1"]}), person(9, echo=["p1"])],
    ids=lambda one: one.id,
)
"""A person of the directory, by its id, by its address, and by its address with the id of another system."""
WISHES = pytest.mark.parametrize(
    ("wish", "reason"),
    [({"opt_out": ("echo",)}, "opted_out"), ({"blocked": True}, "person_blocked"), ({"opt_out": ("sms",)}, None)],
)


@AS_NAMED
@WISHES
async def test_who_opted_out_or_is_blocked_gets_nothing_however_a_message_names_it(
    stack: Stack, both: dict[str, FakeCourier], named: Recipient, wish: dict[str, Any], reason: str | None
) -> None:
    """A message to a number went to the person with that number, although it had written STOP."""
    await stack.courier(both["echo"])
    sending = Sending(stack.store, stack.deliveries, Directory(stack.store))
    waiting = await stack.deliver(named, person(2), deliver_at=stack.now() + timedelta(days=1))
    await changes(stack, **wish)
    addressee = Addressee(named.id) if named.id == 1 else Addressee(named.id, contacts={"echo": ["p1"]})
    accepted = await sending.send(Order(order(channels=("echo",)), [addressee]), Caller(TENANT, is_admin=True), None)
    stack.advance_clock(timedelta(days=1, minutes=1))
    expected = (Status.SKIPPED, reason) if reason else SENT
    assert await outcomes(stack, accepted.key) == [expected]
    assert await outcomes(stack, waiting.key) == [expected, SENT]


@AS_NAMED
@WISHES
@pytest.mark.parametrize("strategy", ["all", "first"])
async def test_who_opted_out_or_is_blocked_is_neither_reminded_nor_tried_again(
    stack: Stack,
    both: dict[str, FakeCourier],
    named: Recipient,
    wish: dict[str, Any],
    reason: str | None,
    strategy: str,
) -> None:
    courier = both["echo"]
    await stack.courier(courier)
    question = Question(AnswerKind.CONFIRM, (), "ru")
    asked = await stack.deliver(named, person(2), question=question)
    await stack.finished(asked.key)
    courier.respond = lambda _: Rejected(Reason.RECIPIENT_UNREACHABLE)
    failed = await stack.deliver(named, person(2), strategy=strategy)
    await stack.finished(failed.key)
    courier.respond = sent
    await changes(stack, **wish)
    sending = Sending(stack.store, stack.deliveries, Directory(stack.store))
    caller, count = Caller(TENANT, is_admin=True), 1 if reason else 2
    assert await OpenQuestions(stack.store).remind(asked.key, TENANT) == ("reminded", count)
    assert await sending.retry(failed.key, caller, [Status.FAILED]) == count
    assert [one for one, _ in await outcomes(stack, failed.key)].count(Status.SENT) == count


async def test_who_opts_out_is_not_reminded_and_who_opts_in_is(stack: Stack, both: dict[str, FakeCourier]) -> None:
    await stack.courier(both["echo"])
    question = Question(AnswerKind.CONFIRM, (), "ru")
    accepted = await stack.deliver(person(1), person(2), question=question)
    await stack.finished(accepted.key)
    questions = OpenQuestions(stack.store)
    await changes(stack, opt_out=("echo",))
    assert await questions.remind(accepted.key, TENANT) == ("reminded", 1)
    await changes(stack, opt_out=())
    assert await questions.remind(accepted.key, TENANT) == ("reminded", 2)
    await until(lambda: len(both["echo"].attempted) == 5)


async def test_an_address_is_its_persons_until_it_was_removed_after_the_order(
    stack: Stack, both: dict[str, FakeCourier]
) -> None:
    """One that nobody has any more was reminded, and who was written to at the address of another person could not
    answer. A merged person stays the same.
    """
    await stack.courier(both["echo"])
    users, questions, answers = Directory(stack.store).users, OpenQuestions(stack.store), Answers(stack.store)

    async def asked(*people: Recipient) -> HistoryKey:
        accepted = await stack.deliver(*people, question=Question(AnswerKind.CONFIRM, [Option("read", "Да")], "ru"))
        await stack.finished(accepted.key)
        return accepted.key

    async def may_answer(key: HistoryKey, number: int = 0) -> bool:
        one = await answers.find(key.shard, code_of(key), number)
        return not await answers.has_lost(one, AnsweredMessage("echo", 0, 0))

    first = await asked(person(1), Recipient(8, contacts={"echo": ["p1"]}))
    assert [await may_answer(first, number) for number in (0, 1)] == [True, True]
    assert await questions.remind(first, TENANT) == ("reminded", 2)
    await users.create(TENANT, User(8))
    await changes(stack, contacts={})
    assert [await may_answer(first, number) for number in (0, 1)] == [False, True]
    assert await questions.remind(first, TENANT) == ("reminded", 1)
    stack.advance_clock(timedelta(seconds=1))
    again = await asked(person(1))
    assert await may_answer(again)
    await users.update(TENANT, 8, UserChange(contacts={"echo": ["p1"]}))
    assert [await may_answer(first, 0), await may_answer(first, 1)] == [False, True]
    await users.merge(TENANT, 8, 1)
    await DepartedPeople(stack.store).note_merged(TENANT, 8, 1)
    assert await may_answer(first), "the one person of two has the address"
    await users.update(TENANT, 8, UserChange(contacts={}))
    assert [await may_answer(first, number) for number in (0, 1)] == [False, False]


async def test_what_is_ordered_after_a_contact_was_removed_is_sent(stack: Stack, both: dict[str, FakeCourier]) -> None:
    """Such as the reply of a bot to `/unlink`, or a request that names the address itself."""
    await Directory(stack.store).users.update(TENANT, 1, UserChange(contacts={}))
    stack.advance_clock(timedelta(seconds=1))
    accepted = await stack.deliver(person(1))
    await pass_time(stack, seconds=0)
    await stack.courier(both["echo"])
    assert await outcomes(stack, accepted.key) == [SENT]


async def test_a_contact_that_an_import_removes_gets_nothing_that_is_scheduled(
    stack: Stack, both: dict[str, FakeCourier]
) -> None:
    await stack.courier(both["echo"])
    tomorrow = stack.now() + timedelta(days=1)
    accepted = await stack.deliver(person(1), person(2), deliver_at=tomorrow)
    importing = Importing(stack.store, Directory(stack.store))
    await importing.run(TENANT, FileKind.USERS, BytesIO(b"id,contacts.echo\n1,p7\n"))
    await pass_time(stack, seconds=0)
    stack.advance_clock(timedelta(days=1, minutes=1))
    assert await outcomes(stack, accepted.key) == [REMOVED, SENT]
