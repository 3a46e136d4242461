"""The bots that `./ada up` starts beside the sandbox: people write on the inbox page's API and get answers."""

import json
import os
import signal
from typing import Any
from urllib.parse import quote
from urllib.request import Request, urlopen

import pytest

from tests.cli.installation import Installation
from tests.support.waiting import await_sync

TEACHER, STUDENT, CHAT = "+79990000901", "+79990000902", "200902"


@pytest.fixture(scope="module")
def with_people(running: Installation) -> Installation:
    """The installation that is up, with a teacher, a group and a student."""
    for verb in (
        ("user", "add", "901", "--role", "trainer", "--locale", "en", "--contact", f"sms:{TEACHER}"),
        ("user", "add", "902", "--locale", "en", "--email", "boris@example.org", "--contact", f"sms:{STUDENT}"),
        ("group", "add", "g901", "--title", "ИВТ-101", "--member", "902"),
        ("owner", "add", "901", "group:g901"),
    ):
        running.result(*verb)
    return running


def write(installation: Installation, channel: str, address: str, written: str) -> Any:
    body = json.dumps({"address": address if channel == "sms" else int(address), "text": written}).encode()
    page = (installation.facts() or {})["inbox"]
    with urlopen(Request(f"{page}write/{channel}", body, {"Content-Type": "application/json"})) as response:
        return json.load(response)


def received(installation: Installation, channel: str, address: str) -> list[str]:
    page = (installation.facts() or {})["inbox"]
    with urlopen(f"{page}inbox.json?channel={channel}&address={quote(address)}") as response:
        return [message["text"] for message in json.load(response)["messages"]]


def test_a_person_writes_an_sms_on_the_inbox_page_and_the_group_gets_it(with_people: Installation) -> None:
    assert (with_people.facts() or {})["bots"] == "vk, max, sms, telegram"
    assert write(with_people, "sms", TEACHER, "ИВТ-101 Пары не будет") == {"status": 200}
    await_sync(lambda: received(with_people, "sms", STUDENT) == ["Пары не будет"], what="the SMS")
    accepted, result = "Accepted. ИВТ-101, recipients: 1.", "Result. ИВТ-101: everybody was reached, 1 of 1."
    await_sync(lambda: received(with_people, "sms", TEACHER) == [accepted, result], what="answer and result")


def test_a_person_links_vk_by_a_mailed_code(with_people: Installation) -> None:
    write(with_people, "vk", CHAT, "/start")
    await_sync(lambda: len(received(with_people, "vk", CHAT)) == 1, what="the greeting")
    write(with_people, "vk", CHAT, "boris@example.org")
    await_sync(lambda: received(with_people, "email", "boris@example.org") != [], what="the mail")
    (mail,) = received(with_people, "email", "boris@example.org")
    code = next(word.strip(".,") for word in mail.split() if len(word.strip(".,")) == 6 and word.strip(".,").isupper())
    write(with_people, "vk", CHAT, code.lower())
    linked = "Done, 902: this chat is connected with you.\nYou get the messages of your university here."
    await_sync(lambda: received(with_people, "vk", CHAT)[-1].startswith(linked), what="the answer")


def test_a_killed_bot_goes_on_where_it_ended(with_people: Installation) -> None:
    before = len(received(with_people, "vk", "200003"))
    os.kill(with_people.child("cli bot vk"), signal.SIGKILL)
    write(with_people, "vk", "200003", "/help")  # while no process polls
    await_sync(lambda: len(received(with_people, "vk", "200003")) == before + 1, what="the answer")
