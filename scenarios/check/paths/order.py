"""Finds chains that do otherwise than they read: questions that are asked at once, failures that nothing reports,
answers to a press that come too late, texts that are never shown (C-102).
"""

from collections.abc import Iterator, Mapping
from itertools import pairwise

from scenarios.bot import NAMED, Action, Bot, Place, Scenario
from scenarios.engine.graph import SPLICING, spliced_names
from scenarios.loader.problem import Problems
from scenarios.schema import ActionType
from scenarios.schema.questions import ASKING
from scenarios.words import sentence

Types = Mapping[str, ActionType]

_SAYING = ("send", "remove", "typing", "answer_press")
"""Actions whose failure is seldom reported to the person: the report would take the same way."""

_WITHOUT_TEXT = ("sign_in", "sign_out")
"""Operations of `job` that return no text."""


def check_order(bot: Bot, problems: Problems) -> None:
    for scenario in bot.scenarios.values():
        for action, first in asked_at_once(bot, scenario):
            problems.error(
                action.place,
                "ASKED_AT_ONCE",
                sentence("question_line_asked_once", line=first.line),
            )
        for action, before in untold(scenario.actions):
            problems.warning(
                action.place,
                "FAILURE_NOT_TOLD",
                sentence("does_not_run_if", line=before.line),
            )


def asked_at_once(bot: Bot, scenario: Scenario) -> Iterator[tuple[Action, Place]]:
    """Yield each question that waits for nothing, with an earlier one. Conditions may choose between both."""
    asked: Place | None = None
    for action in scenario.actions:
        if _asks_first(bot, scenario, action) and not action.fields.get("when"):
            if asked and action.chain is None:
                yield action, asked
            asked = action.place


def _asks_first(bot: Bot, scenario: Scenario, action: Action) -> bool:
    """Return whether an action asks, or splices in a scenario whose first action does."""
    if action.type != "scenario":
        return action.type in ASKING
    parts = [bot.find(name, scenario) for name in spliced_names(action)]
    return any(part.actions[0].type in ASKING for part in parts if part and part.actions)


def untold(actions: tuple[Action, ...]) -> Iterator[tuple[Action, Place]]:
    """Yield the actions with `chain: failed` behind one with `chain: completed`, with the action before both."""
    for number, action in enumerate(actions[2:], 2):
        first, second = actions[number - 2], actions[number - 1]
        after = actions[number + 1].chain if number + 1 < len(actions) else None
        if action.after or first.on_failure or second.after:
            continue
        is_else = action.chain == NAMED["failed"] and second.chain == NAMED["completed"]
        is_told = "drop" in (after or ()) or first.type in (*_SAYING, *SPLICING) or second.chain_drop
        if is_else and not is_told:
            yield action, first.place


def check_replaced_texts(bot: Bot, types: Types, problems: Problems) -> None:
    """Warns of each text that the result `text` of the action before always replaces (C-32)."""
    for scenario in bot.scenarios.values():
        for before, action in pairwise(scenario.actions):
            kind = types.get(before.type)
            returns = kind and "text" in kind.returns and before.fields.get("operation") not in _WITHOUT_TEXT
            is_replaced = returns and action.chain == NAMED["completed"] and not action.after
            if is_replaced and action.type in ("send", *ASKING) and action.fields.get("text"):
                problems.warning(action.place, "TEXT_REPLACED", sentence("text_is_replaced", action=before.type))


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
        if waiting is None and (action.type in ASKING or (kind and kind.tube)):
            waiting = action
