"""What the dialog of teachers answers when a person links a chat and unlinks it, word for word (D-28, D-29).

In the transcripts `## ` begins a case with a person and a chat of its own, `» ` is what the person writes, `« ` the
answer, `~ ` what happens meanwhile.
"""

import re
import shutil
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from core.directory.importing.journal import Journal
from core.directory.linking import ALPHABET, Linking
from core.model.content import EVERY_FEATURE
from core.model.people import User
from couriers.email import LinkCodeMailer
from scenarios.bot.new_bot import TEACHER
from tests.scenarios.execution.conftest import Installation, Running
from tests.support.outbox import Outbox
from tests.support.stack import TENANT, FakeCourier

FOLDER = Path(__file__).parent.parent / "teacher" / "transcripts"
CHANNEL = "telegram-bot"


@dataclass
class Linked:
    """The dialog, and one case after the other. `number`: of the case, its person and its chat."""

    school: Installation
    outbox: Outbox
    importing: Journal
    language: str
    running: Running
    number: int = 0

    @property
    def replaced(self) -> str:
        """The code before the last one."""
        return self.outbox.codes[-2] if len(self.outbox.codes) > 1 else ""

    @property
    def email(self) -> str:
        return f"person{self.number}@example.org"

    async def begin(self) -> None:
        self.number += 1
        self.outbox.is_down = self.outbox.is_refused = False
        await self.school.directory.users.create(
            TENANT, User(self.number, "Анна", self.email, "trainer", self.language, {})
        )

    async def write(self, written: str) -> str:
        """Write; return the answers."""
        address, code = str(1000 + self.number), self.outbox.codes[-1] if self.outbox.codes else ""
        wrong = code[:-1] + next(letter for letter in ALPHABET if letter not in code[-1:])
        typed = f" {code[:3]}-{code[3:]}".lower()
        shown = {"{email}": self.email, "{code}": code, "{wrong}": wrong, "{typed}": typed, "{replaced}": self.replaced}
        text = re.sub(r"{\w+}", lambda found: shown[found[0]], written).replace("\\n", "\n")
        before = len(self.school.courier.attempted)
        event = {"channel": CHANNEL, "user_id": address, "chat_id": address, "language_code": self.language}
        await self.school.play(text, **event)
        answers = [one.text for one in self.school.courier.attempted[before:] if one.address == address]
        return "\n".join(f"« {one.replace(self.email, '{email}')}" for one in answers)

    async def happens(self, what: str) -> None:
        match what:
            case "the mail server is down":
                self.outbox.is_down = True
            case "the mail server refuses the address":
                self.outbox.is_refused = True
            case "25 minutes pass":
                await self.school.pass_time(timedelta(minutes=25))
            case "no mail server is set up":
                await self.running.stop()
                self.school.options = {"linking": Linking(self.school.stack.store, self.school.directory, None)}
                self.running = await self.school.start()
            case "an import runs":
                await self.importing.begin("users", 1)
            case "the import is over":
                await self.importing.abort()
            case _:
                raise AssertionError(what)


@pytest.mark.parametrize("language", ["en", "ru"])
async def test_each_answer_of_linking_is_that_of_the_transcript(bare: Installation, language: str) -> None:
    expected = (FOLDER / f"linking_{language}.txt").read_text(encoding="utf-8")
    linked, played = await opened(bare, language), list[str]()
    for line in expected.splitlines():
        match line[:2]:
            case "##":
                await linked.begin()
            case "» ":
                played += [line, await linked.write(line[2:])]
                continue
            case "~ ":
                await linked.happens(line[2:])
            case _:
                continue
        played.append(line)
    assert "\n".join(played) + "\n" == expected


async def opened(school: Installation, language: str) -> Linked:
    school.courier = FakeCourier(CHANNEL, shows=EVERY_FEATURE)
    await school.start_courier()
    shutil.copytree(TEACHER, school.folder, dirs_exist_ok=True)
    outbox = Outbox()
    school.options = {"linking": Linking(school.stack.store, school.directory, LinkCodeMailer(outbox))}
    importing = Journal(school.stack.store, TENANT)
    return Linked(school, outbox, importing, language, await school.start())
