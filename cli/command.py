"""The declaration of one verb of the command line: its arguments and its function; and the errors that it reports."""

import difflib
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

SUCCESS, FAILURE, WRONG_USAGE = 0, 1, 2
OPERATOR_NEEDED = 3
"""Exit code of a process that an operator must repair first. The supervisor does not start it again."""


@dataclass(frozen=True)
class Command:
    """One verb. Every command module has a table COMMANDS from verb to Command.

    `declare` adds the verb's arguments to its parser. `run` receives the parsed arguments and returns the exit code.
    With `takes_rest`, unknown arguments are accepted and passed on in `arguments.rest`.
    """

    declare: Callable[[ArgumentParser], None]
    run: Callable[[Namespace], int]
    takes_rest: bool = False


class CommandFailed(Exception):
    """The command could not do what was asked. The message is shown to the user; `code` is the exit code."""

    def __init__(self, message: str, code: int = FAILURE) -> None:
        super().__init__(message)
        self.code = code


def add_json_option(parser: ArgumentParser, **options: Any) -> None:
    """Add `--json`. A subcommand passes `default=SUPPRESS`, so that the option works before and after its name."""
    parser.add_argument("--json", action="store_true", help="print JSON, for programs", **options)


def no_arguments(parser: ArgumentParser) -> None:
    """Declare nothing: the `declare` of a verb without arguments of its own."""


def closest(name: str, known: Sequence[str]) -> str:
    """Return the end of an error message with the most similar known name; empty if none is similar."""
    similar = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {similar[0]}?" if similar else ""


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """Return what `closest` does; if none is similar, all known names."""
    return closest(name, known) or f"; known are {', '.join(known)}"
