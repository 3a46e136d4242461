"""Reads nodes as what they should be, and reports those that are something else as problems with file, line and
column. The base of the readers of this package.

An empty value (null, {}, [], "") is legal wherever a mapping or a list is expected.
"""

from collections.abc import Collection, Iterable, Mapping
from pathlib import PurePosixPath
from typing import Literal

from msgspec import Struct

from core.model.json_form import JsonObject
from scenarios.bot import Place
from scenarios.bot.data import ListNode, MapNode, Node, Scalar, describe, is_empty, read_flag, read_number
from scenarios.bot.suggestion import did_you_mean, slip_of
from scenarios.words import Sentence, Text, Translations, sentence, translations

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


class Reader(Reporter):
    """Reads the nodes of one file."""

    def pairs(self, node: Node | None, what: Text) -> tuple[tuple[Scalar, Node], ...]:
        """Return the pairs of a mapping; none if it is empty or something else, which is reported."""
        if isinstance(node, MapNode):
            return node.pairs
        if node is not None and not is_empty(node):
            self.wrong(node, what, sentence("mapping"))
        return ()

    def items(self, node: Node | None, what: Text) -> tuple[Node, ...]:
        """Return the items of a list; none if it is empty or something else, which is reported."""
        if isinstance(node, ListNode):
            return node.items
        if node is not None and not is_empty(node):
            self.wrong(node, what, sentence("list"))
        return ()

    def one_or_many(self, node: Node | None) -> tuple[Node, ...]:
        """Return the items of a list, or the node itself; nothing if it is empty."""
        if node is None or is_empty(node):
            return ()
        return node.items if isinstance(node, ListNode) else (node,)

    def text(self, node: Node | None, what: Text) -> str | None:
        """Return a text as written; None if it is missing, empty or no text, which is reported."""
        if node is None or is_empty(node):
            return None
        if isinstance(node, Scalar):
            return node.text
        self.wrong(node, what, sentence("text"))
        return None

    def number(self, node: Node | None, what: Text) -> int | None:
        """Return a whole number, also in quotes; None if it is missing or something else, which is reported."""
        if node is None or is_empty(node):
            return None
        if isinstance(node, Scalar) and (number := as_int(node)) is not None:
            return number
        self.wrong(node, what, sentence("whole_number"))
        return None

    def flag(self, node: Node | None, what: Text) -> bool | None:
        """Return true or false; None if it is missing or something else, which is reported."""
        if node is None or is_empty(node):
            return None
        if isinstance(node, Scalar) and (flag := read_flag(node.text)) is not None:
            return flag
        self.wrong(node, what, sentence("true_false"))
        return None

    def wrong(self, node: Node, what: Text, wanted: Text) -> None:
        self.error(node, "WRONG_TYPE", sentence("what_must_be", what=what, wanted=wanted, found=describe(node)))

    def unknown(self, node: Scalar, known: Collection[str], code: str, what: Text) -> None:
        """Report an unknown name: an error if it is a slip of a known one, else a warning, as another version may know
        it.
        """
        report = self.error if slip_of(node.text, tuple(known)) else self.warning
        report(node, code, did_you_mean(sentence("is_not", name=repr(node.text), text=what), node.text, known))


def as_int(node: Scalar) -> int | None:
    number = read_number(node.text)
    return number if isinstance(number, int) else None
