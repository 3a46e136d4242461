"""The bots that `./ada up` starts beside the sandbox: people write on the inbox page's API and get answers."""

import json
import os
import signal
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote
from urllib.request import Request, urlopen

import pytest

from bots.catalogue import text
from tests.cli.installation import Installation, new_installation
from tests.support.servers import await_sync

pytestmark = pytest.mark.timeout(240)

TEACHER, STUDENT = "+79990000001", "+79990000002"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """An installation that is up, with a teacher, a group and a student."""
    for installation in new_installation(tmp_path_factory.mktemp("running")):
        installation.up()
        for verb in (
            ("user", "add", "1", "--role", "trainer", "--locale", "en", "--contact", f"sms:{TEACHER}"),
            ("user", "add", "2", "--locale", "en", "--email", "boris@example.org", "--contact", f"sms:{STUDENT}"),
            ("group", "add", "g1", "--title", "ИВТ-101", "--member", "2"),
            ("owner", "add", "1", "group:g1"),
        ):
            installation.result(*verb)
        yield installation


def write(installation: Installation, channel: str, address: str, written: str) -> Any:
    body = json.dumps({"address": address if channel == "sms" else int(address), "text": written}).encode()
    page = (installation.facts() or {})["inbox"]
    with urlopen(Request(f"{page}write/{channel}", body, {"Content-Type": "application/json"})) as response:
        return json.load(response)


def received(installation: Installation, channel: str, address: str) -> list[str]:
    page = (installation.facts() or {})["inbox"]
    with urlopen(f"{page}inbox.json?channel={channel}&address={quote(address)}") as response:
        return [message["text"] for message in json.load(response)["messages"]]


@pytest.mark.row("D-24", "D-43")
def test_a_person_writes_an_sms_on_the_inbox_page_and_the_group_gets_it(running: Installation) -> None:
    assert (running.facts() or {})["bots"] == "telegram, vk, max, sms"
    assert write(running, "sms", TEACHER, "ИВТ-101 Пары не будет") == {"status": 200}
    await_sync(lambda: received(running, "sms", STUDENT) == ["Пары не будет"], within=20, what="the SMS")
    accepted = text("written_sent", "en", name="ИВТ-101", people=1)
    result = text("result_everybody_reached", "en", name="ИВТ-101", people=1, reached=1)
    await_sync(lambda: received(running, "sms", TEACHER) == [accepted, result], within=30, what="answer and result")


@pytest.mark.row("D-28", "D-43")
def test_a_person_links_vk_by_a_mailed_code(running: Installation) -> None:
    write(running, "vk", "200002", "/start")
    await_sync(lambda: len(received(running, "vk", "200002")) == 1, within=20, what="the greeting")
    write(running, "vk", "200002", "boris@example.org")
    await_sync(lambda: received(running, "email", "boris@example.org") != [], within=20, what="the mail")
    (mail,) = received(running, "email", "boris@example.org")
    code = next(word.strip(".,") for word in mail.split() if len(word.strip(".,")) == 6 and word.strip(".,").isupper())
    write(running, "vk", "200002", code.lower())
    linked = text("link_done", "en", name=2, help=text("written_help_student", "en"))
    await_sync(lambda: received(running, "vk", "200002")[-1] == linked, within=20, what="the answer")


def test_a_killed_bot_goes_on_where_it_ended(running: Installation) -> None:
    before = len(received(running, "vk", "200003"))
    os.kill(running.child("cli bot vk"), signal.SIGKILL)
    write(running, "vk", "200003", "/help")  # while no process polls
    await_sync(lambda: len(received(running, "vk", "200003")) == before + 1, within=60, what="the answer")
