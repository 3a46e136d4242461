"""What the dialog says, word for word, as files: `» ` is what a person writes, `» [Label]` a press, `« ` a message that
comes then, `✎ ` the last message as it is then.

A line of labels in brackets stands under a message with buttons, `! ` before what is shown over the chat. `⏎` begins a
new line of what a person writes, and AHEAD is a time to come. A bot that takes the place of the dialog has to say the
same.
"""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

import pytest

from core.model.delivery import Quota
from couriers.max import courier as max_courier
from couriers.max.client import MaxClient
from couriers.max.courier import Settings
from couriers.max.receive import MaxCalls, MaxLongPoll
from sandbox.max import MaxServer
from sandbox.state import SandboxState
from tests.sandbox.bot_api_clients import BotApi
from tests.scenarios.teacher.chat import STRANGER, STUDENT, TEACHER, School, labels, open_school
from tests.support.moments import AHEAD
from tests.support.receiving import answering, polled
from tests.support.serving import serving
from tests.support.stack import TENANT, Stack
from tests.support.waiting import until

FOLDER = Path(__file__).parent / "transcripts"
PEOPLE = {"teacher": TEACHER, "student": STUDENT, "stranger": STRANGER, "asking": TEACHER}
ONE_A_DAY = {"trainer": Quota(1, timedelta(days=1))}
Shown = tuple[str, list[str]]
"""A message as it is now, and the labels of its buttons."""


class Chats(Protocol):
    """The chats of people with the bot in one messenger."""

    school: School

    def write(self, written: str, user: int) -> None: ...

    async def press(self, label: str, user: int) -> str:
        """Press the newest button with this label; return what is shown over the chat."""

    def messages(self, user: int) -> list[Shown]:
        """The messages of the bot, oldest first."""


class TelegramChats:
    def __init__(self, school: School) -> None:
        self.school = school

    def write(self, written: str, user: int) -> None:
        self.school.write(written, user)

    async def press(self, label: str, user: int) -> str:
        return await self.school.notice(label, user)

    def messages(self, user: int) -> list[Shown]:
        return [(one["text"], labels(one)) for one in self.school.messages(user)]


class MaxChats:
    def __init__(self, school: School, server: MaxServer) -> None:
        self.school = school
        self._people = server.people

    def write(self, written: str, user: int) -> None:
        self._people.write(user, written)

    async def press(self, label: str, user: int) -> str:
        pressed = next(one for one in reversed(self._messages(user)) if label in _labels(one))
        self._people.press(user, pressed["id"], label)
        return ""  # a notice is a message

    def messages(self, user: int) -> list[Shown]:
        return [(one["text"], _labels(one)) for one in self._messages(user)]

    def _messages(self, user: int) -> list[dict[str, Any]]:
        return [one for one in self._people.shown(user)["messages"] if one["from"] == "bot"]


def _labels(message: dict[str, Any]) -> list[str]:
    return [one["text"] for row in message["buttons"] for one in row]


@asynccontextmanager
async def telegram(stack: Stack, bot_api: BotApi, folder: Path, language: str) -> AsyncIterator[Chats]:
    school = await open_school(stack, bot_api, folder, quotas=ONE_A_DAY, language=language)
    async with school.running():
        yield TelegramChats(school)


@asynccontextmanager
async def in_max(stack: Stack, bot_api: BotApi, folder: Path, language: str) -> AsyncIterator[Chats]:
    school = await open_school(stack, bot_api, folder, quotas=ONE_A_DAY, language=language)
    async with serving(MaxServer(SandboxState(), polls_per_second=1000)) as server:
        await stack.courier(await max_courier.open(Settings(server.token, server.url), folder / "max"))
        await school.directory.users.add_contact(TENANT, 1, "max", str(TEACHER))
        client = MaxClient(server.token, server.url)
        source = MaxLongPoll(client, spacing=0.01)
        async with polled(stack.store, "max", source, MaxCalls(client).make), answering(school.core, school.options):
            yield MaxChats(school, server)
        await client.close()


PLAYS = [
    *((telegram, f"{name}_{language}") for name in PEOPLE for language in ("en", "ru")),
    (in_max, "teacher_ru"),
    (in_max, "asking_ru"),
]


def steps(transcript: str) -> list[tuple[str, str]]:
    """What the person does, with what the bot shows then."""
    found = re.split(r"^» (.*)\n", transcript, flags=re.MULTILINE)[1:]
    return [(act, shown.strip("\n")) for act, shown in zip(found[::2], found[1::2], strict=True)]


@dataclass
class Reader:
    """A person and its chat, which had `before` messages when the person wrote or pressed the last time."""

    chats: Chats
    user: int
    before: int = 0
    notice: str = ""

    async def act(self, what: str) -> None:
        """Write or press."""
        self.before, self.notice = len(self.chats.messages(self.user)), ""
        if what.startswith("["):
            self.notice = await self.chats.press(what.strip("[]"), self.user)
            return
        code = self.chats.school.outbox.codes[-1] if "CODE" in what else ""
        self.chats.write(what.replace("CODE", code).replace("⏎", "\n"), self.user)

    def sees(self) -> str:
        """The new messages, else the last one; and what is shown over the chat."""
        messages = self.chats.messages(self.user)
        lines = [f"« {_with_buttons(one)}" for one in messages[self.before :]]
        lines = lines or [f"✎ {_with_buttons(one)}" for one in messages[-1:]]
        return "\n".join([*lines, *([f"! {self.notice}"] if self.notice else [])])


def _with_buttons(message: Shown) -> str:
    text, buttons = message
    return "\n".join([text, *([" ".join(f"[{label}]" for label in buttons)] if buttons else [])])


@pytest.mark.parametrize(("opened", "name"), PLAYS, ids=[f"{opened.__name__} {name}" for opened, name in PLAYS])
async def test_the_dialog_says_what_the_transcript_has(
    stack: Stack, bot_api: BotApi, tmp_path: Path, opened: Any, name: str
) -> None:
    expected = steps((FOLDER / f"{name}.txt").read_text(encoding="utf-8").replace("AHEAD", AHEAD))
    assert expected
    person, _, language = name.partition("_")
    async with opened(stack, bot_api, tmp_path, language) as chats:
        reader = Reader(chats, PEOPLE[person])
        for what, shown in expected:
            await reader.act(what)
            try:
                await until(lambda: reader.sees() == shown, within=20)  # noqa: B023 - awaited at once
            except AssertionError:
                assert reader.sees() == shown, f"after {what}"
