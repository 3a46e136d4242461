"""The people of the inbox page over HTTP: groups of addresses, their chats, and what they write."""

import asyncio
from typing import Any

import pytest

from sandbox.sandbox import Sandbox
from tests.sandbox.bot_api_clients import session
from tests.sandbox.conftest import WebClient
from tests.support.whole_aiogram import Bot

TEACHER = {
    "number": 1,
    "name": "Преподаватель (teacher)",
    "telegram": "100001",
    "vk": "200001",
    "max": "300001",
    "sms": "+79990100001",
    "email": "teacher@sandbox.example",
}
ANNA = {
    "name": "Анна",
    "telegram": 100_777,
    "vk": 200_777,
    "sms": "79990000777",
    "email": "Anna@Example.org",
}


async def texts(web_client: WebClient, channel: str, number: int = 1) -> list[tuple[str, str]]:
    chats = (await web_client.get(f"people/{number}/chats"))["chats"]
    return [(message["from"], message["text"]) for message in chats[channel]["messages"]]


async def test_a_teacher_and_a_student_exist_and_a_new_person_is_added(web_client: WebClient) -> None:
    status, anna = await web_client.call("POST", "people", ANNA)
    addresses = {"telegram": "100777", "vk": "200777", "max": "", "sms": "+79990000777", "email": "anna@example.org"}
    assert (status, anna) == (201, {"number": 3, "name": "Анна", **addresses})
    people = (await web_client.get("people"))["people"]
    assert people[0] == TEACHER
    assert [one["name"] for one in people[1:]] == ["Студент (student)", "Анна"]
    assert await web_client.call("DELETE", "people/3") == (204, None)
    assert (await web_client.call("GET", "people/3/chats"))[1]["code"] == "NOT_FOUND"
    assert (await web_client.call("POST", "people", {"name": "only mail", "email": "a@b"}))[1]["number"] == 4
    assert list((await web_client.get("people/4/chats"))["chats"]) == ["email"]


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({}, 422, "VALIDATION_FAILED"),
        ({"name": "x"}, 422, "NO_ADDRESS"),
        ({"name": "x" * 101, "vk": 5}, 422, "VALIDATION_FAILED"),
        ({"name": "x", "telegram": 0}, 422, "VALIDATION_FAILED"),
        ({"name": "x", "telegram": "@name"}, 422, "VALIDATION_FAILED"),
        ({"name": "x", "telegram": 2**41}, 422, "VALIDATION_FAILED"),
        ({"name": "x", "vk": -5}, 422, "VALIDATION_FAILED"),
        ({"name": "x", "sms": "phone"}, 422, "VALIDATION_FAILED"),
        ({"name": "x", "email": "a b@c"}, 422, "VALIDATION_FAILED"),
        ({"name": "x", "email": ""}, 422, "VALIDATION_FAILED"),
        ({"name": "x", "vk": 5, "fax": "1"}, 422, "VALIDATION_FAILED"),
        ({"name": "x", "telegram": 100_001}, 409, "ADDRESS_TAKEN"),
        ({"name": "x", "vk": 5, "email": "TEACHER@sandbox.example"}, 409, "ADDRESS_TAKEN"),
    ],
)
async def test_a_wrong_person_is_a_problem_and_is_not_added(
    web_client: WebClient, body: dict[str, Any], status: int, code: str
) -> None:
    answer = await web_client.call("POST", "people", body)
    assert (answer[0], answer[1]["code"]) == (status, code)
    assert len((await web_client.get("people"))["people"]) == 2


async def test_there_are_at_most_a_thousand_people(web_client: WebClient) -> None:
    for number in range(998):
        await web_client.call("POST", "people", {"name": "x", "vk": 5 + number})
    status, problem = await web_client.call("POST", "people", {"name": "x", "vk": 4})
    assert (status, problem["code"]) == (409, "TOO_MANY_PEOPLE")


