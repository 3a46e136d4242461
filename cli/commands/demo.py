"""The verb demo: starts everything, sends one message, shows its progress, checks the result, stops everything.

It uses no settings, credentials or data of the caller.
Exit code 0 only if the history says that all recipients were reached and the sandbox's inbox contains exactly the text.
"""

import asyncio
import os
import tempfile
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cli.client.format_history import format_event, format_history
from cli.client.http_client import HttpClient, JsonObject, connect
from cli.command import FAILURE, SUCCESS, Command, no_arguments
from cli.commands.deliveries import delivery_path, print_result
from cli.commands.up import CHANNELS, Installation, print_text_line, run_until, start_everything
from cli.processes.startup import stop_requested
from cli.settings.settings import Configuration, load
from cli.settings.sources import PREFIX

TEXT = 'Моей пары сегодня не будет: «Сети», ауд. 42 {"замена": [1, 2]} 🙂'

PEOPLE: Mapping[str, Mapping[str, str]] = {
    "Анна": {"telegram": "100001", "vk": "200001", "sms": "+79990000001", "email": "anna@example.org"},
    "Борис": {"telegram": "100002", "sms": "+79990000002"},
    "Вера": {"vk": "200003"},
    "Глеб": {"sms": "+79990000004", "telegram-bot": "100004"},
    "Дарья": {"email": "darya@example.org"},
}


def run(arguments: Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="ada-demo-") as directory:
        return asyncio.run(demo(isolated_configuration(Path(directory)), arguments.json))


def isolated_configuration(directory: Path) -> Configuration:
    """A configuration without the caller's settings. The children inherit our environment and working directory."""
    for name in [name for name in os.environ if name.startswith(PREFIX)]:
        del os.environ[name]
    os.chdir(directory)
    os.environ |= {"ADA_HTTP": "127.0.0.1:0", "ADA_QUIET_HOURS": "off", "ADA_LOG_LEVEL": "warning"}
    return load(os.environ, directory)


async def demo(configuration: Configuration, as_json: bool) -> int:
    return await run_until(stop_requested(), deliver(configuration, as_json))


async def deliver(configuration: Configuration, as_json: bool) -> int:
    print_line = print_nothing if as_json else print_text_line
    print_line("demo", "starting Valkey, the sandbox, the API and a courier for each channel")
    async with (
        start_everything(configuration, print_line) as installation,
        connect(installation.http, installation.api_key) as api,
    ):
        accepted = await api.call("POST", "/v1/deliveries", delivery())
        print_line("demo", f"sent “{TEXT}” to {len(PEOPLE)} recipients: {accepted['history_key']}")
        await follow(api, accepted["id"], as_json)
        history = await api.call("GET", delivery_path(accepted["id"]))
        received = await inbox(installation)
        print_result({"history": history, "received": received}, as_json, f"\n{format_history(history)}\n")
    good = is_complete(history, received)
    print_line("demo", "stopped" if good else "FAILED: not every recipient got the exact text once on every channel")
    return SUCCESS if good else FAILURE


def print_nothing(process: str, line: str) -> None:
    """With `--json` only the result is printed."""


def delivery() -> dict[str, Any]:
    recipients = [
        {"id": number, "name": name, "contacts": contacts} for number, (name, contacts) in enumerate(PEOPLE.items(), 1)
    ]
    sender = {"id": 42, "name": "Иванов И. И.", "role": "trainer"}
    return {"sender": sender, "text": TEXT, "recipients": recipients, "origin": "demo", "channels": list(CHANNELS)}


async def follow(api: HttpClient, delivery_id: str, as_json: bool) -> None:
    names = dict(enumerate(PEOPLE, 1))
    async for event in api.events(f"{delivery_path(delivery_id)}/events"):
        data = {**event.data, "recipient": names.get(event.data.get("recipient", 0), "")}
        if not as_json:
            print_text_line("tracker", format_event(event.name, data))


async def inbox(installation: Installation) -> list[JsonObject]:
    """The messages that the sandbox has received."""
    async with connect(str(installation.inbox), "") as sandbox:
        messages: list[JsonObject] = (await sandbox.call("GET", "/inbox.json"))["messages"]
    return messages


def is_complete(history: JsonObject, received: list[JsonObject]) -> bool:
    """Whether every recipient got the exact text once on each of their channels."""
    expected = sorted((channel, address, TEXT) for contacts in PEOPLE.values() for channel, address in contacts.items())
    arrived = sorted((message["channel"], message["address"], message["text"]) for message in received)
    all_reached = history["state"] == "finished" and history["verdict"] == "all_reached"
    return all_reached and arrived == expected


COMMANDS: Mapping[str, Command] = {"demo": Command(no_arguments, run)}
