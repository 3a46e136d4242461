"""Placeholders in the texts of an action: unknown modifiers, refused parameters, missing braces (C-51, C-56)."""

import re
from collections.abc import Iterator, Mapping

from scenarios.bot.data import Data
from scenarios.bot.nodes import ListNode, MapNode, Node, Scalar
from scenarios.bot.suggestion import slip_of
from scenarios.check.step import CheckedStep
from scenarios.check.visible import Names
from scenarios.loader.problem import Problems
from scenarios.loader.reading import Reader
from scenarios.placeholders import problems as problems_of_text
from scenarios.placeholders.mentions import outline
from scenarios.placeholders.values import names_in, starts_in
from scenarios.schema import ActionType
from scenarios.words import placed, sentence

_UNOPENED = re.compile(r"(?<![\w{])([^\W\d]\w*)\}")

WITHOUT_TEXTS = ("type", "chain", "chain_drop", "rules")


def check_texts(step: CheckedStep, kind: ActionType, settings: Mapping[str, Data], problems: Problems) -> None:
    """Report mistakes in placeholders as warnings: when the bot runs, such a placeholder stays as it is written. A
    missing brace is an error if the action sees the name; otherwise a single brace may be meant.
    """
    reader = reader_of(step, kind, settings, problems)
    for field, text in placed_texts(step, kind, settings):
        known = step.seen.names(field)
        for problem in problems_of_text(str(text.value)):
            is_certain = problem.code == "BRACE_UNCLOSED" and is_meant(problem.placeholder.strip("{ "), known)
            report = reader.error if is_certain else reader.warning
            report(text, problem.code, placed(problem.placeholder, problem.message))
        for name in names_before_braces(str(text.value)):
            if is_meant(name, known):
                message = sentence("brace_never_opened", name=name)
                reader.error(text, "BRACE_UNOPENED", message)


def is_meant(name: str, known: Names) -> bool:
    """Return whether a name is one of those that the action sees, or a slip of one."""
    return starts_in(name, known) or slip_of(names_in(name)[0], tuple(sorted(known))) is not None


def names_before_braces(text: str) -> list[str]:
    """Return the names before closing braces that belong to no placeholder."""
    return _UNOPENED.findall(outline(text, "{")) if "}" in text else []


def replaces(step: CheckedStep, kind: ActionType, settings: Mapping[str, Data]) -> bool | None:
    """Return how placeholders are replaced in an action, as `ActionType.placeholder` has it."""
    default: bool | None = kind.section(settings)["placeholder"]
    return default if step.action.placeholder is None else step.action.placeholder


def reader_of(step: CheckedStep, kind: ActionType, settings: Mapping[str, Data], problems: Problems) -> Reader:
    """Return what reports on the texts of an action. Files of the dialect have braces that nobody replaces in it: where
    they stay as they are written they are no error.
    """
    reader = Warner if replaces(step, kind, settings) is None else Reader
    return reader(step.action.place.file, problems)


class Warner(Reader):
    """Reports errors as warnings."""

    error = Reader.warning


def placed_texts(step: CheckedStep, kind: ActionType, settings: Mapping[str, Data]) -> Iterator[tuple[str, Scalar]]:
    """Emit the texts in which placeholders are replaced, each with its field (C-57)."""
    if replaces(step, kind, settings) is not False:
        for key, value in step.node.pairs:
            yield from ((key.text, text) for text in texts_in(value) if key.text not in WITHOUT_TEXTS)


def texts_in(node: Node) -> Iterator[Scalar]:
    """Yield all texts with braces, also those of the keys: the texts of buttons."""
    if isinstance(node, Scalar):
        if isinstance(node.value, str) and ("{" in node.value or "}" in node.value):
            yield node
    elif isinstance(node, ListNode):
        for item in node.items:
            yield from texts_in(item)
    elif isinstance(node, MapNode):
        for key, value in node.pairs:
            yield from texts_in(key)
            yield from texts_in(value)