async def test_a_chat_has_what_was_received_and_written_and_what_was_read(web_client: WebClient) -> None:
    for channel, address in [("telegram", "100001"), ("vk", "200001"), ("vk", "200002"), ("sms", "+79990100001")]:
        web_client.state.receive(channel, address, f"to {address}", reference="1")
    web_client.state.receive("email", "teacher@sandbox.example", "text", reference="2", subject="Тема")
    assert (await web_client.call("POST", "read/vk", {"address": 200_001}))[0] == 200
    assert (await web_client.call("POST", "write/vk", {"address": 200_001, "text": "Спасибо"}))[0] == 200
    assert (await web_client.call("POST", "write/telegram", {"address": 100_001, "text": "Хорошо"}))[0] == 204
    web_client.state.receive("vk", "200001", "second", reference="3")
    assert await texts(web_client, "telegram") == [("sender", "to 100001"), ("person", "Хорошо")]
    assert await texts(web_client, "vk") == [("sender", "to 200001"), ("person", "Спасибо"), ("sender", "second")]
    chats = (await web_client.get("people/1/chats"))["chats"]
    assert [message.get("read") for message in chats["vk"]["messages"]] == [True, None, False]
    assert [message["subject"] for message in chats["email"]["messages"]] == ["Тема"]
    assert chats["sms"]["address"] == "+79990100001"
    assert chats["telegram-bot"] == {
        "address": "100001",
        "messages": [],
        "keyboard": [],
        "contact_buttons": [],
        "answers": [],
        "blocked": False,
    }


async def test_a_block_is_shown_until_the_person_writes_again(web_client: WebClient) -> None:
    await web_client.call("POST", "block/telegram-bot", {"address": 100_001})
    assert (await web_client.get("people/1/chats"))["chats"]["telegram-bot"]["blocked"] is True
    await web_client.call("POST", "write/telegram-bot", {"address": 100_001, "text": "/start"})
    assert (await web_client.get("people/1/chats"))["chats"]["telegram-bot"]["blocked"] is False


async def test_a_reader_of_chats_waits_for_the_next_change(web_client: WebClient) -> None:
    revision = (await web_client.get("people/1/chats"))["revision"]
    request = asyncio.ensure_future(web_client.get("people/1/chats", after=str(revision), wait="30"))
    await asyncio.wait([request], timeout=0.2)
    assert not request.done()
    web_client.state.receive("vk", "200001", "new", reference="1")
    async with asyncio.timeout(20):
        shown = await request
    assert shown["revision"] > revision
    assert [message["text"] for message in shown["chats"]["vk"]["messages"]] == ["new"]
    async with asyncio.timeout(20):
        await web_client.get("people/1/chats", after=str(revision), wait="30")  # the change was before: no wait


async def test_an_edited_message_of_the_bot_ends_the_wait(web_client: WebClient, sandbox: Sandbox) -> None:
    bot = Bot(sandbox.bot_api.token, session=session(sandbox.bot_api))
    await bot.send_message(100_001, "old")
    revision = (await web_client.get("people/1/chats"))["revision"]
    request = asyncio.ensure_future(web_client.get("people/1/chats", after=str(revision), wait="30"))
    await asyncio.wait([request], timeout=0.2)
    await bot.edit_message_text("new", chat_id=100_001, message_id=1)
    async with asyncio.timeout(20):
        shown = await request
    assert [(one["text"], one["edited"]) for one in shown["chats"]["telegram-bot"]["messages"]] == [("new", True)]
    await bot.session.close()


async def test_a_reader_gets_the_unchanged_chats_after_the_wait(web_client: WebClient) -> None:
    revision = (await web_client.get("people/1/chats"))["revision"]
    assert (await web_client.get("people/1/chats", after=str(revision), wait="1"))["revision"] == revision


@pytest.mark.parametrize("query", [{"after": "x"}, {"wait": "31"}, {"x": "1"}])
async def test_a_wrong_query_for_chats_is_a_problem(web_client: WebClient, query: dict[str, str]) -> None:
    assert (await web_client.call("GET", "people/1/chats", **query))[0] == 422


@pytest.mark.parametrize("number", ["0", "3", "x", "9" * 5000])
async def test_an_unknown_person_is_a_problem(web_client: WebClient, number: str) -> None:
    assert (await web_client.call("GET", f"people/{number}/chats"))[0] == 404
    assert (await web_client.call("DELETE", f"people/{number}"))[0] == 404


@pytest.mark.parametrize("body", [{}, {"address": "x", "text": "x"}, {"address": 5}, {"address": 5, "text": ""}])
async def test_writing_in_vk_needs_an_id_and_a_text(web_client: WebClient, body: dict[str, Any]) -> None:
    assert (await web_client.call("POST", "write/vk", body))[0] == 422


async def test_each_kind_of_fault_is_listed(web_client: WebClient, sandbox: Sandbox) -> None:
    kinds = await web_client.get("faults.json")
    assert kinds["vk"]["error"]["value"] == "VK error code"
    assert kinds["telegram"]["frozen"]["account"] is True
