"""The verb demo: starts everything, plays, checks what arrived, stops. It uses no settings, credentials or data of the
caller.

`demo`: sends one message, and lets a teacher write from a chat. Exit code 0 only if both histories say that all
recipients were reached and the sandbox's inbox contains exactly the texts.
`demo jobs`: long-running jobs of users work, and are killed (`demo_jobs`). Exit code 0 only if nothing was done twice.
`demo scenarios`: people use a bot that is written in YAML (`demo_scenarios`). Exit code 0 only if it did all it should.
"""

import asyncio
import os
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bots import catalogue
from cli.client.format_history import format_event, format_history
from cli.client.http_client import HttpClient, JsonObject, connect
from cli.client.sandbox_chat import SandboxChat, mailed_code
from cli.command import FAILURE, SUCCESS, Command
from cli.commands import demo_jobs, demo_scenarios
from cli.commands.deliveries import delivery_path, print_result
from cli.commands.up import CHANNELS, print_text_line, run_until, start_everything
from cli.processes.startup import stop_requested
from cli.processes.supervisor import PrintLine
from cli.settings.settings import Configuration, load
from cli.settings.sources import PREFIX
from examples import JOB_HUNTER, SCHOOL_BOT

TEXT = 'Моей пары сегодня не будет: «Сети», ауд. 42 {"замена": [1, 2]} 🙂'

PEOPLE: Mapping[str, Mapping[str, str]] = {
    "Анна": {"telegram": "100001", "vk": "200001", "sms": "+79990000001", "email": "anna@example.org"},
    "Борис": {"telegram": "100002", "sms": "+79990000002"},
    "Вера": {"vk": "200003"},
    "Глеб": {"sms": "+79990000004", "telegram-bot": "100004"},
    "Дарья": {"email": "darya@example.org"},
}

TEACHER = {"id": 42, "name": "Иванов И. И.", "role": "trainer"}
EMAIL, ADDRESS = "ivanov@example.org", 100_042
"""Of the teacher: for the code, and in the chat with the bot."""

GROUP, MEMBERS = "ИВТ-21", (1, 2, 3)
CHAT_TEXT = "Завтра собираемся в 9:00"


def declare(parser: ArgumentParser) -> None:
    parser.add_argument("play", nargs="?", choices=PLAYS, default="delivery", help="what is shown (delivery)")


def run(arguments: Namespace) -> int:
    play = PLAYS[arguments.play]
    with tempfile.TemporaryDirectory(prefix="ada-demo-") as directory:
        return asyncio.run(show(play, isolated_configuration(Path(directory), play.settings), arguments.json))


def isolated_configuration(directory: Path, settings: Mapping[str, str]) -> Configuration:
    """A configuration without the caller's settings. The children inherit our environment and working directory."""
    for name in [name for name in os.environ if name.startswith(PREFIX)]:
        del os.environ[name]
    os.chdir(directory)
    os.environ |= {"ADA_HTTP": "127.0.0.1:0", "ADA_QUIET_HOURS": "off", "ADA_LOG_LEVEL": "warning", **settings}
    return load(os.environ, directory)


async def show(play: "Play", configuration: Configuration, as_json: bool) -> int:
    return await run_until(stop_requested(), play.show(configuration, as_json))


async def deliver(configuration: Configuration, as_json: bool) -> int:
    print_line = print_nothing if as_json else print_text_line
    print_line("demo", "starting Valkey, the sandbox, the API, the bots and a courier for each channel")
    async with (
        start_everything(configuration, print_line) as installation,
        connect(installation.http, installation.api_key) as api,
        connect(str(installation.inbox), "") as sandbox,
    ):
        history = await send_to_people(api, as_json)
        received = await inbox(sandbox)
        from_chat = await play_dialog(api, sandbox, print_line)
        from_chat_received = [message for message in await inbox(sandbox) if message["text"] == CHAT_TEXT]
        result = {"history": history, "received": received, "chat": from_chat}
        print_result(result, as_json, f"\n{format_history(history)}\n\n{format_history(from_chat)}\n")
    members = {name: contacts for number, (name, contacts) in enumerate(PEOPLE.items(), 1) if number in MEMBERS}
    good = is_complete(history, received, TEXT, PEOPLE) and is_complete(
        from_chat, from_chat_received, CHAT_TEXT, members
    )
    print_line("demo", "stopped" if good else "FAILED: not every recipient got the exact text once on every channel")
    return SUCCESS if good else FAILURE


async def send_to_people(api: HttpClient, as_json: bool) -> JsonObject:
    """Sends to people with their contacts; shows the outcomes as they come; returns the history."""
    print_line = print_nothing if as_json else print_text_line
    accepted = await api.call("POST", "/v1/deliveries", delivery())
    print_line("demo", f"sent “{TEXT}” to {len(PEOPLE)} recipients: {accepted['history_key']}")
    await follow(api, accepted["id"], as_json)
    return await api.call("GET", delivery_path(accepted["id"]))


def print_nothing(process: str, line: str) -> None:
    """With `--json` only the result is printed."""


