"""Faults of a bot's files: frozen values with file, line and column, and the list that collects them."""

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Literal

from msgspec import Struct

from core.model.json_form import JsonObject
from scenarios.bot import Place
from scenarios.bot.nodes import Node
from scenarios.words import Sentence, Text, Translations, translations

Severity = Literal["error", "warning"]


class Problem(Struct, frozen=True, gc=False):
    """One complaint. `code` is stable and upper case. An error is certainly a mistake; a warning may be meant.

    `file` is relative to the bot's folder, with `/`; `line` and `column` count from 1. `message`: `said` in English.
    """

    file: str
    line: int
    column: int
    severity: Severity
    code: str
    message: str
    said: Sentence | None = None

    @property
    def is_error(self) -> bool:
        return self.severity == "error"

    @property
    def parameters(self) -> Mapping[str, str]:
        """The names, numbers and values in the message."""
        return self.said.parameters if self.said else {}

    @property
    def translations(self) -> Translations:
        return translations(message=self.said or self.message)

    def as_json(self) -> JsonObject:
        names = ("file", "line", "column", "severity", "code", "message", "parameters", "translations")
        return {name: getattr(self, name) for name in names}


class Problems(list[Problem]):
    """The problems found so far. `unread`: the files that could not be read, so that what they have is not known."""

    def __init__(self, found: Iterable[Problem] = (), unread: Iterable[str] = ()) -> None:
        super().__init__(found)
        self.unread = set(unread)

    def has_error_in(self, *files: str) -> bool:
        """Return whether one of these files has an error, so that more of it may be missing than is reported."""
        return not self.unread.isdisjoint(files) or any(one.is_error and one.file in files for one in self)

    def may_have(self, scenario: str) -> bool:
        """Return whether a scenario that is not known may be in a file that could not be read."""
        prefixes = (".".join(PurePosixPath(file).with_suffix("").parts) for file in self.unread)
        return any(one == "scenarios" or _is_in(scenario, one) for one in prefixes)

    def error(self, place: Place, code: str, message: Text) -> None:
        self._add(place, "error", code, message)

    def warning(self, place: Place, code: str, message: Text) -> None:
        self._add(place, "warning", code, message)

    def _add(self, place: Place, severity: Severity, code: str, message: Text) -> None:
        said = message if isinstance(message, Sentence) else None
        self.append(Problem(place.file, place.line, place.column, severity, code, str(message), said))

    def in_order(self) -> list[Problem]:
        """Return the problems by file, line and column; a problem that was found twice is there once."""
        return sorted(dict.fromkeys(self), key=lambda problem: (problem.file, problem.line, problem.column))


def _is_in(scenario: str, file: str) -> bool:
    """Return whether a scenario is in a file. `file`: its path with dots. A bare name may be in any file."""
    return file.startswith("scenarios.") and ("." not in scenario or f"scenarios.{scenario}".startswith(f"{file}."))


class Reporter:
    """Reports problems of one file, at its nodes."""

    def __init__(self, file: str, problems: Problems) -> None:
        self.file = file
        self.problems = problems

    def place(self, node: Node) -> Place:
        return Place(self.file, node.line, node.column)

    def error(self, node: Node, code: str, message: Text) -> None:
        self.problems.error(self.place(node), code, message)

    def warning(self, node: Node, code: str, message: Text) -> None:
        self.problems.warning(self.place(node), code, message)
