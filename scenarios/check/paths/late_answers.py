"""Finds answers to a press that come too late: a press is answered without a text as soon as its run waits (C-102)."""

from collections.abc import Iterator, Mapping

from scenarios.bot import Action, Bot
from scenarios.loader.problem import Problems
from scenarios.schema import ActionType
from scenarios.words import sentence

Types = Mapping[str, ActionType]


def check_late_answers(bot: Bot, types: Types, problems: Problems) -> None:
    """Warns of each `answer_press` that a chain puts behind an action that waits for people or other systems."""
    for scenario in bot.scenarios.values():
        for action, waiting in late_answers(scenario.actions, types):
            message = sentence("press_answered_without_text", action=waiting.type, line=waiting.place.line)
            problems.warning(action.place, "ANSWER_TOO_LATE", message)


def late_answers(actions: tuple[Action, ...], types: Types) -> Iterator[tuple[Action, Action]]:
    """Yield each late answer with the action before it that waits first."""
    waiting: Action | None = None
    for action in actions:
        if action.chain is None:
            waiting = None
        if action.type == "answer_press" and waiting:
            yield action, waiting
        kind = types.get(action.type)
        if waiting is None and (action.type == "ask" or (kind and kind.tube)):
            waiting = action
