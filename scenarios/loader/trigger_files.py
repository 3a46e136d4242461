"""Reads the files about what starts scenarios: triggers.yaml, group_triggers.yaml, and schedule.yaml, what the bot
does by itself (C-96). Scenarios that are not known and patterns that do not compile are reported and left out.

    report: {each: Monday 8:00, scenario: signup.report}
    remind: {each: day 18:00, for: people, when: {person.room: {rule: empty}}, scenario: signup.remind}
    exam: {before: person.exam, by: 1d, time: 10:00, for: people, scenario: exam.tomorrow}
"""

from collections.abc import Sequence

from couriers.channel import channels
from scenarios.bot import SECTIONS, Bot, Scenario, Target, Trigger, Triggers
from scenarios.bot.data import Data, MapNode, Node, Scalar, is_empty, plain, plain_mapping, text_of
from scenarios.bot.model import Variable
from scenarios.bot.suggestion import did_you_mean
from scenarios.bot.times import PEOPLE, Schedule, ScheduleFault, read_clock, read_duration, read_time
from scenarios.loader.reading import Problems, Reader, as_int
from scenarios.schema.conditions import condition_complaints, fields_of
from scenarios.schema.rules import pattern_problem
from scenarios.words import placed, sentence

TARGET_FIELDS = ("scenario", "from_chat", "continue", "forward_enabled", "bot_enabled")
CHAT_WORDS = ("private", "group", "all")
_WITHOUT_KEY = ("*", "default")


def read_triggers(file: str, root: Node | None, bot: Bot, problems: Problems) -> Triggers:
    """Return the triggers of one file. `bot` has the scenarios."""
    return TriggerReader(file, bot, problems).read(root)


class TriggerReader(Reader):
    """Reads one trigger file."""

    def __init__(self, file: str, bot: Bot, problems: Problems) -> None:
        super().__init__(file, problems)
        self._bot = bot

    def read(self, root: Node | None) -> Triggers:
        sections: dict[str, dict[str, tuple[Trigger, ...]]] = {
            name: dict.fromkeys(kinds, ()) for name, kinds in SECTIONS.items()
        }
        for key, node in self.pairs(root, sentence("file_triggers")):
            if key.text in SECTIONS:
                sections[key.text].update(self._section(key.text, node))
            elif not is_empty(node):
                self.unknown(key, tuple(SECTIONS), "UNKNOWN_SECTION", sentence("kind_event", words=", ".join(SECTIONS)))
        return Triggers(**sections)

    def _section(self, section: str, node: Node) -> dict[str, tuple[Trigger, ...]]:
        kinds: dict[str, tuple[Trigger, ...]] = {}
        for key, value in self.pairs(node, section):
            if key.text in SECTIONS[section]:
                kinds[key.text] = self._kind(key, value)
            elif not is_empty(value):
                known = SECTIONS[section]
                self.unknown(
                    key, known, "UNKNOWN_SECTION", sentence("kind_trigger", section=section, words=", ".join(known))
                )
        return kinds

    def _kind(self, kind: Scalar, node: Node) -> tuple[Trigger, ...]:
        if kind.text in _WITHOUT_KEY:
            found = [self._trigger("", kind, node)]
        else:
            pairs = self.pairs(node, kind.text)
            usable = [pair for pair in pairs if kind.text != "regex" or self._compiles(pair[0])]
            found = [self._trigger(key.text, key, value) for key, value in usable]
        return tuple(trigger for trigger in found if trigger.targets)

    def _compiles(self, key: Scalar) -> bool:
        if complaint := pattern_problem(key.text):
            self.error(key, "BAD_PATTERN", sentence("pattern_cannot_used_skipped", text=complaint))
        return not complaint

    def _trigger(self, key: str, place: Scalar, node: Node) -> Trigger:
        targets = [self._target(item) for item in self.one_or_many(node)]
        return Trigger(key, tuple(target for target in targets if target is not None), self.place(place))

    def _target(self, node: Node) -> Target | None:
        if isinstance(node, MapNode):
            return self._full_target(node)
        scenario = self._scenario(node)
        return Target(scenario.name) if scenario else None

    def _full_target(self, node: MapNode) -> Target | None:
        for key, _ in node.pairs:
            if key.text not in TARGET_FIELDS:
                self.unknown(key, TARGET_FIELDS, "UNKNOWN_FIELD", sentence("field_trigger_entry"))
        if is_empty(name := node.get("scenario")):
            self.error(node, "MISSING_FIELD", sentence("entry_names_no_scenario"))
        if (scenario := self._scenario(name)) is None:
            return None
        return Target(
            scenario.name,
            self._chats(node.get("from_chat")),
            self.flag(node.get("continue"), "continue") or False,
            self.flag(node.get("forward_enabled"), "forward_enabled"),
            self.flag(node.get("bot_enabled"), "bot_enabled"),
        )

    def _scenario(self, node: Node | None) -> Scenario | None:
        name = self.text(node, sentence("trigger_scenario"))
        if name is None or node is None:
            return None
        return find_scenario(self, node, name, self._bot)

    def _chats(self, node: Node | None) -> tuple[int | str, ...] | None:
        if node is None or is_empty(node):
            return None
        chats = [self._chat(item) for item in self.one_or_many(node)]
        return tuple(chat for chat in chats if chat is not None)

    def _chat(self, node: Node) -> int | str | None:
        if isinstance(node, Scalar):
            if node.text in CHAT_WORDS:
                return node.text
            if (number := as_int(node)) is not None:
                return number
        self.wrong(node, "from_chat", sentence("chat_id_one", words=", ".join(CHAT_WORDS)))
        return None


def find_scenario(reader: Reader, node: Node, name: str, bot: Bot, caller: Scenario | None = None) -> Scenario | None:
    """Return the scenario that a name means; reports a name that none or several have, unless it may be in a file that
    could not be read.
    """
    if found := bot.find(name, caller):
        return found
    if candidates := bot.short_names.get(name, ()):
        message = sentence("name_several_scenarios", name=name, words=", ".join(candidates))
        reader.error(node, "AMBIGUOUS_SCENARIO", message)
    elif not reader.problems.may_have(name):
        known: Sequence[str] = [*bot.short_names, *(one.name for one in bot.scenarios.values() if not one.is_part)]
        reader.error(node, "UNKNOWN_SCENARIO", did_you_mean(sentence("no_scenario", name=name), name, known))
    return None


SCHEDULE_FIELDS = ("each", "before", "by", "time", "for", "when", "late", "scenario")
_SCHEDULE_TARGETS = ("group", "chat", "channel")


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
        if key.text not in SCHEDULE_FIELDS:
            reader.unknown(key, SCHEDULE_FIELDS, "UNKNOWN_FIELD", sentence("field_schedule"))
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
    is_named = (
        isinstance(value, dict) and ("group" in value or "chat" in value) and set(value) <= set(_SCHEDULE_TARGETS)
    )
    if not (value is None or value == PEOPLE or is_named) or (default and value != PEOPLE):
        reader.wrong(node or name, "for", sentence("people_group_name_chat") if not default else PEOPLE)
        return default
    channel = node.get("channel") if isinstance(node, MapNode) else None
    if isinstance(channel, Scalar) and channel.text not in channels():
        said = did_you_mean(sentence("no_channel", name=channel.text), channel.text, channels())
        reader.error(channel, "UNKNOWN_CHANNEL", said)
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
