"""The parser of the command line. It explains wrong usage in the user's words and suggests what was meant."""

import re
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from cli.command import WRONG_USAGE, CommandFailed
from cli.suggestion import closest

_KINDS = {"int": "a whole number", "float": "a number"}


class Parser(ArgumentParser):
    """A parser that raises CommandFailed where argparse prints a message and exits. So do its subcommands."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._verbs: Mapping[str, Parser] = {}

    def add_subparsers(self, **options: Any) -> Any:
        verbs = super().add_subparsers(**options)
        self._verbs = verbs.choices
        return verbs

    def error(self, message: str) -> NoReturn:
        raise wrong_usage(explain(message), self.prog)

    def refuse_unknown(self, unknown: Sequence[str], given: Sequence[str]) -> None:
        """Refuse unknown arguments. Raises CommandFailed if there are arguments that this command does not have.
        `given`: all arguments; a subcommand among them does not have the unknown ones.
        """
        if not unknown:
            return
        verb = next((word for word in given if word in self._verbs), None)
        if verb is not None:
            self._verbs[verb].refuse_unknown(unknown, ())
        name = unknown[0].partition("=")[0]
        options = sorted(set(re.findall(r"--[a-z][a-z-]*", self.format_help())))
        raise wrong_usage(f"{self.prog} does not know {name}{closest(name, options)}", self.prog)


def wrong_usage(message: str, prog: str) -> CommandFailed:
    return CommandFailed(f"{message}\n     `{prog} --help` shows what is possible", WRONG_USAGE)


def explain(message: str) -> str:
    """Return a message of argparse in plain words. A message of another form stays as it is."""
    if found := re.fullmatch(r"argument .+: invalid choice: '(.*)' \(choose from (.*)\)", message):
        known = found[2].replace("'", "").split(", ")
        return f"{found[1]!r} is not one of {', '.join(known)}{closest(found[1], known)}"
    if found := re.fullmatch(r"argument (.+): invalid (\w+) value: '(.*)'", message):
        return f"{found[1]}: {found[3]!r} is not {_KINDS.get(found[2], 'a valid value')}"
    if found := re.fullmatch(r"the following arguments are required: (.*)", message):
        return f"these are missing: {found[1]}"
    return message.removeprefix("argument ")
