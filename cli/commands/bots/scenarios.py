"""The verb scenarios: runs a bot written in YAML; checks and tries it, writes a new one, prints the schema for editors.

Without an action it is the process that runs the scenarios of ADA_SCENARIOS.
"""

import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from cli.command import FAILURE, SUCCESS, Command, CommandFailed
from cli.commands.bots.scenario_process import declare_process, run_process
from cli.commands.bots.scenario_runs import (
    declare_graph,
    declare_run,
    declare_show,
    folded,
    print_graph,
    run_update,
    show_run,
)
from cli.commands.bots.scenario_tests import chat, test_bot
from cli.services.answering import answering
from cli.settings.sources import export
from core.model.text.characters import counted
from scenarios.action_files import SETTING
from scenarios.actions import installed_actions
from scenarios.bot import new_bot
from scenarios.check import Checked, check
from scenarios.converter import convert
from scenarios.loader.reading import Problem
from scenarios.schema.reference import scenario_schema
from scenarios.words import LANGUAGES, in_language

SEVERITIES = {"error": "ошибка", "warning": "предупреждение"}


def declare(parser: ArgumentParser) -> None:
    declare_process(parser)
    verbs = parser.add_subparsers(dest="action", metavar="|".join(ACTIONS))
    check_parser = verbs.add_parser("check", help="find mistakes in a bot's files before it runs")
    new_parser = verbs.add_parser("new", help="write a small working bot into a new folder")
    run_parser = verbs.add_parser("run", help="show what the bot does with a recorded event; nothing is sent")
    graph_parser = verbs.add_parser("graph", help="show what follows what in a scenario")
    test_parser = verbs.add_parser("test", help="play the tests of a bot; nothing is sent")
    chat_parser = verbs.add_parser("chat", help="talk to a bot in the terminal; nothing is sent")
    convert_parser = verbs.add_parser("convert", help="convert a bot of Coreness 1.x; what is left out is named")
    for subparser in (check_parser, new_parser, run_parser, graph_parser, test_parser, chat_parser, convert_parser):
        subparser.add_argument("folder", type=Path, metavar="DIR", help="the bot's folder")
    convert_parser.add_argument("--to", type=Path, required=True, metavar="NEW", help="the folder to write")
    for subparser in (check_parser, run_parser, convert_parser):
        subparser.add_argument("--lang", choices=LANGUAGES, default="en", help="the language of what is found (en)")
    new_parser.add_argument("--teacher", action="store_true", help="the dialog of teachers, to be changed")
    declare_run(run_parser)
    declare_graph(graph_parser)
    verbs.add_parser("schema", help="print the JSON Schema of scenario files, for editors")
    show_parser = verbs.add_parser("show", help="show what became of each action of a run, and why")
    drive_parser = verbs.add_parser("drive", help="have a run that waits driven on now")
    drop_parser = verbs.add_parser("drop", help="end a run without its remaining actions; its messages are sent")
    for subparser in (show_parser, drive_parser, drop_parser):
        declare_show(subparser)


def run(arguments: Namespace) -> int:
    export(SETTING)
    return ACTIONS[arguments.action](arguments) if arguments.action else run_process(arguments)


def check_folder(arguments: Namespace) -> int:
    """Print one row per problem; fail if one of them is an error."""
    checked = check(arguments.folder)
    print_problems(checked.problems, arguments)
    if not arguments.json:
        print(summary(checked, arguments.lang))
        answer = "people are answered by" if arguments.lang == "en" else "людям отвечает"
        print(for_people(f"{answer} {answering(arguments.folder, checked.bot, arguments.lang)}"))
    return FAILURE if checked.has_errors else SUCCESS


def print_problems(problems: Sequence[Problem], arguments: Namespace) -> None:
    for problem in problems:
        place = f"{arguments.folder / problem.file}:{problem.line}:{problem.column}"
        severity = problem.severity if arguments.lang == "en" else SEVERITIES[problem.severity]
        text = f"{place}: {severity} {problem.code}: {in_language(problem.said or problem.message, arguments.lang)}"
        print(json.dumps(problem.as_json(), ensure_ascii=False) if arguments.json else for_people(text))


def convert_bot(arguments: Namespace) -> int:
    """Write the converted bot into a new folder and print what was left out. Raises CommandFailed."""
    if not (arguments.folder / "scenarios").is_dir():
        raise CommandFailed(f"{arguments.folder} has no folder `scenarios`; name the folder of one bot")
    try:
        converted = convert(arguments.folder)
        new_bot.write(arguments.to, converted.files)
    except FileExistsError:
        raise CommandFailed(f"{arguments.to} is not empty; nothing was written") from None
    except (OSError, UnicodeDecodeError) as error:
        raise CommandFailed(f"{arguments.folder} cannot be converted: {error}") from None
    print_problems(converted.problems, arguments)
    if not arguments.json:
        left = counted(len(converted.problems), "place")
        print(f"{counted(len(converted.files), 'file')} in {arguments.to}; {left} to mend by hand")
        print(f"Check it: ./ada scenarios check {arguments.to}")
    return FAILURE if converted.problems else SUCCESS


def for_people(line: str) -> str:
    """Return the line, folded only if a terminal shows it: editors and other programs read a problem in one line."""
    return "\n".join(folded(line, "")) if sys.stdout.isatty() else line


def summary(checked: Checked, language: str) -> str:
    errors = sum(problem.is_error for problem in checked.problems)
    count = sum(not scenario.is_part for scenario in checked.bot.scenarios.values())
    actions = sum(len(scenario.actions) for scenario in checked.bot.scenarios.values())
    if language == "ru":
        found = f"ошибок: {errors}, предупреждений: {len(checked.problems) - errors}"
        return f"сценариев: {count}, действий: {actions}; {found}"
    return (
        f"{counted(count, 'scenario')} with {counted(actions, 'action')}: "
        f"{counted(errors, 'error')}, {counted(len(checked.problems) - errors, 'warning')}"
    )


def write_new(arguments: Namespace) -> int:
    try:
        files = new_bot.teacher_files() if arguments.teacher else new_bot.FILES
        written = new_bot.write(arguments.folder, files)
    except FileExistsError:
        raise CommandFailed(f"{arguments.folder} is not empty; nothing was written") from None
    except OSError as error:
        raise CommandFailed(f"{arguments.folder} cannot be written: {error.strerror}") from None
    if arguments.json:
        print(json.dumps({"folder": str(arguments.folder), "files": written}, ensure_ascii=False))
    else:
        print("\n".join(str(arguments.folder / name) for name in written))
        print(f"\nTalk to it in this terminal:  ./ada scenarios chat {arguments.folder}")
        print(f"Check it after each change:   ./ada scenarios check {arguments.folder}")
        print(f"Play its tests:               ./ada scenarios test {arguments.folder}")
        print(f"Start it:                     ADA_SCENARIOS={arguments.folder} ./ada up")
        print(f"\nWhile it runs, people are answered by {answering(arguments.folder)}.")
    return SUCCESS


def print_schema(_: Namespace) -> int:
    print(json.dumps(scenario_schema(installed_actions().types.values()), ensure_ascii=False, indent=2))
    return SUCCESS


ACTIONS: Mapping[str, Callable[[Namespace], int]] = {
    "check": check_folder,
    "convert": convert_bot,
    "graph": print_graph,
    "new": write_new,
    "run": run_update,
    "schema": print_schema,
    "test": test_bot,
    "chat": chat,
    "show": show_run,
    "drive": show_run,
    "drop": show_run,
}

COMMANDS: Mapping[str, Command] = {"scenarios": Command(declare, run)}
