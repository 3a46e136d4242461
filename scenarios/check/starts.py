"""Finds what never starts: scenarios to which no trigger leads, by a button or another scenario either, and entries of
triggers before which another one always fires (C-06).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice

from scenarios.bot import SECTIONS, Bot, Place, Scenario, Target, Trigger, Triggers
from scenarios.bot.data import Data
from scenarios.engine.graph import spliced_names
from scenarios.engine.triggers import ALWAYS, compared
from scenarios.loader.files import GROUP_TRIGGERS, TRIGGERS
from scenarios.loader.reading import Problems
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
        yield from (str(one) for one in listed(written))
    elif kind is KEYBOARD:
        for row in listed(written):
            yield from (row,) if isinstance(row, str) else ()  # a placeholder in place of buttons
            for button in listed(row):
                yield from map(str, button.values()) if isinstance(button, Mapping) else ()


def listed(value: Data) -> list[Data]:
    return value if isinstance(value, list) else [] if value is None else [value]


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
