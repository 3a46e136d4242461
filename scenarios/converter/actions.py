"""Turns one step of Coreness 1.x into an action of Ada: its parameters, texts, buttons and placeholders.

What Ada does not have is reported with its line, and left out.
"""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from scenarios.bot import Place
from scenarios.bot.data import Data
from scenarios.bot.nodes import ListNode, MapNode, Node, plain, read_flag, text_of
from scenarios.converter.conditions import ConditionRefused, ada_name, condition
from scenarios.loader.reading import Problems
from scenarios.words import Text, sentence

Action = dict[str, Data]

_CACHE = re.compile(r"\{\s*_cache\.")
_NESTED = re.compile(r"(?<=[|:{,])\s*_cache\.")


class Names(NamedTuple):
    """Names that other files of the bot define. `buttons`: callback data → scenario. `stored`: the key of a stored
    value that actions see under a name of their own → the variable of the person.
    """

    buttons: Mapping[str, str]
    stored: Mapping[str, str]


class ActionConverter:
    """Converts the steps of one file. `variables`: names of variables of a person that the bot needs."""

    def __init__(self, file: str, names: Names, problems: Problems) -> None:
        self._file = file
        self._names = names
        self._problems = problems
        self.variables: set[str] = set()

    def report(self, node: Node, code: str, message: Text) -> None:
        self._problems.error(Place(self._file, node.line, node.column), code, message)

    def action_of(self, step: MapNode) -> Action | None:
        """Return the action of a step without its chain, None if Ada has none or needs none."""
        name = text_of(step.get("action"))
        params = step.get("params")
        fields = params if isinstance(params, MapNode) else MapNode((), step.line, step.column, 1)
        convert = _ACTIONS.get(name)
        if convert is None:
            self.report(step, "NO_SUCH_ACTION", sentence("ada_has_no_action", name=name or "this"))
            return None
        return convert(self, fields)

    def _send(self, params: MapNode) -> Action:
        action: Action = {"type": "send"}
        for key, node in params.pairs:
            if convert := _FIELDS.get(key.text):
                action.update(convert(self, node))
            elif plain(node) not in ("", None):
                self.report(key, "NO_SUCH_FIELD", sentence("send_has_no_field", name=key.text))
        return action

    def _edit(self, node: Node) -> Action:
        flag = read_flag(text_of(node))
        if flag is None:
            self.report(node, "EDITS_PRESSED", sentence("ada_edits_message_whose"))
        return {"callback_edit": True} if flag is not False else {}

    def _inline(self, node: Node) -> Data:
        if not isinstance(node, ListNode):
            self.report(node, "BUTTONS_FROM_DATA", sentence("ada_buttons_stand_file"))
            return []
        rows = [self._row(row) for row in node.items]
        return [row for row in rows if row]

    def _row(self, row: Node) -> list[Data]:
        if not isinstance(row, ListNode):
            self.report(row, "BUTTONS_FROM_DATA", sentence("ada_buttons_stand_file"))
            return []
        buttons: list[Data] = []
        for button in row.items:
            pairs = button.pairs if isinstance(button, MapNode) else ()
            buttons += [{key.text: self._target(value)} for key, value in pairs]
        return buttons

    def _target(self, node: Node) -> Data:
        """Return the link of a button, or the scenario that its callback data starts."""
        data = text_of(node)
        if "://" in data:
            return data
        if data not in self._names.buttons:
            self.report(node, "BUTTON_WITHOUT_TRIGGER", sentence("no_trigger_has_exactly", data=data))
        return self._names.buttons.get(data, data)

    def _remove(self, params: MapNode) -> Action:
        node = params.get("delete_message_id")
        return {"type": "remove", **({"remove_message_id": self._value(node)} if node else {})}

    def _answer(self, params: MapNode) -> Action | None:
        """Return the answer to a press; None without a text, as Ada ends the wait of the button itself."""
        text, alert = params.get("text"), params.get("show_alert")
        if text is None:
            return None
        shown = {"alert": True} if read_flag(text_of(alert)) else {}
        return {"type": "answer_press", "text": self._value(text), **shown}

    def _scenario(self, params: MapNode) -> Action:
        if params.get("return_value") is not None:
            self.report(params, "NO_SUCH_FIELD", sentence("scenario_has_no_field"))
        node = params.get("scenario")
        return {"type": "scenario", "name": self._value(node) if node else ""}

    def _state(self, params: MapNode) -> Action:
        action: Action = {"type": "user", "user_state": text_of(params.get("state"))}
        if seconds := text_of(params.get("expires_in_seconds")):
            action["expire"] = f"{seconds}s"
        return action

    def _store(self, params: MapNode) -> Action | None:
        key, value = text_of(params.get("key")), params.get("value")
        if not key.isidentifier() or value is None:
            self.report(params, "NO_SUCH_STORE", sentence("ada_stores_single_values"))
            return None
        self.variables.add(key)
        return {"type": "set", "variables": {f"person.{key}": self._value(value)}}

    def _read_stored(self, params: MapNode) -> None:
        """Read nothing: variables are there without an action."""
        key = text_of(params.get("key"))
        if key.isidentifier():
            self.variables.add(key)
        else:
            self.report(params, "NO_SUCH_STORE", sentence("ada_stores_single_values"))

    def _validate(self, params: MapNode) -> Action:
        """Return a validator for the condition. One that Ada cannot have never holds, so that no check is lost."""
        node = params.get("condition")
        text = self._renamed(text_of(node))
        try:
            return {"type": "validator", "when": condition(text)}
        except ConditionRefused as refused:
            self.report(node or params, "NO_SUCH_CONDITION", sentence("never_holds_until_you", text=refused.said))
            return {"type": "validator", "when": {"not_converted": {"rule": "equals", "value": text}}}

    # Values

    def _value(self, node: Node) -> Data:
        return self._converted(plain(node))

    def _converted(self, value: Data) -> Data:
        if isinstance(value, str):
            return self._renamed(value)
        if isinstance(value, list):
            return [self._converted(one) for one in value]
        return {name: self._converted(one) for name, one in value.items()} if isinstance(value, dict) else value

    def _renamed(self, text: str) -> str:
        """Return a text with the placeholders of Ada."""
        for name, variable in self._names.stored.items():
            text = re.sub(rf"\b_cache\.{re.escape(name)}\b", variable, text)
        return _NESTED.sub("", _CACHE.sub("{", text))


