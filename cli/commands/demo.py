"""The verb demo: everything started for one message, shown as it happens, checked at the end, stopped again.

It never touches what is set on this machine: no setting, no credential and no data of the caller's is used.
Exit code 0 only if the history says that everybody was reached, and the sandbox's inbox holds what was sent, letter for
letter.
"""

import asyncio
import os
import tempfile
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cli.client import format_history as report
from cli.client.http_client import Answer, Api, connected
from cli.command import GOOD, NO, Command, declare_nothing
from cli.commands.deliveries import path_of, show_answer
from cli.commands.up import CHANNELS, Running, everything, text_line, until_stopped
from cli.processes.startup import stop_requested
from cli.settings.settings import Configuration, load
from cli.settings.sources import PREFIX

TEXT = 'Моей пары сегодня не будет: «Сети», ауд. 42 {"замена": [1, 2]} 🙂'

PEOPLE: Mapping[str, Mapping[str, str]] = {
    "Анна": {"telegram": "100001", "vk": "200001", "sms": "+79990000001"},
    "Борис": {"telegram": "100002", "sms": "+79990000002"},
    "Вера": {"vk": "200003"},
    "Глеб": {"sms": "+79990000004"},
}


def run(arguments: Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="ada-demo-") as directory:
        return asyncio.run(show(apart(Path(directory)), arguments.json))


def apart(directory: Path) -> Configuration:
    """A configuration that knows nothing of the caller's; the parts inherit environment and directory from us."""
    for name in [name for name in os.environ if name.startswith(PREFIX)]:
        del os.environ[name]
    os.chdir(directory)
    os.environ |= {"ADA_HTTP": "127.0.0.1:0", "ADA_QUIET_HOURS": "off", "ADA_LOG_LEVEL": "warning"}
    return load(os.environ, directory)


async def show(configuration: Configuration, as_json: bool) -> int:
    return await until_stopped(stop_requested(), deliver(configuration, as_json))


async def deliver(configuration: Configuration, as_json: bool) -> int:
    said = quiet if as_json else text_line
    said("demo", "starting Valkey, the sandbox, the API and three couriers")
    async with everything(configuration, said) as running, connected(running.http, running.api_key) as api:
        accepted = await api.call("POST", "/v1/deliveries", order())
        said("demo", f"sent “{TEXT}” to {len(PEOPLE)} people: {accepted['history_key']}")
        await follow(api, accepted["id"], as_json)
        history = await api.call("GET", path_of(accepted["id"]))
        received = await inbox(running)
        show_answer({"history": history, "received": received}, as_json, f"\n{report.whole(history)}\n")
    good = holds(history, received)
    said("demo", "stopped" if good else "FAILED: not everybody got it, once, on every channel, as it was written")
    return GOOD if good else NO


def quiet(part: str, line: str) -> None:
    """In JSON the answer is all that is said."""


def order() -> dict[str, Any]:
    people = [{"id": number, "name": name, "contacts": to} for number, (name, to) in enumerate(PEOPLE.items(), 1)]
    sender = {"id": 42, "name": "Иванов И. И.", "role": "trainer"}
    return {"sender": sender, "text": TEXT, "recipients": people, "origin": "demo", "channels": list(CHANNELS)}


async def follow(api: Api, delivery: str, as_json: bool) -> None:
    names = dict(enumerate(PEOPLE, 1))
    async for event in api.events(f"{path_of(delivery)}/events"):
        data = {**event.data, "recipient": names.get(event.data.get("recipient", 0), "")}
        if not as_json:
            text_line("tracker", report.change(event.name, data))


async def inbox(running: Running) -> list[Answer]:
    """What the people of the sandbox have received."""
    async with connected(str(running.inbox), "") as sandbox:
        messages: list[Answer] = (await sandbox.call("GET", "/inbox.json"))["messages"]
    return messages


def holds(history: Answer, received: list[Answer]) -> bool:
    """Whether everybody got it, once, on every channel he has, as it was written."""
    expected = sorted((channel, address, TEXT) for to in PEOPLE.values() for channel, address in to.items())
    arrived = sorted((one["channel"], one["address"], one["text"]) for one in received)
    complete = history["state"] == "finished" and history["verdict"] == "all_reached"
    return complete and arrived == expected


COMMANDS: Mapping[str, Command] = {"demo": Command(declare_nothing, run)}
