"""The actions of the verb scenarios for runs: run and graph show what a bot would do with an event and how a
scenario is built; show, drive and drop read and change a run that has happened, over HTTP.
"""

import json
import shutil
import sys
import textwrap
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from cli.client.http_client import HttpClient, JsonObject, quoted
from cli.client.verbs import over_http
from cli.command import SUCCESS, WRONG_USAGE, CommandFailed
from cli.files import MiB, read_text_input
from scenarios.bot import Bot, Scenario
from scenarios.bot.button_data import JUMP
from scenarios.check.dry_run import Result, Row, dry_run
from scenarios.engine.graph import as_dot, as_text, graph_of
from scenarios.loader import load
from scenarios.words import in_language

_INDENT = " " * 7
_MOST_LINES = 12
"""Of one text."""
_LONGEST = 300
"""Characters of a value."""
_OF_MESSAGE = ("text", "additional_text", "inline", "reply", "keyboard", "keyboard_of_role", "keyboard_version")
"""Fields of a `send` that the message shows, or has no use for."""


def action_lines(
    head: str, message: Mapping[str, Any] | None, given: Mapping[str, Any], results: Mapping[str, Any]
) -> Iterator[str]:
    """Emit what became of an action; the message that it sent, or else what it was given; and what later actions get of
    it. Folded to the terminal.
    """
    yield from folded(head, "")
    yield from message_lines(message) if message else ()
    for name, value in given.items():
        if not message or name not in {*message, *_OF_MESSAGE}:
            yield from value_lines(name, value)
    for name, value in results.items():
        if name != "error":  # the reason shows it
            yield from value_lines(f"→ {name}", value)


def message_lines(message: Mapping[str, Any]) -> Iterator[str]:
    """Emit what a person gets: the text, a line for each row of buttons, and what else the message has."""
    for name, value in message.items():
        if name == "text":
            yield from text_lines(str(value))
        elif name in ("inline", "reply") and value:
            yield from (line for row in value for line in folded(" ".join(map(button, row)), f"{_INDENT}  "))
        else:
            yield from value_lines(name, value)


def button(one: Any) -> str:
    """Return a button, and where it leads unless it sends its own text."""
    if not isinstance(one, Mapping):
        return f"[{one}]"
    goal = one.get("url") or (one["data"].removeprefix(JUMP) if one.get("data", "").startswith(JUMP) else "")
    return f"[{one['text']} → {goal}]" if goal else f"[{one['text']}]"


def text_lines(text: str, mark: str = "»") -> Iterator[str]:
    """Emit a message as it is written, each line behind a mark."""
    lines = text.splitlines() or [""]
    for line in lines[:_MOST_LINES]:
        yield from folded(f"{mark} {line}", _INDENT)
    if len(lines) > _MOST_LINES:
        yield f"{_INDENT}… and {len(lines) - _MOST_LINES} more lines"


def value_lines(name: str, value: Any) -> Iterator[str]:
    """Emit a value in one line, folded; a long one is cut."""
    shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    line = " ".join(shown.split())
    yield from folded(f"{name}: {textwrap.shorten(line, _LONGEST, placeholder=' …') if line else '(empty)'}", _INDENT)


def folded(line: str, indent: str) -> list[str]:
    """Return the line in the width of the terminal. Its own spaces at the beginning stay."""
    width = max(shutil.get_terminal_size().columns, 40)
    return textwrap.wrap(
        line, width, initial_indent=indent, subsequent_indent=f"{_INDENT}  ", break_on_hyphens=False
    ) or [indent]


def declare_run(parser: ArgumentParser) -> None:
    parser.add_argument("--update", type=Path, required=True, metavar="FILE", help="an event, one flat JSON object")
    parser.add_argument("--dry", action="store_true", required=True, help="send nothing, write nothing")
    parser.add_argument("--fail", action="append", default=[], metavar="TYPE", help="let actions of this type fail")
    help_text = "let it be unknown whether actions of this type did what they should"
    parser.add_argument("--unknown", action="append", default=[], metavar="TYPE", help=help_text)


