"""The verb demo: starts everything, plays, checks what arrived, stops. It uses no settings, credentials or data of the
caller.

`demo`: sends one message, and lets a teacher write from a chat (`demo_delivery`). Exit code 0 only if both histories
say that all recipients were reached and the sandbox's inbox contains exactly the texts.
`demo jobs`: long-running jobs of users work, and are killed (`demo_jobs`). Exit code 0 only if nothing was done twice.
`demo scenarios`: people use a bot that is written in YAML (`demo_scenarios`). Exit code 0 only if it did all it should.
"""

import asyncio
import json
import os
import shutil
import tempfile
import textwrap
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cli.client.format_history import format_history
from cli.client.http_client import HttpClient, JsonObject
from cli.command import SUCCESS, Command
from cli.commands.start import demo_delivery, demo_jobs, demo_scenarios
from cli.commands.start.demo_delivery import STORIES
from cli.commands.start.demo_stage import Stage
from cli.commands.start.installation import start_everything
from cli.commands.start.up import LOGGED
from cli.processes.startup import run_until, stop_requested
from cli.processes.supervisor import READY_LINE, PrintLine
from cli.settings.settings import Configuration, load
from cli.settings.sources import PREFIX
from examples import SCHOOL_BOT


@dataclass(frozen=True)
class Play:
    """A play of `./ada demo`: how it is played, its result for people, how it ends in each of its languages, and the
    settings that it needs.
    """

    play: Callable[[Stage], Awaitable[JsonObject]]
    text: Callable[[JsonObject], str]
    ends: Mapping[str, str]
    settings: Mapping[str, str] = field(default_factory=dict)


PLAYS: Mapping[str, Play] = {
    "delivery": Play(demo_delivery.play, demo_delivery.text_of, demo_delivery.ENDS, demo_delivery.SETTINGS),
    "jobs": Play(demo_jobs.play, lambda _: "", {"en": "every vacancy was applied to once"}, demo_jobs.SETTINGS),
    "scenarios": Play(
        demo_scenarios.play,
        lambda result: f"\n{format_history(result['history'])}\n",
        {"en": "the bot did all it should"},
        {"ADA_SCENARIOS": str(SCHOOL_BOT)},
    ),
}

WORDS = {
    "en": (
        "starting the server, simulated providers, the API, couriers and bots",
        "started in {seconds:.0f} s",
        "stopped",
    ),
    "ru": ("запускаются сервер, имитации каналов, API, курьеры и боты", "запущено за {seconds:.0f} с", "остановлено"),
}


def declare(parser: ArgumentParser) -> None:
    parser.add_argument("play", nargs="?", choices=PLAYS, default="delivery", help="what is shown (delivery)")
    parser.add_argument(
        "--lang",
        choices=STORIES,
        help="the language of the play `delivery` (that of the terminal); the others are in English",
    )
    parser.add_argument("--verbose", action="store_true", help="show all that pip and the processes print")


def run(arguments: Namespace) -> int:
    play = PLAYS[arguments.play]
    print_line = chosen_lines(arguments.json, arguments.verbose)
    with tempfile.TemporaryDirectory(prefix="ada-demo-") as directory:
        configuration = isolated_configuration(Path(directory), play.settings)
        wanted = arguments.lang or terminal_language()
        language = wanted if wanted in play.ends else "en"
        return asyncio.run(perform(play, configuration, language, print_line, arguments.json))


def chosen_lines(as_json: bool, verbose: bool) -> PrintLine:
    """Return what prints a line: with `--json` only the result is printed; that a process is ready only with
    `--verbose`."""

    def print_line(process: str, line: str) -> None:
        if not as_json and (verbose or line != READY_LINE):
            print("\n".join(folded(process, LOGGED.sub("", line))), flush=True)

    return print_line


def folded(process: str, line: str) -> Iterable[str]:
    """Return the line in the width of the terminal: what is longer goes on below its own beginning."""
    width = shutil.get_terminal_size().columns
    return textwrap.wrap(line, width, initial_indent=f"{process:>12} | ", subsequent_indent=" " * 15) or [
        f"{process:>12} |"
    ]


def terminal_language() -> str:
    """Return the language of the story for this terminal: Russian for a Russian one, else English."""
    named = next((os.environ[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if os.environ.get(name)), "")
    return "ru" if named.lower().startswith("ru") else "en"


def isolated_configuration(directory: Path, settings: Mapping[str, str]) -> Configuration:
    """Return a configuration without the caller's settings. The children inherit our environment and working
    directory."""
    for name in [name for name in os.environ if name.startswith(PREFIX)]:
        del os.environ[name]
    os.chdir(directory)
    os.environ |= {"ADA_HTTP": "127.0.0.1:0", "ADA_QUIET_HOURS": "off", "ADA_LOG_LEVEL": "warning", **settings}
    return load(os.environ, directory)


async def perform(play: Play, configuration: Configuration, language: str, print_line: PrintLine, as_json: bool) -> int:
    return await run_until(stop_requested(), show(play, configuration, language, print_line, as_json))


async def show(play: Play, configuration: Configuration, language: str, print_line: PrintLine, as_json: bool) -> int:
    """Start everything, play a demo and return the exit code. Raises CommandFailed if something did not happen as it
    should.
    """
    starting, started, stopped = WORDS[language]
    print_line("demo", starting)
    began = time.monotonic()
    async with start_everything(configuration, print_line) as installation:
        api, sandbox = HttpClient(installation.http, installation.api_key), HttpClient(str(installation.inbox), "")
        print_line("demo", started.format(seconds=time.monotonic() - began))
        result = await play.play(Stage(api, sandbox, print_line, installation.supervisor.kill, language))
        print(json.dumps(result, ensure_ascii=False) if as_json else play.text(result), flush=True)
    print_line("demo", f"{stopped}; {play.ends[language]}")
    return SUCCESS


COMMANDS: Mapping[str, Command] = {"demo": Command(declare, run)}
