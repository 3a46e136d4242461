"""Reads triggers.yaml and group_triggers.yaml. Scenarios that are not known and patterns that do not compile are
reported and left out.
"""

from collections.abc import Sequence

from scenarios.bot import SECTIONS, Bot, Scenario, Target, Trigger, Triggers
from scenarios.bot.nodes import MapNode, Node, Scalar, is_empty
from scenarios.bot.suggestion import did_you_mean
from scenarios.loader.problem import Problems
from scenarios.loader.reading import Reader, as_int
from scenarios.schema.rules import pattern_problem
from scenarios.words import sentence

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