def declare_graph(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the scenario")
    parser.add_argument("--dot", action="store_true", help="print the language of Graphviz")


def run_update(arguments: Namespace) -> int:
    """Print one row per action that the event starts. Warnings are on stderr."""
    event = read_event(arguments.update)
    result = dry_run(load_bot(arguments.folder, arguments.lang), event, arguments.fail, arguments.unknown)
    for warning in result.warnings:
        print_warning(in_language(warning, arguments.lang))
    for line in rows_as_json(result.rows) if arguments.json else rows_as_text(result):
        print(line)
    return SUCCESS


def print_graph(arguments: Namespace) -> int:
    bot = load_bot(arguments.folder)
    scenario = find_scenario(bot, arguments.name)
    graph = graph_of(bot, scenario)
    if arguments.json:
        print(json.dumps(asdict(graph), ensure_ascii=False))
    else:
        print(as_dot(graph) if arguments.dot else as_text(bot, scenario))
    return SUCCESS


def print_warning(message: str) -> None:
    print(f"ada: warning: {message}", file=sys.stderr)


def load_bot(folder: Path, language: str = "en") -> Bot:
    """Return the bot as far as it can be read. Its errors are warnings here: `check` explains them."""
    loaded = load(folder)
    for problem in loaded.problems:
        if problem.is_error:
            message = in_language(problem.said or problem.message, language)
            print_warning(f"{folder / problem.file}:{problem.line}:{problem.column}: {message}")
    return loaded.bot


def read_event(file: Path) -> Mapping[str, Any]:
    try:
        event = json.loads(read_text_input(str(file), MiB))
    except (ValueError, RecursionError) as error:
        raise CommandFailed(f"{file} is not JSON: {error}", WRONG_USAGE) from None
    if not isinstance(event, dict):
        raise CommandFailed(f"{file} must hold one event, a JSON object", WRONG_USAGE)
    return event


def find_scenario(bot: Bot, name: str) -> Scenario:
    if found := bot.find(name):
        return found
    if several := bot.short_names.get(name):
        raise CommandFailed(f"several scenarios are called {name!r}: {', '.join(several)}")
    raise CommandFailed(f"there is no scenario {name!r}; there are: {', '.join(sorted(bot.scenarios))}")


def rows_as_json(rows: Iterable[Row]) -> Iterable[str]:
    return (json.dumps(row.as_json(), ensure_ascii=False) for row in rows)


def rows_as_text(result: Result) -> Iterable[str]:
    """Emit the same as `./ada scenarios show` prints of a run that has happened."""
    for row in result.rows:
        head = f"{row.n:>3}. {row.outcome:<9} {row.scenario}: {row.type} ({row.why})"
        yield from action_lines(head, to_builtins(row.send, enc_hook=str), row.given, row.results)
    if not result.rows:
        yield "no action runs"


def declare_show(parser: ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="the id of a run, as in GET /v1/runs and in the log")


async def show(api: HttpClient, arguments: Namespace) -> int:
    """Print a run; `drive` and `drop` change it first."""
    verb = "" if arguments.action == "show" else f":{arguments.action}"
    run = await api.call("POST" if verb else "GET", f"/v1/runs/{quoted(arguments.run)}{verb}")
    print(json.dumps(run, ensure_ascii=False) if arguments.json else "\n".join(lines(run)))
    return SUCCESS


show_run = over_http(show)


def lines(run: JsonObject) -> Iterator[str]:
    """Emit the run as a person reads it: for each action what became of it, its message or its fields, and its
    results."""
    ended = f", over at {run['ended']}" if run["ended"] else ""
    yield from folded(f"{run['id']}  {run['person']}  {run['state']}  began at {run['began']}{ended}", "")
    if text := run["event"].get("event_text") or run["event"].get("callback_data"):
        yield from text_lines(str(text), mark="«")
    for action in run["actions"]:
        at = (action["ended_at"] or action["moved_at"] or "").removeprefix(run["began"][: len("2026-11-23T")])
        waits = f"; waits for {action['waits_for']}" if action["waits_for"] else ""
        place = f"{action['scenario']}: {action['type']}"
        head = f"{action['n']:>3}. {action['state']:<9} {place} ({action['why']}{waits}) {at}".rstrip()
        yield from action_lines(head, action["send"], action["given"], action["results"])
