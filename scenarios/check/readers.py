"""Finds what is given and not read, or read and never given: the texts of buttons, keyboards and of the menu that no
trigger takes, states that nothing sets, forms that nothing fills in, and results that no scenario returns.

`*` takes a text only if what it starts looks at it: otherwise it is the answer to unknown input.
"""

from collections.abc import Iterator, Mapping
from functools import cache

from scenarios.bot import SECTIONS, Action, Bot, Place
from scenarios.bot.button_data import normalise
from scenarios.bot.data import Node, Scalar
from scenarios.bot.new_bot import TEACHER
from scenarios.bot.suggestion import did_you_mean
from scenarios.check.references import names_in, strings_in, text_buttons
from scenarios.check.starts import closure, spliced
from scenarios.check.visible import ANYTHING, CheckedStep, Visible
from scenarios.engine.run import ITEM
from scenarios.engine.triggers import CompiledTriggers
from scenarios.loader import load
from scenarios.loader.files import BOT, GROUP_TRIGGERS, TRIGGERS
from scenarios.loader.reading import Problems, Reader
from scenarios.placeholders.values import as_list
from scenarios.schema import ActionType
from scenarios.schema.questions import ASKING
from scenarios.schema.types import KEYBOARD, KEYS
from scenarios.words import sentence

_CHATS = ("private", "group")
_TAKEN = {"text": "event_text", "callback": "callback_data"}
"""Kind of event → the field with what was written or pressed."""
_ANSWERED_BY_TEXT = ("", "text", "number", "date", "list")
_OF_RUNS = ("number", "outcome")
"""What `collect` returns of each run by itself."""


