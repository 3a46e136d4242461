"""A person selects its groups in a chat and orders a message in its own name, by any bot (C-115)."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from core.model.delivery import Quota
from core.model.people import Group, Supergroup, User
from core.orders import SendingPolicy
from tests.scenarios.execution.conftest import PERSON, Installation, states
from tests.support.stack import TENANT
from tests.support.waiting import until

pytestmark = pytest.mark.parametrize("shards", [16])

WRITE = """
write:
  actions:
    - {type: choose_addressees, kinds: [group, supergroup, person]}
    - {type: ask, text: "To {titles}. The text?", chain: completed}
    - {type: order, text: "{answer}", deliver_at: "{when|fallback:now}", preview: true, chain: completed}
    - {type: send, text: "{people} people, {unreachable} unreachable", chain: completed}
    - {type: order, text: "{answer}", chain: completed}
    - {type: send, text: "Sent to {people}", chain: completed}
    - {type: send, text: "Not sent: {code|fallback:something else}", chain: [failed, drop]}
named:
  actions:
    - {type: choose_addressees, begins: "{event_text}"}
    - {type: order, text: "{rest}", chain: completed}
    - {type: send, text: "Sent to {titles}", chain: completed}
    - {type: send, text: "Not sent: {code}", chain: [failed, drop]}
groups:
  actions:
    - {type: choose_addressees}
    - {type: send, text: "Not sent: {code}", chain: failed}