def delivery() -> dict[str, Any]:
    recipients = [
        {"id": number, "name": name, "contacts": contacts} for number, (name, contacts) in enumerate(PEOPLE.items(), 1)
    ]
    return {"sender": TEACHER, "text": TEXT, "recipients": recipients, "origin": "demo", "channels": list(CHANNELS)}


async def follow(api: HttpClient, delivery_id: str, as_json: bool) -> None:
    names = dict(enumerate(PEOPLE, 1))
    async for event in api.events(f"{delivery_path(delivery_id)}/events"):
        data = {**event.data, "recipient": names.get(event.data.get("recipient", 0), "")}
        if not as_json:
            print_text_line("tracker", format_event(event.name, data))


# the chat


async def play_dialog(api: HttpClient, sandbox: HttpClient, print_line: PrintLine) -> JsonObject:
    """A teacher links its chat with the bot and writes to a group; returns the history."""
    await fill_directory(api)
    print_line("demo", f"the teacher writes to the group {GROUP} from a chat with the bot")
    chat = SandboxChat(sandbox, ADDRESS, "Иванов", print_line)
    await chat.write("/start")
    await chat.write(EMAIL)
    await chat.write(await mailed_code(sandbox, EMAIL))
    await chat.write("/select")
    await chat.press(GROUP)
    await chat.press(label("button_done"))
    await chat.write(CHAT_TEXT)
    await chat.press(label("button_now"))
    await chat.press(label("button_send"))
    await chat.read(f"email: {label('count_sent')} 1")
    return await newest_of_teacher(api)


async def fill_directory(api: HttpClient) -> None:
    """The people, a group, and the teacher who may write to it."""
    for number, (name, contacts) in enumerate(PEOPLE.items(), 1):
        await api.call("POST", "/v1/users", {"id": number, "name": name, "contacts": contacts})
    await api.call("POST", "/v1/users", {**TEACHER, "email": EMAIL})
    await api.call("POST", "/v1/groups", {"id": GROUP, "title": GROUP, "members": MEMBERS})
    await api.call("PUT", f"/v1/ownerships/{TEACHER['id']}/group/{quote(GROUP)}")


def label(name: str) -> str:
    """What the bot writes on a button, or in a message, in the language of the teacher."""
    return catalogue.text(name, "ru")


async def newest_of_teacher(api: HttpClient) -> JsonObject:
    """The history of the teacher's last delivery."""
    newest = (await api.call("GET", f"/v1/deliveries?sender={TEACHER['id']}"))["deliveries"][0]
    return await api.call("GET", delivery_path(newest["id"]))


# the check


async def inbox(sandbox: HttpClient) -> list[JsonObject]:
    """The messages that the sandbox has received."""
    messages: list[JsonObject] = (await sandbox.call("GET", "/inbox.json"))["messages"]
    return messages


def is_complete(
    history: JsonObject, received: list[JsonObject], text: str, people: Mapping[str, Mapping[str, str]]
) -> bool:
    """Whether these people, and no others, got the exact text once on each of their channels."""
    expected = sorted((channel, address, text) for contacts in people.values() for channel, address in contacts.items())
    arrived = sorted((message["channel"], message["address"], message["text"]) for message in received)
    all_reached = history["state"] == "finished" and history["verdict"] == "all_reached"
    return all_reached and arrived == expected


# the bot written in YAML


async def show_scenarios(configuration: Configuration, as_json: bool) -> int:
    """Raises CommandFailed if the bot does not do what it should."""
    print_line = print_nothing if as_json else print_text_line
    print_line("demo", f"starting everything, with the bot of {SCHOOL_BOT}")
    async with (
        start_everything(configuration, print_line) as installation,
        connect(installation.http, installation.api_key) as api,
        connect(str(installation.inbox), "") as sandbox,
    ):
        result = await demo_scenarios.play(demo_scenarios.Stage(api, sandbox, print_line))
        print_result(result, as_json, f"\n{format_history(result['history'])}\n")
    print_line("demo", "stopped; the bot did all it should")
    return SUCCESS


# long-running jobs


async def show_jobs(configuration: Configuration, as_json: bool) -> int:
    """Raises CommandFailed if the jobs do not do what they should."""
    print_line = print_nothing if as_json else print_text_line
    print_line("demo", f"starting everything, with the job of {JOB_HUNTER}")
    async with (
        start_everything(configuration, print_line) as installation,
        connect(installation.http, installation.api_key) as api,
        connect(str(installation.inbox), "") as sandbox,
    ):
        stage = demo_jobs.Stage(api, sandbox, print_line, lambda: installation.supervisor.kill("jobs"))
        result = await demo_jobs.play(stage)
        print_result(result, as_json, "")
    print_line("demo", "stopped; every vacancy was applied to once")
    return SUCCESS


@dataclass(frozen=True)
class Play:
    """What the command shows, and the settings that it needs."""

    show: Callable[[Configuration, bool], Coroutine[Any, Any, int]]
    settings: Mapping[str, str] = field(default_factory=dict)


PLAYS: Mapping[str, Play] = {
    "delivery": Play(deliver),
    "jobs": Play(show_jobs, demo_jobs.SETTINGS),
    "scenarios": Play(show_scenarios, {"ADA_SCENARIOS": str(SCHOOL_BOT)}),
}

COMMANDS: Mapping[str, Command] = {"demo": Command(declare, run)}
