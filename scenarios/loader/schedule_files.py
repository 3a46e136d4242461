"""Reads schedule.yaml: what the bot does by itself (C-96).

report: {each: Monday 8:00, scenario: signup.report}
remind: {each: day 18:00, for: people, when: {person.room: {rule: empty}}, scenario: signup.remind}
exam: {before: person.exam, by: 1d, time: 10:00, for: people, scenario: exam.tomorrow}
"""

from scenarios.bot import Bot
from scenarios.bot.data import Data
from scenarios.bot.model import Variable
from scenarios.bot.nodes import MapNode, Node, Scalar, is_empty, plain, plain_mapping
from scenarios.bot.suggestion import did_you_mean
from scenarios.bot.times import PEOPLE, Schedule, ScheduleFault, read_clock, read_duration, read_time
from scenarios.loader.reading import Reader
from scenarios.loader.trigger_files import find_scenario
from scenarios.schema.conditions import condition_complaints, fields_of
from scenarios.words import placed, sentence

FIELDS = ("each", "before", "by", "time", "for", "when", "late", "scenario")
_TARGETS = ("group", "chat", "channel")


def read_schedules(reader: Reader, root: Node | None, bot: Bot) -> dict[str, Schedule]:
    """Return the entries by name. `bot` has the scenarios and variables. What is wrong is reported and left out."""
    found = {}
    for name, node in reader.pairs(root, "schedule.yaml"):
        if (schedule := read_schedule(reader, name, node, bot)) is not None:
            found[name.text] = schedule
    return found


def read_schedule(reader: Reader, name: Scalar, node: Node, bot: Bot) -> Schedule | None:
    fields = {key.text: value for key, value in reader.pairs(node, name.text)}
    for key, _ in node.pairs if isinstance(node, MapNode) else ():
        if key.text not in FIELDS:
            reader.unknown(key, FIELDS, "UNKNOWN_FIELD", sentence("field_schedule"))
    each, before, wanted = fields.get("each"), fields.get("before"), fields.get("scenario")
    text = reader.text(wanted, "scenario")
    if wanted is None or text is None or is_empty(each) == is_empty(before):
        reader.error(name, "MISSING_FIELD", sentence("needs_scenario_either_each", name=name.text))
        return None
    scenario = find_scenario(reader, wanted, text, bot)
    try:
        cron, time = read_cron(reader, each), read_minutes(reader, fields.get("time"))
    except ScheduleFault as fault:
        reader.error(name, "BAD_SCHEDULE", placed(name.text, fault.said))
        return None
    variable = date_variable(reader, before, bot)
    if scenario is None or not (cron or variable):
        return None
    by = seconds(reader, fields.get("by"))
    target = target_of(reader, name, fields.get("for"), PEOPLE if variable else None)
    words = f"{text_of(fields.get('by'))} before {variable}".strip() if variable else text_of(each)
    when = condition(reader, fields.get("when"), bot)
    late = read_late(reader, fields.get("late"))
    return Schedule(name.text, scenario.name, reader.place(name), words, cron, variable, by, time, target, when, late)


def read_late(reader: Reader, node: Node | None) -> bool:
    """Return whether a date that is set too late starts the scenario at once."""
    text = reader.text(node, "late")
    if node is not None and text not in (None, "now", "skip"):
        reader.wrong(node, "late", sentence("now_skip"))
    return text != "skip"


def read_cron(reader: Reader, node: Node | None) -> str:
    """Return the cron expression of `each`, "" without one. Raises ScheduleFault."""
    text = reader.text(node, "each")
    return read_time(text) if text else ""


def read_minutes(reader: Reader, node: Node | None) -> int | None:
    """Return a time of day; YAML reads 10:00 without quotes as the number 600. Raises ScheduleFault."""
    text = reader.text(node, "time")
    return read_clock(text) if text else None


def date_variable(reader: Reader, node: Node | None, bot: Bot) -> str:
    """Return the date variable of a person in `before`; "" if it is missing or something else, which is reported."""
    name = reader.text(node, "before")
    if name is None or node is None:
        return ""
    dates = [one for one, found in bot.declared.items() if found.type == "date" and one.startswith("person.")]
    if name not in dates:
        message = did_you_mean(sentence("before_no_date_person", name=name), name, dates)
        reader.error(node, "UNKNOWN_VARIABLE", message)
        return ""
    return name


def seconds(reader: Reader, node: Node | None) -> int:
    text = reader.text(node, "by")
    duration = read_duration(text) if text else None
    if text and duration is None and node is not None:
        reader.wrong(node, "by", sentence("duration_example_d"))
    return int(duration.total_seconds()) if duration else 0


def target_of(reader: Reader, name: Scalar, node: Node | None, default: str | None) -> Data:
    """Return the people or the chat for which it starts."""
    value = default if node is None or is_empty(node) else plain(node)
    is_named = isinstance(value, dict) and ("group" in value or "chat" in value) and set(value) <= set(_TARGETS)
    if not (value is None or value == PEOPLE or is_named) or (default and value != PEOPLE):
        reader.wrong(node or name, "for", sentence("people_group_name_chat") if not default else PEOPLE)
        return default
    return value


def condition(reader: Reader, node: Node | None, bot: Bot) -> dict[str, Data] | None:
    if node is None or is_empty(node):
        return None
    for place, complaint in condition_complaints(node):
        reader.error(place, "WRONG_TYPE", placed("when", complaint))
    for field in fields_of(node):
        if field.text not in bot.declared:
            known: dict[str, Variable] = dict(bot.declared)
            message = did_you_mean(sentence("when_variables_yaml_has", name=field.text), field.text, known)
            reader.error(field, "UNKNOWN_VARIABLE", message)
    return plain_mapping(node) if isinstance(node, MapNode) else None


def text_of(node: Node | None) -> str:
    return node.text if isinstance(node, Scalar) else ""
