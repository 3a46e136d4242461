"""An address where a machine may answer gets only so many messages in a day, whatever action sends them (C-115)."""

import re
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

import scenarios
from core.admission import quotas
from core.model.content import EVERY_FEATURE, Feature
from core.model.people import Group, User
from couriers.channel import channels
from scenarios.sending import orders
from tests.scenarios.execution.conftest import PERSON, Installation, states
from tests.support.stack import TENANT, FakeCourier
from tests.support.waiting import until

MODULES = Path(scenarios.__file__).parent


@pytest.fixture
async def school(bare: Installation, monkeypatch: pytest.MonkeyPatch) -> Installation:
    """A teacher whose channel limits replies, to two messages, and cannot edit."""
    limited = {"echo": replace(channels()["echo"], limits_replies=True)}
    monkeypatch.setattr(orders, "channels", lambda: limited)
    monkeypatch.setattr(quotas, "MOST_REPLIES", 2)
    bare.courier = FakeCourier(shows=EVERY_FEATURE - {Feature.EDIT})
    await bare.start_courier()
    for user in (User(1, "Anna", None, "trainer", "en", {"echo": [PERSON]}), User(2, contacts={"echo": ["p2"]})):
        await bare.directory.users.create(TENANT, user)
    await bare.directory.groups.create(TENANT, Group("A", "A"), [2])
    await bare.directory.ownerships.own(TENANT, 1, "group", "A")
    return bare


@pytest.mark.parametrize(
    "action",
    ["send, text: x", "copy, chat_to: 7", "ask, text: x", "choose_addressees, kinds: [group, person]"],
)
async def test_each_action_that_writes_to_the_chat_counts(school: Installation, action: str) -> None:
    school.actions(f"    - {{type: {action}}}")
    await school.start()
    for _ in range(2):
        before = len(school.texts)
        await school.put("/x")
        await until(partial(sent_more, school, before))
    refused = await school.over(await school.put("/x"))
    assert states(refused) == ["failed"]
    assert refused.actions[0].error == "REPLIES_USED_UP: this address has got 2 messages in a day, and gets no more"
    assert len(school.texts) == 2


def sent_more(school: Installation, before: int) -> bool:
    return len(school.texts) > before


async def test_the_end_of_a_delivery_counts(school: Installation, caplog: pytest.LogCaptureFixture) -> None:
    school.actions(
        "    - {type: order, text: No classes, to: {group: A}}\n    - {type: follow_delivery, chain: completed}"
    )
    await school.start()
    for _ in range(3):
        assert states(await school.play()) == ["completed", "completed"]
    await school.pass_time(timedelta(seconds=3))
    await until(lambda: school.courier.addresses.count(PERSON) == 2 and "is not sent: its address" in caplog.text)
    assert school.courier.addresses.count("p2") == 3


async def test_a_question_goes_on_without_the_hints_that_are_too_many(
    school: Installation, caplog: pytest.LogCaptureFixture
) -> None:
    school.actions("    - {type: ask, text: How many?, answer: number}\n    - {type: typing, chain: completed}")
    await school.start()
    run = await school.put("/x")
    await until(lambda: len(school.texts) == 1)
    await school.put("many")
    await until(lambda: len(school.texts) == 2)
    await school.put("many")
    await school.put("5")
    assert states(await school.over(run)) == ["completed", "completed"]
    assert school.texts == ["How many?", "How many?"]
    assert "this address has got 2 messages in a day" in caplog.text


@pytest.mark.parametrize(("limited", "others"), [("[echo, vk]", "failed"), ("echo", "failed"), ("[vk]", "completed")])
async def test_settings_limit_further_channels_for_all_actions(
    school: Installation, monkeypatch: pytest.MonkeyPatch, limited: str, others: str
) -> None:
    monkeypatch.setattr(orders, "channels", channels)
    school.write("settings.yaml", f"send: {{limited_in: {limited}}}")
    copies = "".join(f"    - {{type: copy, chat_to: {chat}}}\n" for chat in (7, 7, 8))
    school.actions(f"    - {{type: send, text: x}}\n{copies}")
    await school.start()
    assert states(await school.play()) == ["completed", "completed", others, "completed"], (
        "the last one goes to another address"
    )


def test_no_other_module_of_scenarios_sends_messages() -> None:
    """A new action sends by `orders.reply`, which counts."""
    found = [path for path in MODULES.rglob("*.py") if re.search(r"sending\.send\(", path.read_text(encoding="utf-8"))]
    assert sorted(path.name for path in found) == ["following.py", "order.py", "orders.py", "send.py"]
