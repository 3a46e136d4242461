"""Turns one step of Coreness 1.x into an action of Ada: its parameters, texts, buttons, placeholders, and its
conditions, such as `$event_text ~ 'help' and not {_cache.count} > 3`.

What Ada does not have is reported with its line, and left out. A condition that Ada cannot have is refused whole, never
translated in part.
"""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from scenarios.bot import Place
from scenarios.bot.data import Data, ListNode, MapNode, Node, plain, read_flag, text_of
from scenarios.loader.reading import Problems
from scenarios.words import SentenceError, Text, sentence

_TOKEN = re.compile(
    r"\s*(?:(?P<text>'[^']*'|\"[^\"]*\")|(?P<field>\$[\w.\[\]]+|\{[^{}]*\})|(?P<number>-?\d+(?:\.\d+)?)"
    r"|(?P<sign>==|!=|>=|<=|!~|[<>~()\[\],])|(?P<word>[A-Za-z_]+))"
)
_EXISTS = "|exists"
_RULES: Mapping[str, str] = {
    "==": "equals",
    "!=": "not_equals",
    ">": "more_than",
    ">=": "at_least",
    "<": "less_than",
    "<=": "at_most",
    "~": "contains",
    "regex": "regex",
    "in": "in_list",
    "not in": "not_in_list",
}
_CONSTANTS: Mapping[str, Data] = {"true": True, "false": False, "none": None}


class ConditionRefused(SentenceError, ValueError):
    """Ada has no such condition. The message says which part."""


class ConditionField(NamedTuple):
    """A value that is known when the bot runs. `exists`: the condition asks only whether it is there."""

    path: str
    exists: bool = False


def ada_name(name: str) -> str:
    """Return the name of a value: what actions return stands without `_cache` in Ada."""
    return name.strip().removeprefix("$").removeprefix("_cache.")


def condition(text: str) -> dict[str, Data]:
    """Return a value for `when`. Raises ConditionRefused."""
    tokens = _tokens(text)
    found = _either(tokens)
    if tokens:
        raise ConditionRefused(sentence("was_not_expected", token=tokens[0]))
    return found


def _tokens(text: str) -> list[str]:
    tokens, at = [], 0
    text = text.strip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ConditionRefused(sentence("token_cannot_read", token=text[at:].strip()[:30]))
        tokens.append(match.group().strip())
        at = match.end()
    return tokens


def _either(tokens: list[str]) -> dict[str, Data]:
    found = [_all(tokens)]
    while _take(tokens, "or"):
        found.append(_all(tokens))
    return found[0] if len(found) == 1 else {"any": found}


def _all(tokens: list[str]) -> dict[str, Data]:
    found = [_unit(tokens)]
    while _take(tokens, "and"):
        found.append(_unit(tokens))
    return found[0] if len(found) == 1 else {"all": found}


def _unit(tokens: list[str]) -> dict[str, Data]:
    if _take(tokens, "not"):
        return {"not": _unit(tokens)}
    if len(tokens) > 1 and tokens[1] == "!~":
        tokens[1] = "~"
        return {"not": _comparison(tokens)}
    if _take(tokens, "("):
        found = _either(tokens)
        if not _take(tokens, ")"):
            raise ConditionRefused(sentence("bracket_not_closed"))
        return found
    return _comparison(tokens)


def _comparison(tokens: list[str]) -> dict[str, Data]:
    left = _value(tokens)
    if not isinstance(left, ConditionField):
        raise ConditionRefused(sentence("value_is_compared", value=left if isinstance(left, int) else str(left)))
    sign = "not " if _take(tokens, "not") else ""
    sign += tokens.pop(0).lower() if tokens else ""
    if sign in ("is_null", "not is_null"):
        return {left.path: {"rule": "empty" if sign == "is_null" else "not_empty"}}
    if sign not in _RULES:
        raise ConditionRefused(sentence("comparison_not_known", sign=sign))
    right = _list(tokens) if sign.endswith("in") else _value(tokens)
    if isinstance(right, ConditionField):
        raise ConditionRefused(sentence("compared_with_field", field=left.path, other=right.path))
    if left.exists:
        return {left.path: {"rule": _existence(sign, right)}}
    if right is None:
        return {left.path: {"rule": "empty" if sign == "==" else "not_empty"}}
    return {left.path: {"rule": _RULES[sign], "value": right}}


def _existence(sign: str, right: Data) -> str:
    if sign not in ("==", "!=") or not isinstance(right, bool):
        raise ConditionRefused(sentence("exists_can_only_compared"))
    return "not_empty" if right == (sign == "==") else "empty"


def _list(tokens: list[str]) -> list[Data]:
    closing = {"(": ")", "[": "]"}.get(tokens.pop(0) if tokens else "")
    if closing is None:
        raise ConditionRefused(sentence("needs_list_values"))
    found = []
    while not _take(tokens, closing):
        value = _value(tokens)
        if isinstance(value, ConditionField):
            raise ConditionRefused(sentence("list_has_not_fixed", field=value.path))
        found.append(value)
        _take(tokens, ",")
    return found


def _value(tokens: list[str]) -> Data:
    """Return a ConditionField, or a text, number, bool or None."""
    if not tokens:
        raise ConditionRefused(sentence("value_missing"))
    token = tokens.pop(0)
    if token[0] in "'\"":
        token = token[1:-1].replace("\\\\", "\\")
        return _field(token) if token.startswith("{") and token.endswith("}") else token
    if token[0] in "${":
        return _field(token)
    if token[0].isdigit() or token[0] == "-":
        return float(token) if "." in token else int(token)
    if token.lower() in _CONSTANTS:
        return _CONSTANTS[token.lower()]
    raise ConditionRefused(sentence("neither_field_nor_value", token=token))


def _field(token: str) -> ConditionField:
    name = token.removeprefix("{").removesuffix("}")
    exists = name.endswith(_EXISTS)
    name = name.removesuffix(_EXISTS)
    if "|" in name:
        raise ConditionRefused(sentence("changed_modifiers", field=f"{{{name}}}"))
    return ConditionField(ada_name(name), exists)


def _take(tokens: list[str], word: str) -> bool:
    """Remove `word` if it is the next token; return whether it was."""
    if tokens and tokens[0].lower() == word:
        del tokens[0]
        return True
    return False


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
