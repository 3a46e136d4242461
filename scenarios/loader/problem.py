"""What is wrong in a bot's files: frozen values with file, line and column, and the list that collects them."""

from typing import Literal

from msgspec import Struct

from scenarios.bot import Place
from scenarios.nodes import Node

Severity = Literal["error", "warning"]


class Problem(Struct, frozen=True, gc=False):
    """One complaint. `code` is stable and upper case. An error is certainly a mistake; a warning may be meant.

    `file` is relative to the bot's folder, with `/`; `line` and `column` count from 1.
    """

    file: str
    line: int
    column: int
    severity: Severity
    code: str
    message: str

    @property
    def is_error(self) -> bool:
        return self.severity == "error"

    def as_json(self) -> dict[str, str | int]:
        return {name: getattr(self, name) for name in self.__struct_fields__}


class Problems(list[Problem]):
    """The problems found so far."""

    def error(self, place: Place, code: str, message: str) -> None:
        self.append(Problem(place.file, place.line, place.column, "error", code, message))

    def warning(self, place: Place, code: str, message: str) -> None:
        self.append(Problem(place.file, place.line, place.column, "warning", code, message))

    def in_order(self) -> list[Problem]:
        """By file, line and column; a problem that was found twice is there once."""
        return sorted(dict.fromkeys(self), key=lambda problem: (problem.file, problem.line, problem.column))


class Reporter:
    """Reports problems of one file, at its nodes."""

    def __init__(self, file: str, problems: Problems) -> None:
        self.file = file
        self.problems = problems

    def place(self, node: Node) -> Place:
        return Place(self.file, node.line, node.column)

    def error(self, node: Node, code: str, message: str) -> None:
        self.problems.error(self.place(node), code, message)

    def warning(self, node: Node, code: str, message: str) -> None:
        self.problems.warning(self.place(node), code, message)
