"""Keyboards, files, edits and presses of the VK server, through an unmodified vkbottle where it has tools for them."""

import json
from typing import Any

import pytest
from vkbottle import VKAPIError
from vkbottle.tools import Callback, DocMessagesUploader, Keyboard, OpenLink, PhotoMessageUploader, Text

from tests.sandbox.conftest import CallbackServer, Vk, WebClient
from tests.support.waiting import until

PERSON = "5"


def inline() -> Keyboard:
    keyboard = Keyboard(inline=True).add(Callback("Yes", {"data": "yes"})).add(Text("No", {"data": "no"}))
    return keyboard.row().add(OpenLink("https://example.org", "Site"))


async def send(vk: Vk, **parameters: Any) -> int:
    """Send to PERSON; returns the number of the message in the dialog."""
    given = {"random_id": 1, "message": "Choose", "peer_ids": PERSON, **parameters}
    (entry,) = (await vk.api.request("messages.send", given))["response"]
    return int(entry["conversation_message_id"])


async def events(vk: Vk) -> list[dict[str, Any]]:
    answer = await vk.server.long_poll.answer({"key": vk.server.long_poll.key, "ts": "1", "wait": "0"})
    return [event for event in answer["updates"] if event["type"] != "message_allow"]


async def test_a_press_of_a_callback_button_is_an_event_that_is_answered_once(vk: Vk) -> None:
    number = await send(vk, keyboard=inline().get_json())
    press = vk.server.people.press(PERSON, number, "Yes")
    (event,) = await events(vk)
    wanted = {"user_id": 5, "peer_id": 5, "event_id": press, "payload": {"data": "yes"}}
    assert event["object"] == {**wanted, "conversation_message_id": number}
    answer: Any = {
        "event_id": press,
        "user_id": 5,
        "peer_id": 5,
        "event_data": '{"type":"show_snackbar","text":"Done"}',
    }
    await vk.api.messages.send_message_event_answer(**answer)
    assert vk.server.people.answers(PERSON) == [{"query": press, "text": "Done"}]
    with pytest.raises(VKAPIError[100]):
        await vk.api.messages.send_message_event_answer(**answer)


async def test_a_text_button_writes_its_text_with_the_payload(vk: Vk) -> None:
    number = await send(vk, keyboard=inline().get_json())
    assert vk.server.people.press(PERSON, number, "no") == ""
    message = (await events(vk))[0]["object"]["message"]
    assert (message["text"], json.loads(message["payload"])) == ("No", {"data": "no"})
    with pytest.raises(LookupError):
        vk.server.people.press(PERSON, number, "Maybe")


async def test_a_keyboard_stays_until_an_empty_one_removes_it(vk: Vk) -> None:
    await send(vk, keyboard=Keyboard().add(Text("Menu")).get_json())
    await send(vk, random_id=2)
    assert vk.server.people.keyboard(PERSON) == [[{"text": "Menu", "url": ""}]]
    await send(vk, random_id=3, keyboard=Keyboard().get_json())
    assert vk.server.people.keyboard(PERSON) == []


def rows(*widths: int, inline: bool = True, **action: str) -> str:
    button = {"action": {"type": "text", "label": "x", **action}}
    return json.dumps({"inline": inline, "buttons": [[button] * width for width in widths]})


@pytest.mark.parametrize(
    "keyboard",
    [
        rows(6),
        rows(5, 5, 1),
        rows(*[1] * 7),
        rows(),
        rows(1, 0),
        rows(*[1] * 11, inline=False),
        rows(*[5] * 9, inline=False),
        rows(1, label=""),
        rows(1, label="x" * 41),
        rows(1, payload="not JSON"),
        rows(1, payload=f'"{"x" * 254}"'),
        rows(1, type="open_link"),
        rows(1, type="unknown"),
        "{",
        "[]",
    ],
)
async def test_a_keyboard_beyond_the_limits_is_refused(vk: Vk, keyboard: str) -> None:
    with pytest.raises(VKAPIError[911]):
        await vk.api.messages.send(peer_id=5, random_id=1, message="x", keyboard=keyboard)
    assert vk.texts(PERSON) == []


