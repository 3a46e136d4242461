"""Personal texts: whose value it is, what is refused before anything is stored, and that a text never changes."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from core.errors import Invalid, InvalidMany
from core.model.content import Attachment, AttachmentType, Content, ParseMode
from core.model.delivery import Accepted, Recipient, Sender
from core.model.people import Group, User, UserChange
from core.model.states import Reason, Status
from core.orders import Addressee, AnyAddressee
from core.orders.personal_values import MOST_FIELDS
from core.redis.keys import KEYS
from couriers.sending.interface import Message, Outcome, Rejected, Sent
from tests.core.orders.conftest import ADMIN, Office, order
from tests.support.stack import LEASE, TENANT, FakeCourier

OFFICE = Sender("office", "The office")


def given(number: int, name: str | None = None, **values: str) -> Recipient:
    contacts = {"echo": [f"a{number}"]}
    return Recipient(number, name, contacts, values=values, place=f"recipients.{number}")


async def send(office: Office, text: str, *people: AnyAddressee, **more: Any) -> Accepted:
    personal = replace(order(*people, text=text, sender=OFFICE, **more), personal=True)
    return await office.sending.send(personal, ADMIN)


async def texts(office: Office, accepted: Accepted) -> Mapping[Any, str | None]:
    history = await office.stack.deliveries.read(accepted.key, TENANT)
    return {one.id: one.text for one in history.recipients}


async def test_each_gets_its_own_text_and_the_history_keeps_it(office: Office) -> None:
    await office.directory.users.create(TENANT, User(3, "Петров Пётр Ильич", contacts={"echo": ["a3"]}))
    await office.group("ИВТ-21", 3)
    people = (
        given(1, "Anna", mark="5"),
        given(2, mark="4 <b>"),
        Addressee(3, values={"mark": "3"}),
        Addressee(group="ИВТ-21"),
    )
    text = "{{имя|Friend}} {{groups|}}: {{mark}}. {{sender}}"
    accepted = await send(office, text, *people, content=Content(ParseMode.HTML))
    courier = FakeCourier()
    await office.stack.courier(courier)
    await office.stack.finished(accepted.key)
    expected = {1: "Anna : 5. The office", 2: "Friend : 4 &lt;b&gt;. The office", 3: "Пётр ИВТ-21: 3. The office"}
    assert await texts(office, accepted) == expected
    plain = {f"a{number}": text.replace("&lt;", "<").replace("&gt;", ">") for number, text in expected.items()}
    assert {one.address: one.text for one in courier.attempted} == plain


async def test_a_group_is_named_by_its_title_as_it_is_when_the_text_is_made(office: Office) -> None:
    await office.people(2)
    await office.directory.groups.create(TENANT, Group("g-8a", "8А класс"), [1])
    await office.directory.groups.create(TENANT, Group("choir"), [1, 2])
    text = "{{группы|}}: {{name}}"
    accepted = await send(office, text, Addressee(group="g-8a"), Addressee(group="choir"))
    assert await texts(office, accepted) == {1: "8А класс, choir: Person 1", 2: "choir: Person 2"}


@pytest.mark.parametrize(
    ("text", "people", "code", "paths"),
    [
        ("{{a}} {{b}}", [given(1, a="x", b=" "), given(2, a="y", b="z"), given(3)], "VALUE_MISSING",
         ["recipients.1.values.b", "recipients.3.values.a", "recipients.3.values.b"]),
        ("{{first_name}}", [given(1, "Анна Петрова")], "VALUE_MISSING", ["recipients.1.values.first_name"]),
        ("{{a}}{{a}}", [given(1, a="x" * 2049), given(2, a="x" * 2048)], "TEXT_TOO_LONG", ["recipients.1"]),
        ("{{a|}}", [given(1, a="x"), given(2)], "TEXT_EMPTY", ["recipients.2"]),
        ("{{a", [given(1)], "FIELD_MALFORMED", []),
        ("".join(f"{{{{f{n}|}}}}" for n in range(MOST_FIELDS + 1)) + ".", [given(1)], "FIELDS_TOO_MANY", []),
        ("{{a}}", [given(1, a="x"), given(1, a="y")], "VALUES_DIFFER", []),
    ],
)  # fmt: skip
async def test_a_text_that_is_not_right_for_all_is_refused_and_leaves_no_trace(
    office: Office, text: str, people: list[Recipient], code: str, paths: list[str]
) -> None:
    before = await office.stack.redis.keys("*")
    with pytest.raises(Invalid) as refusal:
        await send(office, text, *people)
    assert refusal.value.code == code
    found = refusal.value.errors if isinstance(refusal.value, InvalidMany) else []
    assert [error.path for error in found] == paths
    assert await office.stack.redis.keys("*") == before


@pytest.mark.parametrize("text", ["To <b>{{a|</b>}}", "To <{{a}}>", "To <b>{{a}}"])
async def test_a_text_whose_marks_a_value_would_make_or_break_is_refused(office: Office, text: str) -> None:
    for people in ([given(1, a="b")], [given(1, a="b"), given(2, a="")]):
        with pytest.raises(Invalid) as refusal:
            await send(office, text, *people, content=Content(ParseMode.HTML))
        assert refusal.value.code == "MARKS_BROKEN"


@pytest.mark.parametrize(
    "file",
    [
        Attachment(AttachmentType.DOCUMENT, url="https://school.example/{{a}}.pdf"),
        Attachment(AttachmentType.DOCUMENT, url="https://school.example/1.pdf", name="{{ a|marks }}.pdf"),
    ],
    ids=["address", "name"],
)
async def test_everybody_gets_the_same_file_so_a_field_in_it_is_refused(office: Office, file: Attachment) -> None:
    content = Content(attachments=[file])
    with pytest.raises(Invalid) as refusal:
        await send(office, "{{a}}", given(1, a="b"), content=content)
    assert (refusal.value.code, refusal.value.path) == ("FIELD_IN_FILE", "content.attachments")
    assert (await office.send(given(1), text="{{a}}", content=content)).recipients == 1


async def test_marks_are_checked_with_and_without_a_value(office: Office) -> None:
    html, text = Content(ParseMode.HTML), "To <b>{{a|</b>}}</b>"
    assert (await send(office, text, given(1, a="b"), content=html)).recipients == 1
    with pytest.raises(Invalid, match="cannot be read as HTML"):
        await send(office, text, given(1, a="b"), given(2, a=""), content=html)


async def test_braces_stay_unless_the_text_is_personal(office: Office) -> None:
    accepted = await office.send(given(1, a="x"), text=r"{{a}} \{{b}}")
    shared = await send(office, r"\{{b}}", given(1))
    courier = FakeCourier()
    await office.stack.courier(courier)
    for one in (accepted, shared):
        await office.stack.finished(one.key)
        assert await texts(office, one) == {1: None}
        stored = await office.stack.redis.hgetall(KEYS["history"].at(one.key.shard, one.key.suffix))
        assert "personal" not in stored
        assert "x" not in stored["people:0"], "what is not personal costs nothing more"
    assert [one.text for one in courier.attempted] == [r"{{a}} \{{b}}", "{{b}}"]


async def test_a_retry_keeps_the_text(office: Office) -> None:
    outcomes: dict[str, list[Outcome]] = {"a1": [Rejected(Reason.BLOCKED), Sent("1")], "a2": [Sent("2")]}

    def respond(message: Message) -> Outcome:
        return outcomes[message.address].pop(0)

    accepted = await send(office, "Mark: {{mark}}", given(1, mark="5"), given(2, mark="4"), channels=["echo"])
    courier = FakeCourier(respond=respond)
    await office.stack.courier(courier)
    await office.stack.finished(accepted.key)
    assert await office.stack.deliveries.retry(accepted.key, TENANT, [Status.FAILED]) == 1
    await office.stack.finished(accepted.key)
    assert sorted(one.text for one in courier.attempted) == ["Mark: 4", "Mark: 5", "Mark: 5"]


async def test_a_courier_after_a_crash_sends_the_same_text_whatever_the_directory_has_by_then(office: Office) -> None:
    user = User(1, "Anna", contacts={"echo": ["a1"]}, fields={"course": "2"})
    await office.directory.users.create(TENANT, user)
    attempted, never = asyncio.Event(), asyncio.Event()

    async def hang(_: Message) -> Outcome:
        attempted.set()
        await never.wait()
        return Sent("")

    accepted = await send(office, "{{name}}: {{course}}", Addressee(1))
    killed, next_one = FakeCourier(respond=hang), FakeCourier()
    runtime = await office.stack.courier(killed)
    await asyncio.wait_for(attempted.wait(), 20)
    office.stack.abandon(runtime)
    await office.directory.users.update(TENANT, 1, UserChange(name="Boris", fields={}))
    office.stack.advance_clock(LEASE * 2)
    await office.stack.courier(next_one)
    await office.stack.finished(accepted.key)
    (first,), (second,) = killed.attempted, next_one.attempted
    assert (first.text, second.text) == ("Anna: 2", "Anna: 2")
    assert first.random_id() == second.random_id()


async def test_a_deleted_person_leaves_no_values(office: Office) -> None:
    accepted = await send(office, "Mark: {{mark}}", given(1, "Anna", mark="five"), given(2, mark="four"))
    assert await office.stack.deliveries.of_person.erase(TENANT, "1") == 1
    assert await texts(office, accepted) == {1: None, 2: "Mark: four"}
    courier = FakeCourier()
    await office.stack.courier(courier)
    await office.stack.finished(accepted.key)
    assert [one.text for one in courier.attempted] == ["Mark: four"]


async def test_own_fields_of_a_person_stand_behind_given_values_and_before_what_ada_knows(office: Office) -> None:
    fields = {"Курс": "2", "first_name": "Аня"}
    user = User(1, "Петрова Анна Ильинична", contacts={"echo": ["a1"]}, fields=fields)
    await office.directory.users.create(TENANT, user)
    await office.group("ИВТ-21", 1)
    text = "{{first_name}}, {{курс}} {{mark|}}"
    accepted = [
        await send(office, text, Addressee(group="ИВТ-21")),
        await send(office, text, Addressee(1, values={"mark": "5", "курс": "3"}), Addressee(group="ИВТ-21")),
    ]
    await office.directory.users.update(TENANT, 1, UserChange(fields={}))
    accepted.append(await send(office, "{{first_name}} {{курс|нет}}", Addressee(1)))
    assert [(await texts(office, one))[1] for one in accepted] == ["Аня, 2 ", "Аня, 3 5", "Анна нет"]
