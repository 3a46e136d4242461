"""Dialogs and statuses go on in another process; an attempt that is made again sends nothing twice."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core.directory import Directory
from core.model.people import Group, User
from sandbox.sandbox import Sandbox
from tests.scenarios.teacher.chat import ANNA, TEACHER, VERA, School, english
from tests.support.moments import AHEAD
from tests.support.servers import Server
from tests.support.waiting import until
from tests.system.crash.installation import Installation


async def test_a_dialog_goes_on_after_a_restart_at_each_step(idle_school: School) -> None:
    school = idle_school
    async with school.running():
        await school.select("ИВТ-101")
    async with school.running():
        await school.notice("Done")
    async with school.running():
        await school.answer("hello")
    async with school.running():
        await school.notice("Now")
        await school.shows("People: 3")
    async with school.running():
        await school.notice("Ask for an answer")
        await school.shows(english("ask_what"))
    async with school.running():
        await school.notice("Choose an option")
        await school.shows("Write the options")
    async with school.running():
        assert "Answer: Choose an option\nYes\nNo\n" in await school.answer("Yes\nNo")
    async with school.running():
        await school.notice("Answers until…")
        await school.shows("Until when may people answer?")
    async with school.running():
        assert f"Answers until: {AHEAD}\n" in await school.answer(AHEAD)
    async with school.running():
        await school.notice("Send")
        await school.shows(english("status_all_reached"))
    assert len(school.sms.attempted) == 2


# processes


class Campus:
    """Real processes of the bot and of the courier for SMS."""

    def __init__(self, installation: Installation) -> None:
        self.installation = installation
        self.people = installation.sandbox.bot_api.people

    async def set_up(self) -> None:
        directory = Directory(self.installation.core.store)
        anna = User(ANNA.id, ANNA.name, ANNA.email, ANNA.role, "en", ANNA.contacts)
        for user in (anna, VERA):
            await directory.users.create("default", user)
        await directory.groups.create("default", Group(101, "ИВТ-101"), [VERA.id])
        await directory.ownerships.own("default", ANNA.id, "group", 101)

    def texts(self) -> list[str]:
        return [one["text"] for one in self.people.shown(TEACHER)["messages"] if one["from"] == "bot"]

    async def reads(self, text: str) -> None:
        await until(lambda: any(text in one for one in self.texts()), within=45)

    def press(self, label: str) -> None:
        shown = [one for one in self.people.messages(TEACHER) if label in str(one.get("reply_markup"))]
        self.people.press(TEACHER, int(shown[-1]["message_id"]), label)


@pytest.fixture
async def campus(own_server: Server, tmp_path: Path) -> AsyncIterator[Campus]:
    sandbox = Sandbox(tmp_path / "sandbox")
    await sandbox.start()
    installation = await Installation.open(own_server, sandbox, tmp_path)
    campus = Campus(installation)
    await campus.set_up()
    yield campus
    await installation.close()
    await sandbox.stop()


SETTINGS = {"ADA_QUIET_HOURS": "off"}


async def test_processes_of_the_bot_are_killed_and_the_others_go_on(campus: Campus) -> None:
    installation = campus.installation
    bots = [installation.start("scenarios", **SETTINGS) for _ in range(2)]
    couriers = [installation.start("courier", name, **SETTINGS) for name in ("sms", "telegram-bot")]
    receiving = installation.start("bot", "telegram", **SETTINGS)
    for process in (*bots, *couriers, receiving):
        await process.ready()
    campus.people.write(TEACHER, "/select")
    await campus.reads("Whom do you write to?")
    bots[0].kill()
    campus.press("ИВТ-101")
    await campus.reads("Selected: ИВТ-101")
    campus.press("Done")
    await campus.reads("Write the text.")
    campus.people.write(TEACHER, "hello")
    await campus.reads("When shall it be sent?")
    campus.press("Now")
    await campus.reads("Time: now")
    campus.press("Send")
    bots[1].kill()
    bots.append(installation.start("scenarios", **SETTINGS))
    await campus.reads("Everybody was reached")
    received = [one.text for one in installation.state.inbox("sms", "+79990000003")]
    assert received == ["hello"]
    assert installation.sandbox.bot_api.token not in "".join(bot.output for bot in bots)