@pytest.mark.parametrize("keyboard", [rows(5, 5), rows(*[1] * 6), rows(*[4] * 10, inline=False)])
async def test_a_keyboard_within_the_limits_is_shown(vk: Vk, keyboard: str) -> None:
    await send(vk, keyboard=keyboard)
    assert vk.texts(PERSON) == ["Choose"]


async def test_uploaded_files_are_attached_by_an_unmodified_client(vk: Vk) -> None:
    photo = await PhotoMessageUploader(vk.api).upload(b"picture", peer_id=5)
    document = await DocMessagesUploader(vk.api).upload(b"a,b", title="list.csv", peer_id=5)
    await send(vk, message="", attachment=f"{photo},{document}")
    shown = vk.server.people.shown(PERSON, "1")
    assert shown
    assert [(one["type"], one["name"]) for one in shown["files"]] == [("photo", "picture.jpg"), ("doc", "list.csv")]
    assert [vk.server.uploads.find(name).data for name in (photo, document)] == [b"picture", b"a,b"]
    with pytest.raises(VKAPIError[100]):
        await send(vk, random_id=2, attachment="photo-1_99_x")


async def test_a_message_is_edited_replied_to_and_deleted_by_its_number(vk: Vk) -> None:
    await send(vk, random_id=7, peer_ids="6")
    number = await send(vk)
    assert number == 1, "each dialog has its own numbers"
    await vk.api.messages.edit(peer_id=5, conversation_message_id=number, message="Chosen")
    reply = {"peer_id": 5, "conversation_message_ids": [number], "is_reply": True}
    await send(vk, random_id=2, forward=json.dumps(reply))
    assert [(await shown(vk, one))[name] for one, name in ((2, "text"), (3, "reply_to"))] == ["Chosen", number]
    deleted = await vk.api.request("messages.delete", {"peer_id": 5, "cmids": "1,9", "delete_for_all": 1})
    assert [one["response"] for one in deleted["response"]] == [1, 0]
    assert vk.server.people.shown(PERSON, "2") is None
    with pytest.raises(VKAPIError[909]):
        await vk.api.messages.edit(peer_id=5, conversation_message_id=number, message="again")


async def shown(vk: Vk, message_id: int) -> dict[str, Any]:
    return vk.server.people.shown(PERSON, str(message_id)) or {}


async def test_a_person_who_denies_messages_gets_none_until_they_are_allowed(vk: Vk) -> None:
    vk.server.people.deny(PERSON)
    with pytest.raises(VKAPIError[901]):
        await vk.send(peer_id=5)
    vk.server.people.allow(PERSON)
    assert await vk.send(peer_id=5)
    assert vk.texts(PERSON) == ["hello"]


async def test_events_are_posted_to_a_confirmed_address(web_client: WebClient, callbacks: CallbackServer) -> None:
    address = {"url": f"{callbacks.url}/vk", "secret": "word", "confirmation": "c0de"}
    assert (await web_client.call("POST", "callback/vk", address))[1]["code"] == "NOT_CONFIRMED"
    callbacks.text = "c0de"
    assert (await web_client.call("POST", "callback/vk", address))[0] == 204
    callbacks.text = "ok"
    await web_client.call("POST", "write/vk", {"address": 5, "text": "hello"})
    await until(lambda: len(callbacks.bodies) == 3)
    event = callbacks.bodies[-1]
    assert (event["type"], event["secret"], event["object"]["message"]["text"]) == ("message_new", "word", "hello")
    assert (await web_client.call("DELETE", "callback/vk"))[0] == 204


async def test_an_event_that_is_not_acknowledged_is_posted_again(
    web_client: WebClient, callbacks: CallbackServer
) -> None:
    callbacks.text = "c0de"
    await web_client.call("POST", "callback/vk", {"url": callbacks.url, "secret": "word", "confirmation": "c0de"})
    callbacks.answer = 503
    await web_client.call("POST", "deny/vk", {"address": 5})
    await until(lambda: len(callbacks.bodies) == 3)
    assert callbacks.bodies[1] == callbacks.bodies[2]
    assert callbacks.bodies[1]["type"] == "message_deny"
