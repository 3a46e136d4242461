"""The actions test and chat of the verb scenarios: a bot's own tests, and a conversation with it in the terminal."""

import asyncio
import json
import os
import sys
from argparse import Namespace
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from cli.command import FAILURE, SUCCESS
from cli.commands.bots.scenario_runs import load_bot, message_lines, print_warning
from core.model.text.characters import counted
from core.queue import Worker
from core.services import Services
from jobs.external_services import Outside
from jobs.registry import Registry, installed
from jobs.worker import JobWorker
from scenarios.bot.times import read_duration
from scenarios.check import Checked, check
from scenarios.execution.active_bot import ActiveBot, Fingerprint, fingerprint
from scenarios.testing.bot_tests import FOLDER, PERSON, BotTestVerdict, run_tests
from scenarios.testing.conversation import Conversation, NoSuchButton
from scenarios.testing.played_bot import PlayedBot, open_store


class PlayedJobs:
    """Jobs that work by the clock of a test. `kinds`: their names."""

    def __init__(self, registry: Registry) -> None:
        self.kinds: Collection[str] = registry.kinds
        self._registry = registry

    @classmethod
    def of_environment(cls) -> "PlayedJobs":
        """Return those of packages and of ADA_JOBS. Raises SetupError."""
        return cls(installed(os.environ.get("ADA_JOBS", "").replace(",", " ").split()))

    async def workers(self, core: Services, played: Mapping[str, Mapping[str, Any]]) -> Collection[Worker]:
        """Publish the kinds, and return what works on their iterations; `played`: see `Outside`."""
        worker = JobWorker(core.store, core.client, self._registry, outside=Outside(core.store, played=played))
        await worker.publish()
        return worker.workers()


_HELP = """Write to the bot. [Text] presses a button, also an old one. Ctrl-D ends. More:
:as 8           another person writes from now on      :in -1001       in a group; :in alone ends it
:channel sms    in another channel                     :reply TEXT     to the bot's last message
:photo NAME     sends a photo                          :contact +7…    shares the contact
:wait 1d        lets time pass                         :variables      shows them"""


def test_bot(arguments: Namespace) -> int:
    """Play the tests of a bot; fail if one of them does."""
    bot = load_bot(arguments.folder)
    verdicts, problems = asyncio.run(run_tests(arguments.folder, bot, jobs=PlayedJobs.of_environment()))
    for problem in problems:
        print_warning(f"{arguments.folder / problem.file}:{problem.line}:{problem.column}: {problem.message}")
    for place, said in {place: said for one in verdicts for place, said in one.samples.items()}.items():
        print_warning(f"{arguments.folder / place.file}:{place.line}:{place.column}: {said}")
    failed = [one for one in verdicts if one.problem]
    for one in verdicts if arguments.json else failed:
        print(_as_json(one) if arguments.json else _as_text(arguments.folder, one))
    if not arguments.json:
        none = "" if verdicts else f"; tests are YAML files in {arguments.folder / FOLDER}"
        print(f"{counted(len(verdicts) - len(failed), 'test')} passed, {len(failed)} failed{none}")
    return FAILURE if failed or problems else SUCCESS


def _as_text(folder: Path, one: BotTestVerdict) -> str:
    return f"{folder / one.place.file}:{one.place.line}:{one.place.column}: {one.name}: {one.problem}"


def _as_json(one: BotTestVerdict) -> str:
    place = {"file": one.place.file, "line": one.place.line, "column": one.place.column}
    return json.dumps(
        {"test": one.name, "passed": not one.problem, **place, "problem": one.problem}, ensure_ascii=False
    )


def chat(arguments: Namespace) -> int:
    """Talk to the bot until the input ends. Changed files are in force for the next line, unless they have errors."""
    return asyncio.run(_chat(arguments.folder))


async def _chat(folder: Path) -> int:
    active = ActiveBot(folder, loaded=_checked(folder))
    seen = fingerprint(active.folder)
    async with (
        open_store() as store,
        PlayedBot.open(store, active, datetime.now(UTC), UTC, PlayedJobs.of_environment()) as bot,
    ):
        terminal = _Terminal(Conversation(bot))
        print(_HELP)
        for line in _lines():
            seen = _reload(active, seen)
            before = len(bot.said)
            await terminal.act(line)
            for failure in [*map(str, bot.samples.values()), *await bot.new_failures()]:
                print_warning(failure)
            bot.samples.clear()
            for said in bot.said[before:]:
                to = f"  (to {json.dumps(said.to, ensure_ascii=False)})" if said.to else terminal.elsewhere(said.chat)
                print("\n".join(message_lines(msgspec.to_builtins(said.message))) + to)
    return SUCCESS


class _Terminal:
    """Reads what the person at the terminal does."""

    def __init__(self, talk: Conversation) -> None:
        self._talk = talk
        self._person = PERSON

    async def act(self, line: str) -> None:
        talk, (command, _, given) = self._talk, line.partition(" ")
        given = given.strip()
        if line.startswith("[") and line.endswith("]"):
            await self._do("press", line[1:-1])
        elif not line.startswith(":"):
            await self._do("user", line)
        elif command[1:] in ("photo", "contact", "reply") and given:
            await self._do(command[1:], given)
        elif command == ":wait" and (duration := read_duration(given)):
            await talk.bot.wait(duration)
        elif command == ":variables":
            print(json.dumps(await talk.variables(self._person), ensure_ascii=False))
        elif not self._moved(command, given):
            print(_HELP)

    def elsewhere(self, chat: str) -> str:
        """Returns where a message went, "" for the chat in which the person writes."""
        here = f"{self._talk.channel}:{self._talk.group or self._person}"
        return "" if chat == here else f"  (in {chat})"

    async def _do(self, what: str, given: str) -> None:
        try:
            await self._talk.act(what, given, self._person)
        except NoSuchButton as error:
            print(error)

    def _moved(self, command: str, given: str) -> bool:
        """Change who writes, or where; return whether the line is such a change."""
        if command == ":in":
            self._talk.group = given
        elif command == ":as" and given:
            self._person = given
        elif command == ":channel" and given:
            self._talk.channel = given
        else:
            return False
        return True


def _lines() -> Iterator[str]:
    """Yield the lines of the input, with a prompt on a terminal."""
    while True:
        try:
            line = input("> " if sys.stdin.isatty() else "").strip()
        except EOFError:
            return
        if line:
            yield line


def _reload(active: ActiveBot, seen: Fingerprint) -> Fingerprint:
    """Put the files in force if they have changed and have no errors; return them as they are."""
    found = fingerprint(active.folder)
    if found != seen:
        checked = _checked(active.folder)
        stays = "errors: the bot stays as it was" if checked.has_errors else "changed"
        print(f"(the files in {active.folder} have {stays})")
        if not checked.has_errors:
            active.put(checked)
    return found


def _checked(folder: Path) -> Checked:
    """Check the bot; print its errors."""
    checked = check(folder)
    for one in checked.problems:
        if one.is_error:
            print_warning(f"{folder / one.file}:{one.line}:{one.column}: {one.code}: {one.message}")
    return checked
