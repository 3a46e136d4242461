"""What a verb is to the command line: its arguments and what it does."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

GOOD, NO, WRONG_USAGE = 0, 1, 2
FOR_THE_OPERATOR = 3
"""A process that ends with this has stopped for good: starting it again without a person's doing changes nothing."""


@dataclass(frozen=True)
class Command:
    """One verb. Every module of verbs has a table COMMANDS of them, by name.

    `declare` adds the verb's own arguments; `run` gets them parsed and answers the exit code.
    With `takes_rest` the words it did not declare are handed on in `arguments.rest` instead of being refused.
    """

    declare: Callable[[ArgumentParser], None]
    run: Callable[[Namespace], int]
    takes_rest: bool = False


class NotDone(Exception):
    """The command cannot be done as it was asked; the argument is the sentence for the user."""

    def __init__(self, sentence: str, code: int = NO) -> None:
        super().__init__(sentence)
        self.code = code


def add_json(parser: ArgumentParser, **further: Any) -> None:
    """Every verb has `--json`; a verb of a verb adds it with `default=SUPPRESS`, so that it counts on either side."""
    parser.add_argument("--json", action="store_true", help="answer in JSON, for programs", **further)


def declare_nothing(parser: ArgumentParser) -> None:
    """For a verb without arguments of its own."""
