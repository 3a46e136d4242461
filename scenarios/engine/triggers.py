"""Triggers: which scenarios an event starts. Pure; compiled once per version of a bot.

Guarantees: kinds are tried in the order exact, state, regex, starts_with, contains, `"*"`, and within a kind the order
of the file decides; case is ignored. A broken pattern is reported and skipped, the others work. Authors' patterns run
with a time limit. The first entry that matches ends the search, unless one of its scenarios says `continue`.

Two bots may answer in one chat: one of a school's own, and the dialog of teachers beside it (W-44).

    an event ─▶ a trigger of the own bot other than `*` ─▶ a trigger of the dialog other than `*` ─▶ `*` of the own bot

So the commands of teachers work beside every bot. A bot that has one of them itself answers it; one whose settings.yaml
says `teacher: {enabled: false}`, as a copy of the dialog does, has no dialog beside it.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from core.model.text.characters import nfc
from scenarios import bot
from scenarios.bot import Bot, BotCommand
from scenarios.bot.button_data import JUMP, is_of_list, jump, jump_data, normalise, scenario_of
from scenarios.bot.data import Data
from scenarios.bot.event_fields import Event
from scenarios.bot.new_bot import TEACHER
from scenarios.bot.patterns import Pattern, PatternRefused, PatternTimeout, compile_pattern
from scenarios.words import Text, placed, sentence

ALWAYS = ("*", "default")
_ADDRESSED = re.compile(r"\A(/\w+)@\w+", re.ASCII)
"""In groups Telegram adds the bot's name to a command of the menu: /help@school_bot."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The scenarios to run, in order, each once; where their triggers are written, "" for a button that names its
    scenario; and warnings for the log. `is_specific`: whether more than `*` has found them.
    """

    scenarios: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    warnings: tuple[Text, ...] = ()
    is_specific: bool = False


@dataclass(frozen=True, slots=True)
class CompiledTarget:
    """A scenario, and the chats in which an entry starts it: ids, `private`, `group` or `all`. `forwards`, `bots`:
    whether forwarded messages and bots start it, too (C-17).
    """

    scenario: str
    chats: frozenset[str]
    continues: bool
    forwards: bool = False
    bots: bool = False

    def allows(self, chat: frozenset[str], event: Event) -> bool:
        if (event.get("is_forward") and not self.forwards) or (event.get("is_bot") and not self.bots):
            return False
        return not self.chats.isdisjoint(chat)


@dataclass(frozen=True, slots=True)
class TriggerEntry:
    """One line of a trigger file: what is compared, and the scenarios. `where` is its place, for warnings."""

    kind: str
    wanted: str
    targets: tuple[CompiledTarget, ...]
    where: str
    pattern: Pattern | None = None


class CompiledTriggers:
    """The compiled triggers of a bot. `complaints`: the entries that were skipped, and why."""

    def __init__(self, source: Bot) -> None:
        self.complaints: list[Text] = []
        self._bot = source
        names = {jump_data(name): name for name in (*source.scenarios, *source.short_names)}
        self._shortened = {data: name for data, name in names.items() if data != JUMP + name}
        private = self._compiled(source.triggers, "private")
        group = self._compiled(source.group_triggers, "group")
        self._entries = {
            "private": {name: _merged(name, private[name], group[name]) for name in bot.SECTIONS},
            "group": {name: _merged(name, group[name], private[name]) for name in bot.SECTIONS},
        }

    def select(self, event: Event, state: str = "") -> Selection:
        """Return the scenarios for an event of a person in this state. No match is a warning (C-12), unless the bot has
        no triggers for what few bots look at, such as edits.

        `triggers.yaml` serves private chats, `group_triggers.yaml` all others, unless `from_chat` says otherwise. A
        button that names its scenario needs no trigger (C-08). One that turns a page of a question that is over, or
        names a scenario that is gone, is an old one: of the triggers only `*` takes it (C-104).
        """
        source = source_of(event)
        entries = self._entries[chat_kind(event)].get(source, ())
        if source == "callback":
            data = _text(event.get("callback_data"))
            name, is_turn = self._goal(data), is_of_list(data)
            old = tuple(entry for entry in entries if entry.kind == "*")
            if name and (self._bot.find(name) or not old):
                return Selection((name,), ("",), is_specific=self._bot.find(name) is not None)
            if is_turn and not old:
                return Selection((), ())
            entries = old if name or is_turn else entries
        search = _Search(event, source, state)
        chosen: dict[str, str] = {}
        is_specific = False
        for entry, scenario in _select(entries, search):
            chosen.setdefault(scenario, entry.where)
            is_specific |= entry.kind not in ALWAYS
        # A reply is read by people all the same, and its words stand in no log.
        if not chosen and source != "reply" and (entries or source not in bot.OPTIONAL):
            search.warnings.append(sentence("no_trigger_matches_event", source=source, shown=search.shown))
        return Selection(tuple(chosen), tuple(chosen.values()), tuple(search.warnings), is_specific)

    def _goal(self, callback_data: str) -> str:
        """Return the scenario that a button names; empty if it names none."""
        named = jump(callback_data)
        name = named if self._bot.find(named) else scenario_of(named)
        return self._shortened.get(JUMP + name, name)

    def _compiled(self, triggers: bot.Triggers, chats: str) -> dict[str, list[TriggerEntry]]:
        """Return the entries by source, in order. What happens only in groups fires there, whichever file has the
        entry."""
        return {
            source: [
                entry
                for kind in kinds
                for trigger in triggers.section(source).get(kind, ())
                if (entry := self._entry(source, kind, trigger, "group" if source in bot.OF_GROUPS else chats))
            ]
            for source, kinds in bot.SECTIONS.items()
        }

    def _entry(self, source: str, kind: str, trigger: bot.Trigger, chats: str) -> TriggerEntry | None:
        where = f"{trigger.place.file}:{trigger.place.line}"
        targets = tuple(_target(target, chats) for target in trigger.targets)
        if kind == "regex":
            return self._pattern_entry(trigger.key, targets, where)
        wanted = compared(source, kind, trigger.key)
        if not wanted and kind not in (*ALWAYS, "exact"):
            self.complaints.append(placed(where, sentence("empty_when_compared_would", name=trigger.key)))
            return None
        return TriggerEntry(kind, wanted, targets, where)

    def _pattern_entry(self, pattern: str, targets: tuple[CompiledTarget, ...], where: str) -> TriggerEntry | None:
        try:
            return TriggerEntry("regex", pattern, targets, where, compile_pattern(pattern, ignore_case=True))
        except PatternRefused as error:
            self.complaints.append(placed(where, error.said))
            return None


SCHEDULED = "schedule"
"""The kind of the events of schedule.yaml; no provider and no API key can send one."""


def scheduled(source: Bot, event: Event) -> tuple[str, ...]:
    """Return the scenario of the schedule that an event names; nothing if the bot has none any more."""
    found = source.schedules.get(_text(event.get("schedule")))
    return (found.scenario,) if found else ()


def source_of(event: Event) -> str:
    """Return the section of a trigger file that serves an event: its `kind`, or what its fields show."""
    if event.get("kind"):
        return str(event["kind"])
    if event.get("callback_data") is not None:
        return "callback"
    return "new_member" if any(name.startswith("joined_") for name in event) else "text"


def chat_kind(event: Event) -> str:
    """Return `private` or `group`. An event without a chat type came from a person directly."""
    return "private" if _text(event.get("chat_type")) in ("", "private") else "group"


def _select(entries: tuple[TriggerEntry, ...], search: "_Search") -> Iterator[tuple[TriggerEntry, str]]:
    """Emit the first entry that matches with each of its scenarios; after `continue` also those of lower kinds."""
    tried = ""
    for entry in entries:
        if entry.kind == tried or not (targets := search.targets(entry)):
            continue
        yield from ((entry, target.scenario) for target in targets)
        if not any(target.continues for target in targets):
            return
        tried = entry.kind


def _merged(source: str, own: list[TriggerEntry], other: list[TriggerEntry]) -> tuple[TriggerEntry, ...]:
    """Return the entries of both files by kind; within a kind those of the chat's own file come first."""
    return tuple(entry for kind in bot.SECTIONS[source] for entry in (*own, *other) if entry.kind == kind)


