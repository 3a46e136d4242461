"""The verb texts: lists what Ada says to people, and writes the files in which an installation changes it."""

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from pathlib import Path
from shutil import get_terminal_size
from textwrap import TextWrapper

from cli.client.verbs import print_result
from cli.command import Command, CommandFailed
from cli.settings.own_texts import commented
from cli.settings.settings import load
from core.sentence import LANGUAGES, sentences, texts_for_people


def declare(parser: ArgumentParser) -> None:
    parser.add_argument("--lang", choices=LANGUAGES, default="en", help="the language of the list (en)")
    verbs = parser.add_subparsers(dest="action", metavar="new")
    new = verbs.add_parser("new", help="write all texts into files of a folder, as comments, to be changed")
    new.add_argument("folder", type=Path, metavar="DIR", help="the folder of ADA_TEXTS")


def run(arguments: Namespace) -> int:
    return write_new(arguments) if arguments.action == "new" else print_texts(arguments)


def print_texts(arguments: Namespace) -> int:
    """Print each code with its text; a text of ADA_TEXTS has a mark. Raises SetupError."""
    load()
    ada, said = texts_for_people(), sentences()
    texts = {code: said[code][arguments.lang] for code in sorted(ada)}
    lines: list[str] = []
    wrapped = TextWrapper(
        max(get_terminal_size().columns, 40), initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False
    ).wrap
    for code, text in texts.items():
        lines.append(code if text == ada[code][arguments.lang] else f"{code}  (ADA_TEXTS)")
        lines += [line for part in text.splitlines() for line in wrapped(part)]
    return print_result(arguments, texts, "\n".join(lines))


def write_new(arguments: Namespace) -> int:
    """Write the files. Raises CommandFailed."""
    folder: Path = arguments.folder
    files = {folder / f"{language}.yaml": commented(language) for language in LANGUAGES}
    if there := [str(path) for path in files if path.exists()]:
        raise CommandFailed(f"{' and '.join(there)} exists already; nothing was written")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in files.items():
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CommandFailed(f"{folder} cannot be written: {error.strerror}") from None
    names = [str(path) for path in files]
    shown = [*names, "", f"Change what you want, then start with  ADA_TEXTS={folder}"]
    return print_result(arguments, {"files": names}, "\n".join(shown))


COMMANDS: Mapping[str, Command] = {"texts": Command(declare, run)}
