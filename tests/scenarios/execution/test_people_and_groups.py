"""Whole scenarios about people and groups: states, requests, roles, welcome, membership, through the process."""

import asyncio
import os
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from scenarios.context import Context
from scenarios.engine import Ending, completed
from scenarios.schema import ActionType, Attributes
from scenarios.stores.people import People
from scenarios.stores.requests import Requests
from tests.sandbox.bot_api_clients import ANNA, BORIS, GROUP, BotApi, bot_api
from tests.scenarios.execution.conftest import PERSON, WITHIN, Installation, states
from tests.support.stack import TENANT, FakeCourier

pytestmark = pytest.mark.parametrize("shards", [16])

__all__ = ["bot_api"]

LEASE = timedelta(seconds=1)
TELEGRAM = {"channel": "telegram-bot", "user_id": ANNA, "chat_id": ANNA, "chat_type": "private"}
IN_GROUP = {"channel": "telegram-bot", "user_id": ANNA, "chat_id": GROUP, "chat_type": "supergroup"}

CAPTURE = """
ask:
  actions:
    - {type: user, user_state: feedback, expire: 60s}
    - {type: send, text: "Что случилось?", chain: completed}
take:
  actions:
    - {type: user, user_state: ""}
    - {type: request, request_name: feedback, request_info: "из чата {chat_id}", placeholder: true, chain: completed}
    - {type: send, text: "Принято: {request_text}", chain: completed}
list:
  actions:
    - {type: request_management, operation: list, request_name: feedback, unexpired: 7d}
    - {type: send, text: "", additional_text: "!", chain: completed}
other:
  actions:
    - {type: send, text: "Не понимаю"}
"""


@pytest.fixture
def form(installation: Installation) -> Installation:
    """A bot that asks for a request and takes the next text as its answer."""
    triggers = 'text: {exact: {"/ask": form.ask, "/list": form.list}, state: {feedback: form.take}, "*": form.other}'
    return installation.write("triggers.yaml", triggers).write("scenarios/form.yaml", CAPTURE)


async def test_a_request_is_captured_in_two_steps_with_a_state(form: Installation) -> None:
    await form.start()
    for text in ("/ask", "Нет света", "спасибо", "/list"):
        await form.play(text)
    asked, taken, other, listed = form.texts
    assert (asked, taken, other) == ("Что случилось?", "Принято: Нет света", "Не понимаю")
    assert "Нет света" in listed
    assert listed.endswith("!")
    (stored,) = await Requests(form.stack.store, TENANT).newest(["feedback"])
    assert (stored.user_id, stored.channel, stored.info) == (PERSON, "echo", f"из чата {PERSON}")


async def test_a_process_that_dies_after_the_state_was_cleared_still_ends_the_run(form: Installation) -> None:
    """The repeat of the event finds its run; by the state, which is cleared now, it would start nothing."""
    reached, goes_on = asyncio.Event(), asyncio.Event()

    async def pause(_: Context, attributes: Attributes) -> Ending:
        reached.set()
        await goes_on.wait()
        return completed()

    form.types["pause"] = ActionType("pause", "Waits.", execute=pause)
    form.write(
        "scenarios/form.yaml", CAPTURE.replace("    - {type: request,", "    - {type: pause}\n    - {type: request,")
    )
    form.write("triggers.yaml", "text: {exact: {/ask: form.ask}, state: {feedback: form.take}}")
    first = await form.start(lease=LEASE)
    await form.play("/ask")
    run = await form.put("Нет света")
    await asyncio.wait_for(reached.wait(), WITHIN)
    assert await People(form.stack.store, TENANT).met({"channel": "echo", "user_id": PERSON}) == ""
    await first.kill()
    goes_on.set()
    await form.start(lease=LEASE)
    await form.over(run)
    assert form.texts == ["Что случилось?", "Принято: Нет света"]
    assert len(await Requests(form.stack.store, TENANT).newest()) == 1


async def test_each_event_refreshes_the_record_of_its_person(form: Installation) -> None:
    await form.start()
    await form.play("привет", username="anna", first_name="Анна")
    person = await People(form.stack.store, TENANT).find("echo", PERSON)
    assert person is not None
    assert (person.username, person.first_name, person.chats) == ("anna", "Анна", (PERSON,))


async def test_a_refused_role_fails_the_action_and_the_chain_goes_on_from_there(installation: Installation) -> None:
    installation.write("bot.yaml", f"roles: {{admin: {{permissions: [mute], users: [{BORIS}]}}}}")
    installation.actions("""
    - {type: send, text: "секрет", required_role: admin}
    - {type: send, text: "Нельзя: {error}", chain: failed}
""")
    await installation.start()
    run = await installation.play()
    assert states(run) == ["failed", "completed"]
    assert installation.texts == ["Нельзя: у человека нет ни одной из ролей admin"]