help: {actions: [{type: send, text: Help}]}
"""


@pytest.fixture
async def school(installation: Installation) -> Installation:
    """Anna, who writes, owns ИВТ-101 and the course; Boris and Vera are in it; ФИЗ-1 is not hers."""
    installation.write(
        "triggers.yaml",
        'text: {exact: {/write: s.write, /groups: s.groups, /help: s.help}, starts_with: {"и": s.named, "ф": s.named}}',
    )
    installation.write("scenarios/s.yaml", WRITE)
    directory = installation.directory
    people = (
        User(1, "Анна", "anna@example.org", "trainer", "en", {"echo": [PERSON]}),
        User(2, "Борис", "boris@example.org", "student", "en", {"echo": ["p2"]}),
        User(3, "Вера", "vera@example.org", "student", "en", {}),
        User(4, "Глеб", "gleb@example.org", "student", "en", {"echo": ["p4"]}),
    )
    for user in people:
        await directory.users.create(TENANT, user)
    await directory.groups.create(TENANT, Group("ИВТ-101", "ИВТ-101"), [2, 3])
    await directory.groups.create(TENANT, Group("ФИЗ-1", "ФИЗ-1"), [4])
    await directory.supergroups.create(TENANT, Supergroup("course", "Первый курс", ["ИВТ-101"]))
    await directory.ownerships.own(TENANT, 1, "group", "ИВТ-101")
    await directory.ownerships.own(TENANT, 1, "supergroup", "course")
    return installation


def buttons(school: Installation) -> dict[str, str]:
    """The label and the data of the buttons of the last message with some."""
    content = next(one.content for one in reversed(school.courier.attempted) if one.content and one.content.inline)
    assert content is not None
    return {button.text: button.data for row in content.inline for button in row}


async def answered(school: Installation, count: int) -> None:
    await until(lambda: len(school.texts) >= count)


async def press(school: Installation, label: str, **fields: Any) -> None:
    """Press a button and wait for the next message."""
    count = len(school.texts)
    await school.put(callback_data=buttons(school)[label], message_id=17, event_text=None, **fields)
    await answered(school, count + 1)


async def written(school: Installation, text: str) -> None:
    count = len(school.texts)
    await school.put(text)
    await answered(school, count + 1)


async def begun(school: Installation) -> str:
    """Begin, and wait for the list, which may come behind the end of a run before it."""
    count = len(school.texts)
    run = await school.put("/write")
    await until(lambda: any(one.startswith("Whom") for one in school.texts[count:]))
    return run


async def selected(school: Installation, *labels: str) -> str:
    """Begin, select these, press Done; return the run, which asks for the text."""
    run = await begun(school)
    for label in (*labels, "Done"):
        await press(school, label)
    return run


async def test_a_teacher_selects_a_group_writes_and_its_people_get_it(school: Installation) -> None:
    await school.start()
    run = await selected(school, "ИВТ-101")
    assert school.texts == [
        "Whom do you write to?\nSelected: –",
        "Whom do you write to?\nSelected: ИВТ-101",
        "To ИВТ-101. The text?",
    ]
    assert school.courier.attempted[1].content.edit == "17"  # type: ignore[union-attr]
    await school.put("No <classes> & no tests")
    view = await school.over(run)
    to_group, told = [one for one in school.courier.attempted if "classes" in one.text], school.texts
    assert [(one.address, one.text) for one in to_group] == [("p2", "No &lt;classes&gt; &amp; no tests")]
    assert "2 people, 1 unreachable" in told
    assert "Sent to 2" in told
    ordered = next(one for one in view.actions if one.type == "order" and "delivery_id" in one.results)
    assert str(ordered.results["delivery_id"]).split(".")[1] == "1", "Anna's own delivery"


async def test_a_list_has_tabs_a_search_and_people_and_each_toggle_names_its_goal(school: Installation) -> None:
    await school.start()
    run = await begun(school)
    assert list(buttons(school)) == ["• Groups •", "Supergroups", "People", "ИВТ-101", "Done", "Cancel"]
    toggle = buttons(school)["ИВТ-101"]
    for _ in range(2):  # pressed twice in the same message
        count = len(school.texts)
        await school.put(callback_data=toggle, message_id=17, event_text=None)
        await answered(school, count + 1)
    assert school.texts[-1] == "Whom do you write to?\nSelected: ИВТ-101"
    await press(school, "Supergroups")
    assert "Первый курс" in buttons(school)
    await press(school, "People")
    assert list(buttons(school)) == ["Groups", "Supergroups", "• People •", "Done", "Cancel"], "people are searched for"
    await written(school, "бор")
    assert school.texts[-1] == "Whom do you write to?\nSelected: ИВТ-101\nSearch: бор"
    await press(school, "Борис")
    await written(school, "глеб")
    assert "Глеб" not in buttons(school), "he is in no group of Anna's"
    await press(school, "Done")
    assert school.texts[-1] == "To ИВТ-101, Борис. The text?"
    await school.put("No classes")
    chosen = next(one for one in (await school.over(run)).actions if one.type == "choose_addressees")
    assert chosen.results["people"] == 2, "who is chosen alone and with a group counts once"


async def test_done_needs_a_selection_cancel_ends_and_a_command_begins_something_else(school: Installation) -> None:
    await school.start()
    run = await selected(school)
    assert school.texts[-1] == "Nothing is selected.\n\nWhom do you write to?\nSelected: –"
    await press(school, "Cancel")
    await school.over(run)
    assert school.texts[-1] == "Not sent: CANCELLED"
    other = await begun(school)
    await written(school, "/help")
    view = await school.over(other)
    assert "Help" in school.texts
    assert states(view)[0] == "drop"


async def test_a_group_that_was_taken_away_is_left_out_and_an_order_for_it_is_refused(school: Installation) -> None:
    await school.start()
    before = await begun(school)
    await press(school, "ИВТ-101")
    await school.directory.ownerships.disown(TENANT, 1, "group", "ИВТ-101")
    await press(school, "Done")
    assert school.texts[-1].startswith("A selected group was deleted, or is no longer yours.")
    assert school.texts[-1].endswith("Selected: –")
    await press(school, "Cancel")
    await school.over(before)
    await school.directory.ownerships.own(TENANT, 1, "group", "ИВТ-101")
    run = await selected(school, "ИВТ-101")
    await school.directory.ownerships.disown(TENANT, 1, "group", "ИВТ-101")
    await school.put("text")
    await school.over(run)
    assert school.texts[-1] == "Not sent: NOT_OWNER"


async def test_the_quota_of_the_person_holds(school: Installation) -> None:
    school.rules = SendingPolicy({"trainer": Quota(1, timedelta(days=1))})
    await school.start()
    for _ in range(2):
        run = await selected(school, "ИВТ-101")
        await school.put("text")
        await school.over(run)
    assert [one for one in school.texts if "ent" in one][-2:] == ["Sent to 2", "Not sent: QUOTA_EXCEEDED"]
    assert school.texts.count("2 people, 1 unreachable") == 1, "the preview is refused, before anybody confirms"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("ивт-101 Пары не будет", "Sent to ИВТ-101"),
        ("физ-1 Пары не будет", "Not sent: NOT_OWNER"),
        ("физ-2 Пары не будет", "Not sent: ADDRESSEE_UNCLEAR"),
        ("ивт-101", "Not sent: TEXT_EMPTY"),
    ],
)
async def test_a_message_may_begin_with_its_addressee(school: Installation, text: str, answer: str) -> None:
    await school.start()
    await school.play(text)
    assert answer in school.texts  # the message for the group may come before it, or after it
    if answer.startswith("Sent"):
        await until(lambda: "Пары не будет" in school.texts)
    else:
        assert "Пары не будет" not in school.texts


@pytest.mark.parametrize(("user", "code"), [("99", "PERSON_UNKNOWN"), ("p2", "NOTHING_OWNED")])
async def test_a_stranger_and_a_person_without_groups_are_told_so(school: Installation, user: str, code: str) -> None:
    await school.start()
    await school.play("/groups", user_id=user, chat_id=user)
    assert school.texts == [f"Not sent: {code}"]


async def test_a_selection_and_an_order_survive_the_death_of_a_process_at_each_step(school: Installation) -> None:
    def texts_for(address: str) -> list[str | None]:
        return [one.text for one in school.courier.attempted if one.address == address]

    async def has_come(text: str) -> bool:
        return text in texts_for("p2")

    for step in range(4):
        first = await school.start(lease=timedelta(seconds=1))
        run = await begun(school)
        acts: tuple[Callable[[], Awaitable[Any]], ...] = (
            partial(press, school, "ИВТ-101"),
            partial(press, school, "Done"),
            partial(school.put, f"Text {step}"),
        )
        for number, act in enumerate(acts):
            await act()
            if number == step:
                await first.kill()
                await school.start(lease=timedelta(seconds=1))
        await school.over(run)
        await until(partial(has_come, f"Text {step}"))  # also what the killed process had claimed
    assert texts_for("p2") == [f"Text {step}" for step in range(4)]
