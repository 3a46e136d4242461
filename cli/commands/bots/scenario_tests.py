"""The actions test and chat of the verb scenarios: a bot's own tests, and a conversation with it in the terminal."""

import json
import sys
from argparse import Namespace
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from cli.command import FAILURE, SUCCESS
from cli.commands.bots.run_lines import message_lines
from cli.commands.bots.scenario_runs import load_bot, print_warning
from core.model.text.characters import counted
from scenarios.bot import Bot
from scenarios.bot.durations import read_duration
from scenarios.check import Checked, check
from scenarios.check.rehearsal.bot_tests import FOLDER, PERSON, BotTestVerdict, run_tests
from scenarios.check.rehearsal.conversation import Conversation, NoSuchButton
from scenarios.check.reloading import Fingerprint, fingerprint
from scenarios.rehearsal.memory import Memory

_HELP = 'Write to the bot; "[Text]" presses a button, ":wait 1d" lets time pass, ":variables" shows them, Ctrl-D ends.'


def test_bot(arguments: Namespace) -> int:
    """Play the tests of a bot; fail if one of them does."""
    verdicts, problems = run_tests(arguments.folder, load_bot(arguments.folder))
    for problem in problems:
        print_warning(f"{arguments.folder / problem.file}:{problem.line}:{problem.column}: {problem.message}")
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
    folder, seen = arguments.folder, fingerprint(arguments.folder)
    bot = _checked(folder).bot
    talk = Conversation(bot, Memory(datetime.now(UTC), bot.zone(UTC)))
    print(_HELP)
    for line in _lines():
        bot, seen = _reloaded(folder, talk.bot, seen)
        talk.bot = bot
        before = len(talk.memory.said)
        _act(talk, line)
        for warning in talk.warnings:
            print_warning(str(warning))
        talk.warnings.clear()
        for failure in talk.memory.failures:
            print_warning(failure)
        talk.memory.failures.clear()
        for said in talk.memory.said[before:]:
            later = f"  ({said.at:%Y-%m-%d %H:%M})" if said.at > talk.memory.now else ""
            to = f"  (to {json.dumps(said.to, ensure_ascii=False)})" if said.to else ""
            print("\n".join(message_lines(msgspec.to_builtins(said.message))) + later + to)
    return SUCCESS


def _act(talk: Conversation, line: str) -> None:
    if line.startswith("[") and line.endswith("]"):
        try:
            talk.press(PERSON, line[1:-1])
        except NoSuchButton as error:
            print(error)
    elif line.startswith(":wait") and (duration := read_duration(line.removeprefix(":wait").strip())):
        talk.wait(duration)
    elif line == ":variables":
        event = {"channel": talk.channel, "user_id": PERSON, "chat_id": PERSON}
        print(json.dumps(talk.memory.seen(talk.bot, event), ensure_ascii=False))
    elif line.startswith(":"):
        print(_HELP)
    else:
        talk.write(PERSON, line)


def _lines() -> Iterator[str]:
    """Yield the lines of the input, with a prompt on a terminal."""
    while True:
        try:
            line = input("> " if sys.stdin.isatty() else "").strip()
        except EOFError:
            return
        if line:
            yield line


def _reloaded(folder: Path, bot: Bot, seen: Fingerprint) -> tuple[Bot, Fingerprint]:
    """Return the bot as the files now are; the one before while they have errors."""
    found = fingerprint(folder)
    if found == seen:
        return bot, seen
    checked = _checked(folder)
    print(f"(the files in {folder} have {'errors: the bot stays as it was' if checked.has_errors else 'changed'})")
    return (bot if checked.has_errors else checked.bot), found


def _checked(folder: Path) -> Checked:
    """Check the bot; print its errors."""
    checked = check(folder)
    for one in checked.problems:
        if one.is_error:
            print_warning(f"{folder / one.file}:{one.line}:{one.column}: {one.code}: {one.message}")
    return checked
