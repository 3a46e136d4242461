"""The verb up: everything in one process tree, until Ctrl-C (`cli.commands.start.installation`). It prints a line for
each event, with its time and the process.
"""

import asyncio
import json
import re
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from dataclasses import dataclass

from cli.client.own_server import get_or_create_api_key, key_file
from cli.command import SUCCESS, Command
from cli.commands.start.installation import Installation, start_everything
from cli.processes.startup import run_until, stop_requested
from cli.processes.supervisor import READY_LINE
from cli.services.answering import answering
from cli.settings.parsing import without_secrets
from cli.settings.secrets import BOT
from cli.settings.settings import Configuration, Settings, load

LOGGED = re.compile(r"\d{4}-\d\d-\d\d (\d\d:\d\d:\d\d) ")
"""The begin of a line that a child has logged."""


@dataclass
class EventLines:
    """Prints a line of a process. For people, that it is ready is news only once Ada `is_up`: the summary says it."""

    as_json: bool
    is_up: bool = False

    def __call__(self, process: str, line: str) -> None:
        if self.as_json:
            print(json.dumps({"part": process, "line": line}, ensure_ascii=False), flush=True)
        elif self.is_up or line != READY_LINE:
            print_text_line(process, line)


def print_text_line(process: str, line: str) -> None:
    """Print the time in front of every line, without the date that a child's line has."""
    logged = LOGGED.match(line)
    moment = logged[1] if logged else time.strftime("%H:%M:%S")
    print(f"{moment} {process:>12} | {line.removeprefix(logged[0] if logged else 'ada: ')}", flush=True)


def declare(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--show-key", action="store_true", help="print the first API key, not only the place of its file"
    )


def run(arguments: Namespace) -> int:
    return asyncio.run(up(load(), arguments))


async def up(configuration: Configuration, arguments: Namespace) -> int:
    print_line = EventLines(arguments.json)
    print_line("up", "starting")
    work = run_forever(configuration, print_line, arguments)
    code = await run_until(stop_requested(), work, lambda: print_line("up", STOPPING))
    print_line("up", "stopped")
    return code


async def run_forever(configuration: Configuration, print_line: EventLines, arguments: Namespace) -> int:
    async with start_everything(configuration, print_line) as installation:
        print_summary(installation, place_of_key(configuration.settings, shown=arguments.show_key), arguments.json)
        print_line.is_up = True
        await asyncio.Event().wait()
    return SUCCESS


STOPPING = "stopping; couriers finish what they are sending"


def place_of_key(settings: Settings, *, shown: bool) -> dict[str, str | None]:
    """Return the file of the first API key, None with ADA_API_KEY; with `shown` also the key, which else stays out of
    logs."""
    place = {"key": get_or_create_api_key(settings)} if shown else {}
    return {**place, "key_file": None if settings.api_key else str(key_file(settings))}


def print_summary(installation: Installation, key: Mapping[str, str | None], as_json: bool) -> None:
    """Print the addresses and the place of the API key: all that a user needs to send the first message."""
    shown = summary(installation, key)
    if as_json:
        print(json.dumps({"ready": shown}, ensure_ascii=False), flush=True)
        return
    shown["redis"] = f"{shown['redis']} (with its password: ./ada redis-url)"
    lines = [f"{name.replace('_', ' '):<12} {value}" for name, value in shown.items() if value]
    lines += [f"{channel:<12} {reason}" for channel, reason in installation.not_ready.items()]
    print("\n".join(["", "Ada is up. Ctrl-C stops it.", *(f"  {line}" for line in lines), ""]), flush=True)
    print(SANDBOX_HINT if installation.inbox else ACCOUNTS_HINT, flush=True)


SANDBOX_HINT = """Open the api address in a browser and paste the key from its file, or send from another terminal:
  ./ada send --to 7=telegram:100001,sms:+79990000001 --text Hello --wait
Telegram, its Bot API, VK, MAX, SMS and e-mail are simulated: what was sent is on the inbox page.
The README says how to connect real accounts.
"""
ACCOUNTS_HINT = """Open the api address in a browser and paste the key from its file, or see ./ada send --help.
"""


def summary(installation: Installation, key: Mapping[str, str | None]) -> dict[str, str | None]:
    return {
        "api": installation.http,
        **key,
        "inbox": installation.inbox,
        "couriers": ", ".join(name for name in installation.channels if name not in installation.not_ready),
        "bots": ", ".join(name for name in installation.bots if f"{BOT}{name}" not in installation.not_ready),
        "scenarios": str(installation.scenarios or "") or None,
        "answers": answering(installation.scenarios) if installation.answers else None,
        "jobs": installation.jobs,
        "syncs": ", ".join(words[0] for words in installation.syncs) or None,
        "redis": without_secrets(installation.redis_url),
        "data": str(installation.data),
        "night": installation.night,
    }


COMMANDS: Mapping[str, Command] = {"up": Command(declare, run)}