# in Telegram


@pytest.fixture
async def group(bare: Installation, bot_api: BotApi) -> Installation:
    """A bot in a group that Boris administers and Anna has joined."""
    bare.options = {"telegram": bot_api.named_calls}
    bare.courier = FakeCourier("telegram-bot")
    await bare.start_courier()
    bot_api.server.joining.set_up(GROUP, title="Клуб", username="club", administrators=[BORIS])
    bot_api.server.joining.join(ANNA, GROUP)
    return bare


async def play(group: Installation, event: Mapping[str, Any], text: str = "x") -> list[str]:
    """The texts that an event of Telegram leads to."""
    group.courier.attempted.clear()
    await group.play(text, **event)
    return group.texts


async def test_who_joins_a_group_is_welcomed(group: Installation) -> None:
    group.write("group_triggers.yaml", 'new_member: {group: {"Клуб": w.club}, default: w.other}')
    group.write(
        "scenarios/w.yaml",
        'club: {actions: [{type: send, text: "Здравствуйте, {joined_usernames|tags}!"}]}\n'
        "other: {actions: [{type: send, text: other}]}\n",
    )
    await group.start()
    joined = {"kind": "new_member", "chat_title": "Клуб", "joined_user_ids": [ANNA], "joined_usernames": ["anna"]}
    assert await play(group, {**IN_GROUP, **joined}) == ["Здравствуйте, @anna!"]
    assert group.courier.attempted[0].address == str(GROUP)


async def test_an_administrator_mutes_who_is_named_in_the_text(group: Installation, bot_api: BotApi) -> None:
    group.write("group_triggers.yaml", "text: {starts_with: {/mute: m.mute}}")
    group.write(
        "scenarios/m.yaml",
        """
mute:
  actions:
    - {type: validator, group_admin: true}
    - {type: send, text: "Только для администраторов", chain: failed, chain_drop: completed}
    - type: validator
      restrict_username: "{event_text|regex:@\\\\w+}"
      duration: "{event_text|regex:\\\\d+[wdhms]}"
      placeholder: true
      chain: true
    - {type: restrict, chain: completed}
    - {type: send, text: "{restrict_username} молчит {duration_seconds} с", chain: completed}
""",
    )
    await group.start()
    text = "/mute @anna 2h"
    assert await play(group, {**IN_GROUP, "username": "anna"}, text) == ["Только для администраторов"]
    assert await play(group, {**IN_GROUP, "user_id": BORIS}, text) == ["@anna молчит 7200 с"]
    assert (await bot_api.bot.get_chat_member(GROUP, ANNA)).status == "restricted"


async def test_members_get_an_invite_link_and_others_are_asked_to_join(group: Installation, bot_api: BotApi) -> None:
    group.actions("""
    - {type: validator, rules: {user_id: [{rule: is_member, value: "@club"}]}}
    - {type: send, text: "Сначала вступите в @club", chain: failed, chain_drop: completed}
    - {type: invite_link, chat_id: "@club", member_limit: 1, expire: 1d, chain: drop}
    - {type: send, text: "{invite_link}", chain: completed}
""")
    await group.start()
    assert await play(group, {**TELEGRAM, "user_id": BORIS + 50, "chat_id": BORIS + 50}) == ["Сначала вступите в @club"]
    (link,) = await play(group, TELEGRAM)
    assert bot_api.server.joining.join(BORIS + 50, link=link)


async def test_a_function_of_a_file_runs_as_an_action_and_anew_after_a_change(
    installation: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "slots.py"
    written = """
from scenarios.action_files import action

@action(returns={"free": "slots"}, from_person=("free",))
async def free_slots(call, day: str, most: int = 2):
    if day == "never":
        raise ValueError("no such day")
    return {"free": f"<{day} {most} {call.event['user_id']}>"}
"""
    file.write_text(written)
    monkeypatch.setenv("ADA_ACTIONS", str(file))
    installation.actions("""
    - {type: free_slots, day: "{event_text}", step: slots}
    - {type: send, text: "{free}", chain: completed}
    - {type: send, text: "{error}", after: slots, chain: failed}
""")
    await installation.start()
    await installation.play("Monday")
    await installation.play("never")
    file.write_text(written.replace("most}", "most} of"))
    os.utime(file, ns=(1, 1))
    await installation.play("Monday")
    assert installation.texts == ["&lt;Monday 2 7&gt;", "ValueError: no such day", "&lt;Monday 2 of 7&gt;"]
