"""Real processes of a bot with scenarios: the process that polls is killed between the photos of an album."""

import re
from pathlib import Path
from typing import Any

from cli.processes.supervisor import read_announcement
from sandbox.bot_api.state.parameters import Upload
from sandbox.sandbox import Sandbox
from tests.sandbox.bot_api_clients import session
from tests.scenarios.teacher.chat import TEACHER
from tests.support.servers import Server
from tests.support.waiting import until
from tests.support.whole_aiogram import Bot
from tests.system.crash.installation import Installation

PHOTO = Upload("a.jpg", "image/jpeg", b"\xff\xd8")
LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \S")
FILES = {
    "triggers.yaml": 'text:\n  exact: {"/start": menu.start}\n  "*": menu.other\n',
    "bot.yaml": "commands: [{command: start, description: Меню}]\n",
    "scenarios/menu.yaml": """
start: {actions: [{type: send, text: "Hello"}]}
other: {actions: [{type: send, text: "{event_text}: {attachments|length}"}]}
""",
}


class Chat:
    """What the person does and sees."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.people = sandbox.bot_api.people
        self.server = sandbox.bot_api

    def texts(self) -> list[str]:
        return [one["text"] for one in self.people.shown(TEACHER)["messages"] if one["from"] == "bot"]

    async def reads(self, *texts: str) -> None:
        """Wait until the bot has sent exactly these texts."""
        await until(lambda: self.texts() == list(texts), within=60)

    def photo(self, **more: Any) -> None:
        self.people.send_file(TEACHER, "photo", PHOTO, media_group_id="5", **more)

    async def commands(self) -> list[str]:
        bot = Bot(self.server.token, session=session(self.server))
        try:
            return [command.command for command in await bot.get_my_commands()]
        finally:
            await bot.session.close()


def check_log(output: str, token: str) -> None:
    """Every line has a time, or announces that the process is ready."""
    lines = [line for line in output.splitlines() if read_announcement(line) is None]
    assert [line for line in lines if not LINE.match(line)] == []
    assert token not in output


async def test_the_process_that_polls_is_killed_between_the_photos_of_an_album(
    own_server: Server, tmp_path: Path
) -> None:
    folder = tmp_path / "bot"
    for name, content in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")
    sandbox = Sandbox(tmp_path / "sandbox")
    await sandbox.start()
    installation = await Installation.open(own_server, sandbox, tmp_path)
    try:
        settings = {"ADA_SCENARIOS": str(folder), "ADA_QUIET_HOURS": "off"}
        chat, bot = Chat(sandbox), installation.start("bot", "telegram", **settings)
        processes = [installation.start("scenarios", **settings), installation.start("courier", "telegram-bot")]
        for process in (bot, *processes):
            await process.ready()
        chat.people.write(TEACHER, "/start")
        await chat.reads("Hello")
        polled = sandbox.state.counter("telegram-bot", "getUpdates")
        chat.photo(caption="trip")
        await until(lambda: sandbox.state.counter("telegram-bot", "getUpdates") > polled)
        bot.kill()
        chat.photo()
        installation.start("bot", "telegram", **settings)
        await chat.reads("Hello", "trip: 2")
        await until(chat.commands)
        assert await chat.commands() == ["start"]
        (folder / "scenarios" / "menu.yaml").write_text(FILES["scenarios/menu.yaml"].replace("Hello", "Good morning"))
        await until(lambda: "is active" in processes[0].output)
        chat.people.write(TEACHER, "/start")
        await chat.reads("Hello", "trip: 2", "Good morning")
        for process in (bot, *processes):
            check_log(process.output, sandbox.bot_api.token)
    finally:
        await installation.close()
        await sandbox.stop()
