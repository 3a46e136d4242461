"""Orders to guardians: who gets the message, once for siblings, and who gets nothing and is named."""

from typing import Any

import pytest
from msgspec.structs import replace

from core.errors import Refused
from core.model.delivery import Audience, GuardedChild, Uninformed
from core.model.people import User, UserChange
from core.model.question import AnswerKind, Option, Question
from core.orders import Addressee, AnyAddressee
from core.orders.question_rules import MOST_CHILDREN, check_guardians
from core.redis.keys import KEYS
from tests.core.orders.conftest import ADMIN, Office, order
from tests.support.stack import TENANT, FakeCourier, person

OLGA, PAVEL, IVAN, VERA, ALONE, CUT_OFF = 7, 8, 161, 162, 163, 164
TEXT = "{{name}}: {{children}} — завтра экскурсия"


@pytest.fixture
async def school(office: Office) -> Office:
    """Olga and Pavel are the parents of Ivan and Vera; Pavel is blocked for Vera. The third child has nobody, the
    fourth one only Pavel, who is blocked for her.
    """
    people = (
        User(OLGA, "Ольга", contacts={"echo": ["olga"]}),
        User(PAVEL, "Павел", contacts={"echo": ["pavel"]}),
        User(IVAN, "Иван", contacts={"echo": ["ivan"]}, guardians=("7", "8")),
        User(VERA, "Вера", contacts={"echo": ["vera"]}, guardians=("7", "8"), blocked_guardians=("8",)),
        User(ALONE, "Глеб", contacts={"echo": ["gleb"]}),
        User(CUT_OFF, "Нина", contacts={"echo": ["nina"]}, guardians=("8",), blocked_guardians=("8",)),
    )
    for one in people:
        await office.directory.users.create(TENANT, one)
    await office.group("8А", IVAN, VERA, ALONE, CUT_OFF)
    return office


async def sent(office: Office, audience: Audience, *addressees: Addressee, **more: Any) -> tuple[Any, Any, FakeCourier]:
    courier = FakeCourier()
    await office.stack.courier(courier)
    ordered = replace(
        order(*(addressees or [Addressee(group="8А")]), text=TEXT, **more), audience=audience, personal=True
    )
    accepted = await office.sending.send(ordered, ADMIN)
    return accepted, await office.stack.finished(accepted.key), courier


async def test_siblings_are_one_message_and_who_gets_nothing_is_named(school: Office) -> None:
    accepted, history, courier = await sent(school, Audience.GUARDIANS)
    texts = {one.address: one.text for one in courier.attempted}
    assert texts == {"olga": "Ольга: Иван, Вера — завтра экскурсия", "pavel": "Павел: Иван — завтра экскурсия"}
    named = {Uninformed(VERA, "guardian_blocked", "8"), Uninformed(ALONE, "no_guardian")}
    named |= {Uninformed(CUT_OFF, "guardian_blocked", "8"), Uninformed(CUT_OFF, "no_guardian")}
    assert {*accepted.uninformed} == {*history.uninformed} == named
    children = {one.id: one.children for one in history.recipients}
    assert (children[OLGA], children[PAVEL]) == (
        [GuardedChild(IVAN, "Иван"), GuardedChild(VERA, "Вера")],
        [GuardedChild(IVAN, "Иван")],
    )
    assert history.recipients[0].origin == ["8А"]


async def test_both_are_the_children_and_their_guardians(school: Office) -> None:
    _, _, courier = await sent(school, Audience.BOTH, Addressee(VERA))
    texts = sorted((one.address, one.text) for one in courier.attempted)
    assert texts == [("olga", "Ольга: Вера — завтра экскурсия"), ("vera", "Вера: Вера — завтра экскурсия")]


async def test_a_guardian_that_left_the_channel_or_is_blocked_gets_nothing_and_stands_in_the_outcomes(
    school: Office,
) -> None:
    await school.directory.users.update(TENANT, OLGA, UserChange(blocked=True))
    _, history, courier = await sent(school, Audience.GUARDIANS)
    assert [one.address for one in courier.attempted] == ["pavel"]
    assert {one.id: one.outcomes["echo"].reason for one in history.recipients}[OLGA] == "person_blocked"


async def test_what_cannot_be_for_guardians_is_refused(school: Office) -> None:
    refusals: tuple[tuple[list[AnyAddressee], str], ...] = (
        ([Addressee(ALONE)], "NOBODY_ADDRESSED"),
        ([person(1)], "NOBODY_ADDRESSED"),
        ([Addressee(IVAN, values={"mark": "5"}), Addressee(VERA, values={"mark": "4"})], "VALUES_DIFFER"),
        ([Addressee(follow_up="0.x.1")], "FOLLOW_UP_ALONE"),
    )
    for addressees, code in refusals:
        with pytest.raises(Refused) as refused:
            await school.sending.send(replace(order(*addressees), audience=Audience.GUARDIANS), ADMIN)
        assert refused.value.code == code


def test_at_most_a_thousand_children_are_asked_about() -> None:
    question = Question(AnswerKind.CONFIRM, [Option("read", "Read")], "en")
    people = [replace(person(number), children=[GuardedChild(number, None)]) for number in range(MOST_CHILDREN)]
    siblings = replace(person(0), children=[GuardedChild(0, None), GuardedChild(1, None)])
    check_guardians(question, [*people, siblings])
    with pytest.raises(Refused) as refused:
        check_guardians(question, [*people, replace(siblings, children=[GuardedChild(MOST_CHILDREN, None)])])
    assert refused.value.code == "TOO_MANY_CHILDREN"


async def test_the_deletion_of_a_child_takes_its_name_out_of_the_messages_to_its_guardians(school: Office) -> None:
    accepted, _, _ = await sent(school, Audience.GUARDIANS)
    of_person = school.stack.deliveries.of_person
    assert (await of_person.page(TENANT, str(IVAN), None, 10, lambda _: True))[0] == []
    assert await of_person.erase(TENANT, str(IVAN)) == 1
    fields = await school.stack.redis.hgetall(KEYS["history"].at(accepted.key.shard, accepted.key.suffix))
    assert "Иван" not in str(fields)
    history = await school.stack.deliveries.read(accepted.key, TENANT)
    assert [one.children for one in history.recipients][-1] == [GuardedChild(IVAN, None)]
