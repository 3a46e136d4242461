"""The attributes of an action when it runs: defaults, placeholders, and what later actions get of them. Pure."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import tzinfo

from scenarios.bot import Action
from scenarios.bot.data import Data
from scenarios.bot.event_fields import MARKED_UP
from scenarios.bot.times import SECONDS, with_seconds
from scenarios.engine import Values
from scenarios.placeholders import HTML, MARKDOWN_V2, PLAIN, URL, Escaping, Rendered, Scope, render_all
from scenarios.placeholders.values import is_list
from scenarios.words import Text, placed

CONTROL_FIELDS = frozenset(
    {"type", "chain", "chain_drop", "placeholder", "placeholders", "enabled", "step", "after"}
    | {"when", "required_role", "required_permission", "group_admin"}
)
"""The fields of an action, or of its section in settings.yaml, that are instructions and no values."""

_SAID = ("text", "additional_text")
"""The fields of a message that are written in its parse mode. Labels of buttons, ids and names of files are plain."""
_SAID_BY = {"ask": (*_SAID, "hint")}
"""The same of actions that say more than one message."""
_WITHOUT_MARKS = frozenset({"answer_press", "qr_code"})
"""The actions that show their text as it is."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """The attributes of an action, ready to run.

    `own`: its attributes with placeholders replaced. `seen`: the flat mapping of C-32. `returned`: the attributes that
    become variables of later actions (C-58). `condition`: its field `when`. `warnings`: of placeholders. `emptied`: the
    names of attributes, perhaps with `when`, that the author wrote and whose placeholders have no value. `gaps`: the
    same of what stands in mappings within them: the attribute, and the name of the entry.
    """

    own: Mapping[str, Data]
    seen: Mapping[str, Data]
    returned: Values
    condition: Data = None
    warnings: tuple[Text, ...] = ()
    emptied: frozenset[str] = frozenset()
    gaps: frozenset[tuple[str, str]] = frozenset()

    @property
    def from_person(self) -> frozenset[str]:
        return self.returned.from_person


@dataclass(frozen=True, slots=True)
class _Manner:
    """Options of the rendering of texts. `keeps`: a text without a known name stays as it is written. `zone`: that in
    which people read moments, and modifiers calculate with them; None leaves these as they are. `said`: the names of
    the fields that people read. `has_marks`: whether these are written in the parse mode.
    """

    keeps: bool
    zone: tzinfo | None
    said: tuple[str, ...]
    has_marks: bool


def prepare(
    action: Action,
    defaults: Mapping[str, Data],
    values: Values,
    event: Mapping[str, Data],
    zone: tzinfo | None = None,
) -> Prepared:
    """Return the attributes of an action, over the `defaults` of its type. `zone`: that of the bot.

    Placeholders are replaced if the action says so, or else the defaults (C-57). With None as the default a text whose
    braces name no value stays as it is written, with its backslashes (C-103). What the event has was written by a
    person, so it is escaped in texts.
    """
    written = {**defaults, **action.fields}
    own = with_seconds({name: value for name, value in written.items() if name not in CONTROL_FIELDS})
    replaces = defaults.get("placeholder", False) if action.placeholder is None else action.placeholder
    if replaces is False:
        return Prepared(own, values.seen_with(own, event), Values(), written.get("when"))
    said = _SAID_BY.get(action.type, _SAID)
    manner = _Manner(replaces is None, zone, said, action.type not in _WITHOUT_MARKS)
    rendered, from_person, warnings = _render(own, values, event, manner)
    rendered = with_seconds(rendered)
    variables = {name: value for name, value in rendered.items() if name.removesuffix(SECONDS) in action.fields}
    returned = Values(variables=variables, from_person=from_person) if action.placeholder else Values()
    condition = _rendered("when", written.get("when"), rendered, set(from_person), values, event, manner)
    pairs = {name: (value, rendered[name]) for name, value in own.items()} | {
        "when": (written.get("when"), condition.value)
    }
    emptied = frozenset(name for name, pair in pairs.items() if _is_emptied(*pair))
    gaps = frozenset((name, entry) for name, pair in pairs.items() for entry in _gaps(*pair))
    return Prepared(rendered, values.seen_with(rendered, event), returned, condition.value, warnings, emptied, gaps)


def _is_emptied(written: Data, rendered: Data) -> bool:
    return not _is_empty(written) and _is_empty(rendered)


def _gaps(written: Data, rendered: Data) -> Iterator[str]:
    """Yield the names of the entries of mappings, at any depth, in which placeholders leave nothing."""
    if written is rendered:  # it has no placeholder
        return
    if isinstance(written, Mapping) and isinstance(rendered, Mapping):
        for name, before, after in zip(written, written.values(), rendered.values(), strict=False):
            if _is_emptied(before, after):
                yield str(name)
            yield from _gaps(before, after)
    elif isinstance(written, list) and isinstance(rendered, list):
        for before, after in zip(written, rendered, strict=False):
            yield from _gaps(before, after)


def _is_empty(value: Data) -> bool:
    """Return whether a value has no content: also a text of spaces, and a list of nothing but empty elements."""
    if isinstance(value, str):
        return not value.strip()
    return value is None or value == {} or (is_list(value) and all(_is_empty(one) for one in value))


def _render(
    own: Mapping[str, Data], values: Values, event: Mapping[str, Data], manner: _Manner
) -> tuple[dict[str, Data], frozenset[str], tuple[Text, ...]]:
    """Return the attributes, the names of those with words of a person, and warnings."""
    rendered, from_person, warnings = {}, set(), []
    passed_on = _passed_on(own, values, event, manner)
    seen = {**own, **{name: one.value for name, one in passed_on.items()}}
    people = {name for name, one in passed_on.items() if one.from_person} - values.results.keys()
    for name, value in own.items():
        one = passed_on.get(name) or _rendered(name, value, seen, people, values, event, manner)
        rendered[name] = one.value
        warnings += [placed(name, placed(warning.placeholder, warning.message)) for warning in one.warnings]
        from_person |= {name} if one.from_person else set()
    return rendered, frozenset(from_person), tuple(warnings)


def _passed_on(
    own: Mapping[str, Data], values: Values, event: Mapping[str, Data], manner: _Manner
) -> dict[str, Rendered]:
    """Return the attributes that are named like something the action sees anyway, and made of it: `event_text:
    "{event_text}"`. The other attributes see the new value.
    """
    names = [name for name in own if (name in event or name in values.variables) and _names_itself(name, own[name])]
    others = {name: value for name, value in own.items() if name not in names}
    return {name: _rendered(name, own[name], others, set(), values, event, manner) for name in names}


def _names_itself(name: str, value: Data) -> bool:
    return re.search(rf"\{{\s*{re.escape(name)}\b", repr(value)) is not None


def _rendered(
    name: str,
    value: Data,
    own: Mapping[str, Data],
    people: set[str],
    values: Values,
    event: Mapping[str, Data],
    manner: _Manner,
) -> Rendered:
    """Return one attribute, which sees the others. `people`: those of them that a person has written."""
    others = {other: written for other, written in own.items() if other != name}
    is_said = name in manner.said
    escaping = escaping_of(own) if is_said and manner.has_marks else URL if name == "url" else PLAIN
    authors = people_in(others, values, event) | (people - {name})
    marked_up = _marked_up(escaping, others, values, event)
    seen = values.seen_with(others, event)
    scope = Scope(seen, authors, escaping, manner.zone, marked_up=marked_up, keeps_unknown=manner.keeps)
    return render_all(value, replace(scope, shown_in=manner.zone if is_said else None))


def _marked_up(
    escaping: Escaping, own: Mapping[str, Data], values: Values, event: Mapping[str, Data]
) -> frozenset[str]:
    """Return the names of what is ready for the parse mode: a field of the event or a result, and of no author."""
    names = frozenset(name for name, mode in MARKED_UP.items() if mode is escaping.mode)
    of_event = (names & event.keys()) - own.keys() - values.variables.keys()
    return of_event | (names & values.results.keys())


def people_in(own: Mapping[str, Data], values: Values, event: Mapping[str, Data]) -> frozenset[str]:
    """Return the names with words of a person, in what an action with these attributes sees."""
    authors = own.keys() - values.results.keys()
    of_event = event.keys() - values.results.keys() - values.variables.keys()
    return frozenset(of_event | values.from_person) - authors


def escaping_of(fields: Mapping[str, Data]) -> Escaping:
    """Return how words of a person are escaped in a text of this action. Only messages have a parse mode."""
    return MARKDOWN_V2 if str(fields.get("parse_mode", "")).casefold() == "markdownv2" else HTML