class _Search:
    """The fields of an event that entries are compared with, prepared once per event."""

    def __init__(self, event: Event, source: str, state: str) -> None:
        self.warnings: list[Text] = []
        self._event = event
        self._chat = frozenset({"all", chat_kind(event), _text(event.get("chat_id"))})
        written = _text(event.get("callback_data" if source == "callback" else "event_text"))
        self._written = _ADDRESSED.sub(r"\1", written)
        self._compared = normalise(self._written) if source == "callback" else _folded(self._written)
        self._state = _folded(state)

    @property
    def shown(self) -> str:
        """The event in a warning."""
        return repr(self._written[:60])

    def targets(self, entry: TriggerEntry) -> list[CompiledTarget]:
        """Return the targets of an entry that matches, as far as the chat is theirs."""
        targets = [target for target in entry.targets if target.allows(self._chat, self._event)]
        return targets if targets and self._matches(entry) else []

    def _matches(self, entry: TriggerEntry) -> bool:
        if entry.pattern is not None:
            return self._matches_pattern(entry, entry.pattern)
        return entry.kind in ALWAYS or _COMPARISONS[entry.kind](self, entry.wanted)

    def _matches_pattern(self, entry: TriggerEntry, pattern: Pattern) -> bool:
        try:
            return pattern.search(self._written) is not None
        except PatternTimeout as error:
            self.warnings.append(placed(entry.where, sentence("entry_skipped", text=error.said)))
            return False

    def is_equal(self, wanted: str) -> bool:
        return self._compared == wanted

    def is_state(self, wanted: str) -> bool:
        return self._state == wanted

    def starts(self, wanted: str) -> bool:
        return self._compared.startswith(wanted)

    def contains(self, wanted: str) -> bool:
        return wanted in self._compared

    def is_group(self, wanted: str) -> bool:
        return wanted in _names(self._event, "chat_title", "chat_id", "chat_username")

    def is_link(self, wanted: str) -> bool:
        return wanted in _folded(_text(self._event.get("invite_link")))

    def is_creator(self, wanted: str) -> bool:
        return wanted in _names(self._event, *_person("creator"), *_person("invite_link_creator"))

    def is_status(self, wanted: str) -> bool:
        return wanted in _names(self._event, "member_status")

    def is_initiator(self, wanted: str) -> bool:
        return wanted in _names(self._event, *_person("initiator"))