class Readers:
    """Checks one bot."""

    def __init__(self, bot: Bot, types: Mapping[str, ActionType], visible: Visible, problems: Problems) -> None:
        self._bot = bot
        self._types = types
        self._visible = visible
        self._problems = problems
        self._triggers = CompiledTriggers(bot)
        self._actions = [action for scenario in bot.scenarios.values() for action in scenario.actions]
        self._is_known = not (problems.has_error_in(TRIGGERS, GROUP_TRIGGERS) or problems.unread)
        files = (bot.triggers, bot.group_triggers)
        self._by_state = {kind: any(file.section(kind).get("state") for file in files) for kind in _TAKEN}
        self._looks = {kind: self._looked_at(kind) for kind in _TAKEN}

    def check(self, step: CheckedStep, kind: ActionType) -> None:
        """Check one action."""
        reader = Reader(step.action.place.file, self._problems)
        for field in kind.fields if self._is_known else ():
            node = step.node.get(field.name)
            if field.type is KEYBOARD:
                self._check_buttons(reader, step, node)
            elif field.type is KEYS and field.name == "reply":
                self._check_keys(reader, step, node)
            elif field.name == "stays_open_for":
                self._checkstrings_in(reader, reader.one_or_many(node))
        if step.action.type == "form" and not ({"values", "delete"} & step.action.fields.keys()):
            self._check_form(reader, step)
        if step.action.type == "for_each":
            self._check_collected(reader, step)

    def check_bot(self) -> None:
        """Check the commands of the menu, and the states of the triggers."""
        if not self._is_known:
            return
        for command in self._bot.commands:
            if not self._takes(f"/{command.command}", "text"):
                said = sentence("no_trigger_text_takes", name=f"/{command.command}")
                self._problems.warning(Place(BOT), "UNANSWERED_TEXT", said)
        self._check_states()

    def _check_buttons(self, reader: Reader, step: CheckedStep, keyboard: Node | None) -> None:
        for button in names_in(text_buttons(keyboard)):
            if not self._takes(normalise(button.text), "callback") and not _answers(step, button.text, self._bot):
                said = sentence("no_trigger_callback_answers", name=button.text)
                reader.warning(button, "UNANSWERED_BUTTON", said)

    def _check_keys(self, reader: Reader, step: CheckedStep, keyboard: Node | None) -> None:
        """A question takes the texts of its keyboard, and those of a keyboard that a message before it has shown."""
        if step.action.type in ASKING or any(one.type in ASKING for one in step.scenario.actions):
            return
        self._checkstrings_in(reader, text_buttons(keyboard))

    def _checkstrings_in(self, reader: Reader, nodes: Iterator[Node] | tuple[Node, ...]) -> None:
        for one in names_in(nodes):
            if not self._takes(one.text, "text"):
                known = [trigger.key for trigger in self._bot.triggers.text["exact"]]
                said = did_you_mean(sentence("no_trigger_text_takes", name=one.text), one.text, known)
                reader.warning(one, "UNANSWERED_TEXT", said)

    def _takes(self, text: str, kind: str) -> bool:
        """Return whether something takes a text or a press: a trigger, also of the dialog of teachers."""
        if self._by_state[kind] or self._looks[kind]:
            return True
        events = [{"kind": kind, _TAKEN[kind]: text, "chat_type": chat} for chat in _CHATS]
        triggers = (self._triggers, _teachers()) if kind == "text" else (self._triggers,)
        return any(one.select(event).is_specific for event in events for one in triggers)

    def _looked_at(self, kind: str) -> bool:
        """Return whether what `*` starts looks at the text."""
        files = (self._bot.triggers, self._bot.group_triggers)
        roots = [target.scenario for file in files for one in file.section(kind).get("*", ()) for target in one.targets]
        found = closure(self._bot, self._types, roots, spliced)
        if found is None:
            return True
        actions = [action for name in found for action in self._bot.scenarios[name].actions]
        return any(self._reads(action, kind) for action in actions)

    def _reads(self, action: Action, kind: str) -> bool:
        """Return whether an action looks at what was written: by a placeholder or a condition, or by itself."""
        takes_text = ("link_contact", "pass_on", "request", "copy", "validator", "choose_addressees", "follow_delivery")
        return action.type in takes_text or any(_TAKEN[kind] in text for text in strings_in(dict(action.fields)))

    def _check_states(self) -> None:
        """Report the triggers of a state that no action sets."""
        written = [str(one.fields.get("user_state") or "") for one in self._actions if one.type == "user"]
        if any("{" in one for one in written) or "user" in self._bot.settings or not self._knows_actions():
            return
        known = {one.strip().casefold() for one in written}
        for file in (self._bot.triggers, self._bot.group_triggers):
            for trigger in (one for kind in SECTIONS for one in file.section(kind).get("state", ())):
                if trigger.key.strip().casefold() not in known:
                    said = did_you_mean(sentence("no_action_sets_state", name=trigger.key), trigger.key, written)
                    self._problems.warning(trigger.place, "UNKNOWN_STATE", said)

    def _knows_actions(self) -> bool:
        return all(action.type in self._types for action in self._actions)

    def _check_form(self, reader: Reader, step: CheckedStep) -> None:
        """Report a form that is read and into which nothing writes."""
        filled = [one for one in self._actions if one.type == "ask" or "values" in one.fields]
        known = {str(one.fields["form"]) for one in filled if "form" in one.fields}
        if any("{" in one for one in known) or "ask" in self._bot.settings or not self._knows_actions():
            return
        for form in names_in(reader.one_or_many(step.node.get("form"))):
            if form.text not in known:
                said = did_you_mean(sentence("nothing_fills_form", name=form.text), form.text, known)
                reader.warning(form, "UNKNOWN_FORM", said)

    def _check_collected(self, reader: Reader, step: CheckedStep) -> None:
        """Report results that the scenario of a loop does not return."""
        names = [one.text for one in reader.one_or_many(step.node.get("scenario")) if isinstance(one, Scalar)]
        targets = [self._bot.find(name, step.scenario) for name in names]
        if any(target is None for target in targets):
            return
        item = str(step.action.fields.get("as") or ITEM)
        known = {item, *_OF_RUNS}.union(*(self._visible.returned_in(one) for one in targets if one))
        for name in names_in(reader.one_or_many(step.node.get("collect"))) if ANYTHING not in known else ():
            if name.text not in known:
                said = did_you_mean(sentence("scenario_returns_no", name=name.text), name.text, known)
                reader.error(name, "UNKNOWN_RESULT", said)


def _answers(step: CheckedStep, text: str, bot: Bot) -> bool:
    """Return whether a button that is only a text answers the question below which it stands."""
    fields = step.action.fields
    if step.action.type != "ask":
        return False
    declared = bot.declared.get(str(fields.get("save") or ""))
    options = [str(one) for one in as_list(fields.get("options"))] or list(declared.options if declared else ())
    if options or "dates" in fields or "times" in fields:
        is_written = not any("{" in one for one in options) and not ({"dates", "times"} & fields.keys())
        return not is_written or normalise(text) in map(normalise, options)
    return str(fields.get("answer") or "") in _ANSWERED_BY_TEXT


@cache
def _teachers() -> CompiledTriggers:
    return CompiledTriggers(load(TEACHER).bot)
