"""Finds chains that do otherwise than they read: questions that are asked at once, failures that nothing reports,
answers to a press that come too late (C-102), and fields that the event of a schedule or of a press does not have.
"""

from collections.abc import Collection, Iterator, Mapping

from msgspec import Struct

from scenarios.bot import NAMED, SECTIONS, Action, Bot, Place, Scenario
from scenarios.bot.nodes import Scalar
from scenarios.check.paths.starts import closure, goals, reached, spliced, targets_of
from scenarios.check.step import CheckedStep
from scenarios.check.texts import placed_texts
from scenarios.engine.graph import SPLICING, spliced_names
from scenarios.loader.problem import Problems
from scenarios.loader.reading import Reader
from scenarios.placeholders.fields import names_in
from scenarios.placeholders.mentions import mentions
from scenarios.schema import ActionType
from scenarios.schema.questions import ASKING
from scenarios.schema.types import KEYBOARD
from scenarios.words import sentence

Types = Mapping[str, ActionType]

_SAYING = ("send", "remove", "typing", "answer_press")
"""Actions whose failure is seldom reported to the person: the report would take the same way."""

_OF_A_MESSAGE = (
    *("event_", "message_id", "attachments", "callback_", "reply_", "is_reply", "forward_", "joined_"),
    *("first_name", "last_name", "username", "language_code"),
)
_WITH_TEXT = ("text", "edited", "answer", "reply", "inline_query")
_ONLY_OF: Mapping[str, Collection[str]] = {
    **dict.fromkeys(("event_text", "event_text_html", "event_text_markdown"), _WITH_TEXT),
    **dict.fromkeys(("callback_data", "callback_id"), ("callback",)),
    **dict.fromkeys(("joined_first_name", "joined_user_id", "joined_username"), ("new_member",)),
    **dict.fromkeys(("answer_value", "answer_state", "answer_by"), ("answer",)),
    **dict.fromkeys(("thread_id", "thread_inbox"), ("reply",)),
    **dict.fromkeys(("inline_query_id", "inline_query_offset"), ("inline_query",)),
    "delivery_text": ("answer", "reply"),
    "edit_date": ("edited",),
    "bio": ("join_request",),
}
"""Field of the event → the kinds of events that always have it."""


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


class Starts(Struct, frozen=True):
    """The scenarios that only schedules start; those of them that are never for a person or a chat; for each kind of
    event those that one may start.
    """

    scheduled: frozenset[str] = frozenset()
    for_nobody: frozenset[str] = frozenset()
    by_kind: Mapping[str, Collection[str]] = {}


def starts_of(bot: Bot, types: Types) -> Starts:
    roots = [target.scenario for file in (bot.triggers, bot.group_triggers) for target in targets_of(file)]
    by_people = reached(bot, types, roots)
    schedules = bot.schedules.values()
    by_time = reached(bot, types, [one.scenario for one in schedules])
    for_chats = reached(bot, types, [one.scenario for one in schedules if one.target or one.before])
    if by_people is None or by_time is None or for_chats is None:
        return Starts()
    by_kind = {kind: closure(bot, types, list(_roots(bot, types, kind)), spliced) or () for kind in SECTIONS}
    return Starts(frozenset(by_time - by_people), frozenset(by_time - by_people - for_chats), by_kind)


def _roots(bot: Bot, types: Types, kind: str) -> Iterator[str]:
    """Yield the names of the scenarios that an event of this kind starts: those of its triggers, or of buttons."""
    for file in (bot.triggers, bot.group_triggers):
        yield from (target.scenario for each in file.section(kind).values() for one in each for target in one.targets)
    if kind != "callback":
        return
    for action in (action for scenario in bot.scenarios.values() for action in scenario.actions):
        for field in types[action.type].fields if action.type in types else ():
            yield from goals(field.type, action.fields.get(field.name)) if field.type is KEYBOARD else ()


def check_event(step: CheckedStep, kind: ActionType, bot: Bot, starts: Starts, problems: Problems) -> None:
    """Report what the event that starts a step does not have."""
    if step.scenario.name in starts.scheduled:
        check_scheduled(step, kind, bot, problems)
    if step.scenario.name in starts.for_nobody:
        check_for_nobody(step, problems)
    kinds = [one for one, started in starts.by_kind.items() if step.scenario.name in started]
    reader = Reader(step.action.place.file, problems)
    for text, name, source in named_of_event(step, kind, bot, tuple(_ONLY_OF)):
        lacking = [one for one in kinds if one not in _ONLY_OF.get(name, kinds)]
        if lacking and (lacking == kinds or not step.action.fields.get("when")):
            said = sentence("event_has_no_field", source=source, kind=lacking[0], name=name)
            reader.warning(text, "NOT_OF_TRIGGER", said)


def check_for_nobody(step: CheckedStep, problems: Problems) -> None:
    """Report a message that has nobody to go to: a schedule without `for` has no chat."""
    if step.action.type == "send" and step.node.get("to") is None:
        Reader(step.action.place.file, problems).error(step.node, "NOT_OF_SCHEDULE", sentence("schedule_has_no_chat"))


def check_scheduled(step: CheckedStep, kind: ActionType, bot: Bot, problems: Problems) -> None:
    """Report what only a message has, in an action that only a schedule starts."""
    reader = Reader(step.action.place.file, problems)
    reply = step.node.get("message_reply")
    if reply is not None and kind.read(step.action).fields.get("message_reply") is True:
        reader.error(reply, "NOT_OF_SCHEDULE", sentence("message_reply_schedule_has_no"))
    for text, name, source in named_of_event(step, kind, bot, _OF_A_MESSAGE):
        reader.error(text, "NOT_OF_SCHEDULE", sentence("schedule_has_no_message", source=source, name=name))


def named_of_event(
    step: CheckedStep, kind: ActionType, bot: Bot, prefixes: tuple[str, ...]
) -> Iterator[tuple[Scalar, str, str]]:
    """Yield each text that needs a field of the event with one of these beginnings, the field, and the placeholder."""
    for field, text in placed_texts(step, kind, bot.settings):
        own = step.seen.own - {field} | step.seen.chain
        for one in mentions(str(text.value)):
            name = names_in(one.path)[0]
            if name.startswith(prefixes) and name not in own and not one.is_optional:
                yield text, name, one.source


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