_COMPARISONS: Mapping[str, Callable[[_Search, str], bool]] = {
    "exact": _Search.is_equal,
    "state": _Search.is_state,
    "starts_with": _Search.starts,
    "contains": _Search.contains,
    "group": _Search.is_group,
    "link": _Search.is_link,
    "creator": _Search.is_creator,
    "status": _Search.is_status,
    "initiator": _Search.is_initiator,
}


def _target(target: bot.Target, chats: str) -> CompiledTarget:
    allowed = (chats,) if target.from_chat is None else target.from_chat
    return CompiledTarget(
        target.scenario,
        frozenset(_text(chat) for chat in allowed),
        target.continue_,
        bool(target.forward_enabled),
        bool(target.bot_enabled),
    )


def compared(source: str, kind: str, wanted: str) -> str:
    """Return the form in which an author's text is compared."""
    if source == "callback" and kind != "state":
        return normalise(wanted)
    return _folded(wanted).removeprefix("@") if source in bot.OF_GROUPS else _folded(wanted)


def _person(role: str) -> tuple[str, ...]:
    return f"{role}_username", f"{role}_id", f"{role}_user_id"


def _names(event: Event, *fields: str) -> set[str]:
    """Return the values of these fields as names are compared: without case, `@name` as `name`."""
    return {_folded(event[field]).removeprefix("@") for field in fields if event.get(field) not in (None, "")}


def _folded(value: Data) -> str:
    return _text(value).strip().casefold()


def _text(value: Data) -> str:
    return "" if value is None else nfc(str(value))


TEACHER_SECTION = "teacher"
"""The section of settings.yaml that switches the dialog off."""

_MOST_COMMANDS = 100
"""Of one menu. Source: core.telegram.org/bots/api#setmycommands."""

_PRIVATE, _GENERAL = "all_private_chats", "default"


class AnsweredCommands(Struct, frozen=True):
    """The commands of teachers: those that the dialog answers, and those that a bot beside it answers itself."""

    by_dialog: tuple[str, ...]
    by_bot: tuple[str, ...]


def has_teacher_beside(folder: Path, own: Bot) -> bool:
    """Return whether the dialog of teachers answers beside the bot of this folder."""
    section = own.settings.get(TEACHER_SECTION)
    is_off = isinstance(section, Mapping) and section.get("enabled") is False
    return folder.absolute() != TEACHER and not is_off


def select_beside(
    own: CompiledTriggers, teacher: CompiledTriggers, event: Mapping[str, Data], state: str = ""
) -> tuple[Selection, bool]:
    """Return the scenarios for an event, and whether they are those of the dialog."""
    by_own = own.select(event, state)
    if by_own.is_specific:
        return by_own, False
    by_teacher = teacher.select(event, state)
    return (by_teacher, True) if by_teacher.is_specific else (by_own, False)


def menu_beside(own: Bot, teacher: Bot) -> Sequence[BotCommand]:
    """Return the commands for the menus of Telegram: those of the own bot, and in private chats behind them those of
    the dialog that it answers. Telegram shows of two menus only that of private chats, so this one then has the
    general commands of the own bot, too.
    """
    answered = answered_commands(own, teacher).by_dialog
    private = [one for one in own.commands if one.scope == _PRIVATE]
    shown = private or [replace(one, scope=_PRIVATE) for one in own.commands if one.scope == _GENERAL]
    names = {one.command for one in shown}
    added = [one for one in teacher.commands if f"/{one.command}" in answered and one.command not in names]
    added = added[: max(0, _MOST_COMMANDS - len(shown))]
    others = [one for one in own.commands if one.scope != _PRIVATE]
    return [*others, *shown, *added] if added else own.commands


def answered_commands(own: Bot, teacher: Bot) -> AnsweredCommands:
    """Return who answers each command of teachers in a private chat."""
    commands = [one.key for one in teacher.triggers.section("text").get("exact", ()) if one.key.startswith("/")]
    triggers, beside = CompiledTriggers(own), CompiledTriggers(teacher)
    events = {one: {"kind": "text", "event_text": one} for one in commands}
    is_by_dialog = {one: select_beside(triggers, beside, event)[1] for one, event in events.items()}
    return AnsweredCommands(
        tuple(one for one in commands if is_by_dialog[one]), tuple(one for one in commands if not is_by_dialog[one])
    )
