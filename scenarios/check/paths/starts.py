"""Finds scenarios that never start: no trigger leads to them, by a button or another scenario either."""

from collections.abc import Iterator, Mapping
from typing import Any

from scenarios.bot import SECTIONS, Bot, Place, Scenario, Target, Triggers
from scenarios.engine.graph import spliced_names
from scenarios.loader.files import GROUP_TRIGGERS, TRIGGERS
from scenarios.loader.problem import Problems
from scenarios.schema import ActionType, Type
from scenarios.schema.types import KEYBOARD, SCENARIOS
from scenarios.words import sentence

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
        if started is not None and scenario.name not in started:
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
    waiting = [bot.find(name) for name in (*roots, *default_buttons)]
    found: set[str] = set()
    while waiting:
        scenario = waiting.pop()
        if scenario is None or scenario.name in found:
            continue
        found.add(scenario.name)
        names = list(leads(scenario, types))
        if any("{" in name for name in names) or any(action.type not in types for action in scenario.actions):
            return None
        waiting += [bot.find(name, scenario) for name in names]
    return found


def leads(scenario: Scenario, types: Types) -> Iterator[str]:
    """Emit the names of the scenarios to which the actions of this one lead, with placeholders as they are written."""
    for action in scenario.actions:
        yield from spliced_names(action)
        if kind := types.get(action.type):
            for field in kind.fields:
                yield from goals(field.type, action.fields.get(field.name))


def goals(kind: Type, written: Any) -> Iterator[str]:
    """Yield the names of scenarios in a field of this type; buttons have also addresses."""
    if kind is SCENARIOS:
        yield from (str(one) for one in listed(written))
    elif kind is KEYBOARD:
        for row in listed(written):
            yield from (row,) if isinstance(row, str) else ()  # a placeholder in place of buttons
            for button in listed(row):
                yield from map(str, button.values()) if isinstance(button, Mapping) else ()


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]
