"""The attributes of an action when it runs: defaults, placeholders, and what later actions get of them. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scenarios.bot import Action
from scenarios.engine import Values
from scenarios.placeholders import HTML, MARKDOWN_V2, PLAIN, Escaping, Scope, render_all

CONTROL_FIELDS = frozenset(
    {"type", "chain", "chain_drop", "placeholder", "placeholders", "enabled"}
    | {"required_role", "required_permission", "group_admin"}
)
"""The fields of an action, or of its section in settings.yaml, that are instructions and no values."""

_MARKED_UP = ("text", "additional_text")
"""The fields of a message that are written in its parse mode. Labels of buttons, ids and names of files are plain."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """What an action runs with.

    `own`: its attributes with placeholders replaced. `seen`: the flat mapping of C-32. `returned`: the attributes that
    become variables of later actions (C-58). `warnings`: of placeholders.
    """

    own: Mapping[str, Any]
    seen: Mapping[str, Any]
    returned: Values
    warnings: tuple[str, ...] = ()

    @property
    def from_person(self) -> frozenset[str]:
        return self.returned.from_person


def prepare(action: Action, defaults: Mapping[str, Any], values: Values, event: Mapping[str, Any]) -> Prepared:
    """The attributes of an action, over the `defaults` of its type.

    Placeholders are replaced if the action says so, or else the defaults (C-57). What the event has was written by a
    person, so it is escaped in texts.
    """
    written = {**defaults, **action.fields}
    own = {name: value for name, value in written.items() if name not in CONTROL_FIELDS}
    replaces = defaults.get("placeholder") is True if action.placeholder is None else action.placeholder
    if not replaces:
        return Prepared(own, values.seen_with(own, event), Values())
    rendered, from_person, warnings = _render(own, values, event)
    variables = {name: value for name, value in rendered.items() if name in action.fields}
    returned = Values(variables=variables, from_person=from_person) if action.placeholder else Values()
    return Prepared(rendered, values.seen_with(rendered, event), returned, warnings)


def _render(
    own: Mapping[str, Any], values: Values, event: Mapping[str, Any]
) -> tuple[dict[str, Any], frozenset[str], tuple[str, ...]]:
    """The attributes, the names of those with words of a person, and warnings."""
    rendered, from_person, warnings = {}, set(), []
    for name, value in own.items():
        others = {other: written for other, written in own.items() if other != name}
        escaping = escaping_of(own) if name in _MARKED_UP else PLAIN
        scope = Scope(values.seen_with(others, event), people_in(others, values, event), escaping)
        one = render_all(value, scope)
        rendered[name] = one.value
        warnings += [f"{name}: {warning.placeholder}: {warning.message}" for warning in one.warnings]
        from_person |= {name} if one.from_person else set()
    return rendered, frozenset(from_person), tuple(warnings)


def people_in(own: Mapping[str, Any], values: Values, event: Mapping[str, Any]) -> frozenset[str]:
    """The names that a person has written, in what an action with these attributes sees."""
    authors = own.keys() - values.results.keys()
    of_event = event.keys() - values.results.keys() - values.variables.keys()
    return frozenset(of_event | values.from_person) - authors


def escaping_of(fields: Mapping[str, Any]) -> Escaping:
    """How words of a person are escaped in a text of this action. Only messages have a parse mode."""
    return MARKDOWN_V2 if str(fields.get("parse_mode", "")).casefold() == "markdownv2" else HTML
