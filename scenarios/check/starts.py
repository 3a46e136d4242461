"""Finds what never starts: scenarios to which no trigger leads, by a button or another scenario either, and entries of
triggers before which another one always fires (C-06); and what the events that start a scenario do not have: fields of
a message behind a schedule, fields of one kind of event behind another one, and fields that only some people and
messages have (C-103).
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import islice

from msgspec import Struct

from scenarios.bot import SECTIONS, Bot, Place, Scenario, Target, Trigger, Triggers
from scenarios.bot.button_data import scenario_of
from scenarios.bot.data import Data, Scalar
from scenarios.bot.event_fields import FIELDS
from scenarios.bot.times import Schedule
from scenarios.check.names import placed_texts
from scenarios.check.visible import CheckedStep
from scenarios.engine.graph import spliced_names
from scenarios.engine.triggers import ALWAYS, compared
from scenarios.loader.files import GROUP_TRIGGERS, TRIGGERS
from scenarios.loader.reading import Problems, Reader
from scenarios.placeholders.parser import mentions
from scenarios.placeholders.values import as_list, names_in
from scenarios.schema import ActionType, Type
from scenarios.schema.types import KEYBOARD, SCENARIOS
from scenarios.words import Sentence, sentence

Types = Mapping[str, ActionType]


def check_starts(bot: Bot, types: Types, problems: Problems) -> None:
    """Warns of scenarios that nothing leads to. Nothing is said where a name is not known: then it may be theirs."""
    if problems.has_error_in(TRIGGERS, GROUP_TRIGGERS) or problems.unread or not bot.scenarios:
        return
    roots = [target.scenario for file in (bot.triggers, bot.group_triggers) for target in targets_of(file)]
    roots += [one.scenario for one in bot.schedules.values()]
    if not roots:
        problems.warning(Place(TRIGGERS), "NEVER_STARTED", sentence("no_trigger_starts_scenario"))
        return
    started = reached(bot, types, roots)
    for scenario in bot.scenarios.values():
        if started is not None and scenario.name not in started and not scenario.is_part:
            message = sentence("nothing_starts_no_trigger", scenario=scenario.name)
            problems.warning(scenario.place, "NEVER_STARTED", message)


def targets_of(file: Triggers) -> Iterator[Target]:
    for section in SECTIONS:
        for triggers in file.section(section).values():
            for trigger in triggers:
                yield from trigger.targets


def reached(bot: Bot, types: Types, roots: list[str]) -> set[str] | None:
    """Return the full names of all scenarios that the roots lead to; None if that is known only when the bot runs."""
    section = bot.settings.get("send")
    default_buttons = goals(KEYBOARD, section.get("inline")) if isinstance(section, Mapping) else ()
    return closure(bot, types, [*roots, *default_buttons], lambda scenario: leads(scenario, types))


def closure(bot: Bot, types: Types, roots: list[str], follow: Callable[[Scenario], Iterable[str]]) -> set[str] | None:
    """Return the full names of the scenarios that follow from the roots; None if only the running bot knows that."""
    waiting = [bot.find(name) for name in roots]
    found: set[str] = set()
    while waiting:
        scenario = waiting.pop()
        if scenario is None or scenario.name in found:
            continue
        found.add(scenario.name)
        names = list(follow(scenario))
        if any("{" in name for name in names) or any(action.type not in types for action in scenario.actions):
            return None
        waiting += [bot.find(name, scenario) for name in names]
    return found


def spliced(scenario: Scenario) -> Iterator[str]:
    """Emit the names of the scenarios that run for the same event."""
    for action in scenario.actions:
        yield from (*spliced_names(action), *action.handlers)


def leads(scenario: Scenario, types: Types) -> Iterator[str]:
    """Emit the names of the scenarios to which the actions of this one lead, with placeholders as they are written."""
    yield from spliced(scenario)
    for action in scenario.actions:
        if kind := types.get(action.type):
            for field in kind.fields:
                yield from goals(field.type, action.fields.get(field.name))


def goals(kind: Type, written: Data) -> Iterator[str]:
    """Yield the names of scenarios in a field of this type; buttons have also addresses."""
    if kind is SCENARIOS:
        yield from (str(one) for one in as_list(written))
    elif kind is KEYBOARD:
        for row in as_list(written):
            yield from (row,) if isinstance(row, str) else ()  # a placeholder in place of buttons
            for button in as_list(row):
                yield from map(scenario_of, map(str, button.values())) if isinstance(button, Mapping) else ()


_INCLUDES = {
    "starts_with": ("begins_line_entry_never", str.startswith),
    "contains": ("contains_line_entry_never", str.__contains__),
}
"""Kind → how a longer text includes a shorter one: the code of the sentence, and a function. Any other kind compares
whole texts.
"""

_MOST_COMPARED = 1000
"""Entries of one kind that later ones are compared with, so that the check of a large file ends."""


def check_triggers(bot: Bot, problems: Problems) -> None:
    """Report the entries that never fire. Whether a pattern fires cannot be known."""
    for file, default in ((bot.triggers, "private"), (bot.group_triggers, "group")):
        for section, kinds in SECTIONS.items():
            for kind in kinds:
                if kind != "regex":
                    check_kind(section, kind, file.section(section).get(kind, ()), default, problems)


def check_kind(section: str, kind: str, triggers: tuple[Trigger, ...], default: str, problems: Problems) -> None:
    """Check the triggers of one kind. `default`: the chats that the file serves."""
    before: dict[str, list[Trigger]] = {}
    for trigger in triggers:
        text = compared(section, kind, trigger.key)
        if not text and kind not in (*ALWAYS, "exact"):
            message = sentence("has_nothing_compare_entry", key=trigger.key)
            problems.error(trigger.place, "EMPTY_TRIGGER", message)
        elif first := preceding(kind, before, text, trigger, default):
            problems.error(trigger.place, "TRIGGER_NEVER_FIRES", why_not(section, kind, text, trigger, first))
        else:
            before.setdefault(text, []).append(trigger)


def preceding(
    kind: str, before: Mapping[str, list[Trigger]], text: str, trigger: Trigger, default: str
) -> Trigger | None:
    """Return the earlier entry that fires whenever this one would."""
    texts = [text]
    if kind in _INCLUDES:
        texts = [shorter for shorter in islice(before, _MOST_COMPARED) if _INCLUDES[kind][1](text, shorter)]
    earlier = (one for found in texts for one in before.get(found, ()))
    wanted = trigger.targets
    return next((one for one in earlier if all(any(covers(a, b, default) for a in one.targets) for b in wanted)), None)


def covers(first: Target, second: Target, default: str) -> bool:
    """Return whether the first target takes every event that the second would take."""
    chats, wanted = (set((default,) if one.from_chat is None else one.from_chat) for one in (first, second))
    takes_people = bool(first.forward_enabled) >= bool(second.forward_enabled)
    takes_bots = bool(first.bot_enabled) >= bool(second.bot_enabled)
    return ("all" in chats or wanted <= chats) and takes_people and takes_bots


def why_not(section: str, kind: str, text: str, trigger: Trigger, first: Trigger) -> Sentence:
    """Return the message about an entry that never fires."""
    code = _INCLUDES[kind][0] if kind in _INCLUDES else ""
    if compared(section, kind, first.key) == text:
        code = "same_line_only_letters" if section == "callback" else "same_line_capitals_do"
    return sentence(code, key=trigger.key, other=first.key, line=first.place.line)


SCHEDULE = "schedule"
"""The kind of the events of schedule.yaml, beside those of triggers."""

_OF_A_MESSAGE = (
    *("event_", "message_id", "attachments", "callback_", "reply_", "forward_", "joined_"),
    *("first_name", "last_name", "username", "language_code"),
)
_WITH_TEXT = ("text", "edited", "answer", "reply", "inline_query")
_OF_MEMBERS = ("new_member", "left_member", "changed_member")
_OF_ACCOUNTS = ("text", "edited", "callback", "inline_query", "join_request", *_OF_MEMBERS)
_ONLY_OF: Mapping[str, Collection[str]] = {
    **dict.fromkeys(("event_text", "event_text_html", "event_text_markdown"), _WITH_TEXT),
    **dict.fromkeys(("first_name", "last_name", "username", "language_code", "is_bot"), _OF_ACCOUNTS),
    **dict.fromkeys(("chat_type", "chat_title"), _OF_ACCOUNTS),
    **dict.fromkeys(("callback_data", "callback_id", "button_value"), ("callback",)),
    **dict.fromkeys(("answer_value", "answer_state", "answer_by"), ("answer",)),
    **dict.fromkeys(("thread_id", "thread_inbox"), ("reply",)),
    **dict.fromkeys(("inline_query_id", "inline_query_offset"), ("inline_query",)),
    **dict.fromkeys(("delivery_id", "delivery_text"), ("answer", "reply")),
    **dict.fromkeys(("schedule", "due"), (SCHEDULE,)),
    "event_date": (*SECTIONS,),
    "message_id": ("text", "edited", "callback", "new_member", "left_member"),
    "attachments": ("text", "edited"),
    "edit_date": ("edited",),
    "bio": ("join_request",),
}
"""Field of the event → the kinds of events that may have it."""

_ONLY_OF_PREFIX: Mapping[str, Collection[str]] = {
    "joined_": ("new_member",),
    "initiator_": _OF_MEMBERS,
    "member_": ("changed_member",),
    "invite_link": ("new_member", "join_request"),
}
"""The same for all fields that begin so."""

_OF_SOME = (
    *("directory_", "reply_", "forward_", "invite_link", "media_group_id", "bio", "member_title", "member_until"),
    *("chat_username", "topic_id", "key_scopes", "origin", "dialog_id", "user_state"),
)
"""Beginnings of fields that only some people, groups and messages have, in any kind of event."""

_OF_SOME_ACCOUNTS = ("username", "last_name", "language_code")
"""Ends of fields that only some accounts have."""


class Starts(Struct, frozen=True):
    """The scenarios that only schedules start; those of them that are never for a person or a chat; for each kind of
    event those that one may start; those that an event of a private chat may start; those that only schedules for a
    group of the directory start. `tested`: the fields that conditions of the bot name, so its author knows that they
    may be missing.
    """

    scheduled: frozenset[str] = frozenset()
    for_nobody: frozenset[str] = frozenset()
    by_kind: Mapping[str, Collection[str]] = {}
    private: Collection[str] = ()
    for_members: Collection[str] = ()
    tested: frozenset[str] = frozenset()


def starts_of(bot: Bot, types: Types) -> Starts:
    roots = [target.scenario for file in (bot.triggers, bot.group_triggers) for target in targets_of(file)]
    by_people = reached(bot, types, roots)
    schedules = bot.schedules.values()
    by_time = reached(bot, types, [one.scenario for one in schedules])
    for_chats = reached(bot, types, [one.scenario for one in schedules if one.target or one.before])
    if by_people is None or by_time is None or for_chats is None:
        return Starts()
    by_kind = {kind: _started(bot, types, _roots(bot, types, kind)) for kind in (*SECTIONS, SCHEDULE)}
    others = _started(bot, types, [one.scenario for one in schedules if not _is_for_members(one)])
    return Starts(
        frozenset(by_time - by_people),
        frozenset(by_time - by_people - for_chats),
        by_kind,
        _started(bot, types, (target.scenario for target in targets_of(bot.triggers))),
        by_time - by_people - {*others},
        frozenset(_tested(bot)),
    )


def _started(bot: Bot, types: Types, roots: Iterable[str]) -> Collection[str]:
    return closure(bot, types, list(roots), spliced) or ()


def _is_for_members(schedule: Schedule) -> bool:
    return isinstance(schedule.target, Mapping) and bool(schedule.target.get("group"))


def _roots(bot: Bot, types: Types, kind: str) -> Iterator[str]:
    """Yield the names of the scenarios that an event of this kind starts: those of its triggers, or of buttons."""
    if kind == SCHEDULE:
        yield from (one.scenario for one in bot.schedules.values())
        return
    for file in (bot.triggers, bot.group_triggers):
        yield from (target.scenario for each in file.section(kind).values() for one in each for target in one.targets)
    if kind != "callback":
        return
    for action in (action for scenario in bot.scenarios.values() for action in scenario.actions):
        for field in types[action.type].fields if action.type in types else ():
            yield from goals(field.type, action.fields.get(field.name)) if field.type is KEYBOARD else ()


def _tested(bot: Bot) -> Iterator[str]:
    for action in (action for scenario in bot.scenarios.values() for action in scenario.actions):
        cases = action.fields.get("cases")
        conditions = [one.get("when") for one in cases if isinstance(one, Mapping)] if isinstance(cases, list) else []
        for condition in (action.fields.get("when"), *conditions):
            yield from _named(condition)


def _named(condition: Data) -> Iterator[str]:
    """Yield the fields that a condition names, also in its groups."""
    if isinstance(condition, list):
        for one in condition:
            yield from _named(one)
    elif isinstance(condition, Mapping):
        for name, value in condition.items():
            yield str(name)
            yield from _named(value) if name in ("any", "all", "not") else ()


def check_event(step: CheckedStep, kind: ActionType, bot: Bot, starts: Starts, problems: Problems) -> None:
    """Report what the event that starts a step does not have."""
    is_scheduled = step.scenario.name in starts.scheduled
    if is_scheduled:
        check_scheduled(step, kind, bot, problems)
    if step.scenario.name in starts.for_nobody:
        check_for_nobody(step, problems)
    kinds = [one for one, started in starts.by_kind.items() if step.scenario.name in started]
    reader, is_conditional = Reader(step.action.place.file, problems), bool(step.action.fields.get("when"))
    for text, name, source in named_of_event(step, kind, bot, tuple(FIELDS)):
        if name not in FIELDS or (is_scheduled and name.startswith(_OF_A_MESSAGE)):
            continue
        lacking = [one for one in kinds if one not in kinds_with(name, kinds)]
        if lacking and (lacking == kinds or not is_conditional):
            said = sentence("event_has_no_field", source=source, kind=lacking[0], name=name)
            reader.warning(text, "NOT_OF_TRIGGER", said)
        elif kinds and not is_conditional and is_of_some(name, step.scenario.name, starts):
            reader.warning(text, "MAY_BE_MISSING", sentence("not_every_event_has", source=source, name=name))


def kinds_with(name: str, kinds: Collection[str]) -> Collection[str]:
    """Return the kinds of events that may have a field: all `kinds`, if nothing is known."""
    prefix = next((one for one in _ONLY_OF_PREFIX if name.startswith(one)), "")
    return _ONLY_OF.get(name, _ONLY_OF_PREFIX.get(prefix, kinds))


def is_of_some(name: str, scenario: str, starts: Starts) -> bool:
    """Return whether only some of the events that start a scenario have a field, and no condition of the bot says so.
    A condition about one field of a family, such as `directory_id`, is one about all.
    """
    if name == "directory_id" and scenario in starts.for_members:
        return False
    family = next((one for one in _OF_SOME if name.startswith(one)), name)
    is_rare = name.startswith(_OF_SOME) or name.endswith(_OF_SOME_ACCOUNTS)
    if not is_rare and not (name == "chat_title" and scenario in starts.private):
        return False
    return not any(one.partition(".")[0].startswith(family) for one in starts.tested)


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