def stored_names(scenario: Node) -> dict[str, str]:
    """Return what the steps of a scenario call values that they read from the store → the variable of the person."""
    steps = scenario.get("step") if isinstance(scenario, MapNode) else None
    found = {}
    for step in steps.items if isinstance(steps, ListNode) else ():
        params = step.get("params") if isinstance(step, MapNode) else None
        if isinstance(params, MapNode) and isinstance(step, MapNode) and text_of(step.get("action")) == _READS:
            key = text_of(params.get("key"))
            found[ada_name(text_of(params.get("_response_key")) or "user_storage_values")] = f"person.{key}"
    return found


_READS = "get_user_storage"
_ACTIONS: Mapping[str, Callable[[ActionConverter, MapNode], Action | None]] = {
    "send_message": ActionConverter._send,
    "answer_callback_query": ActionConverter._answer,
    "delete_message": ActionConverter._remove,
    "execute_scenario": ActionConverter._scenario,
    "set_user_state": ActionConverter._state,
    "clear_user_state": lambda steps, params: {"type": "user", "user_state": ""},
    "set_user_storage": ActionConverter._store,
    _READS: ActionConverter._read_stored,
    "validate": ActionConverter._validate,
}
_FIELDS: Mapping[str, Callable[[ActionConverter, Node], Action]] = {
    "text": lambda actions, node: {"text": actions._value(node)},
    "reply": lambda actions, node: {"reply": actions._value(node)},
    "inline": lambda actions, node: {"inline": actions._inline(node)},
    "target_chat_id": lambda actions, node: {"to": {"id": actions._value(node)}},
    "message_edit": ActionConverter._edit,
}
"""A parameter of `send_message` → fields of `send`."""
