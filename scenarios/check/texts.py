"""Placeholders in the texts of an action: unknown modifiers, and parameters that they refuse (C-51, C-56)."""

from collections.abc import Iterator

from scenarios.check.step import Step
from scenarios.loader.problem import Problems
from scenarios.loader.reading import Reader
from scenarios.nodes import ListNode, MapNode, Node, Scalar
from scenarios.placeholders import problems as problems_of_text
from scenarios.schema import ActionType

WITHOUT_TEXTS = ("type", "chain", "chain_drop", "rules")


def check_texts(step: Step, kind: ActionType, problems: Problems) -> None:
    """Reports mistakes in placeholders as warnings: when the bot runs, such a placeholder stays as it is written."""
    active = kind.placeholder if step.action.placeholder is None else step.action.placeholder
    if not active:
        return
    reader = Reader(step.action.place.file, problems)
    for key, value in step.node.pairs:
        for text in texts_in(value) if key.text not in WITHOUT_TEXTS else ():
            for problem in problems_of_text(str(text.value)):
                reader.warning(text, problem.code, f"{problem.placeholder}: {problem.message}")


def texts_in(node: Node) -> Iterator[Scalar]:
    """All texts with braces, also those of the keys: the texts of buttons."""
    if isinstance(node, Scalar):
        if isinstance(node.value, str) and "{" in node.value:
            yield node
    elif isinstance(node, ListNode):
        for item in node.items:
            yield from texts_in(item)
    elif isinstance(node, MapNode):
        for key, value in node.pairs:
            yield from texts_in(key)
            yield from texts_in(value)
