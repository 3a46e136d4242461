"""The action `set`: which variables it changes, and how (C-93). Pure.

variables:
  person.name: "{event_text}"     a value, of the type of the variable
  person.visits: {add: 1}         a number more, or less
  person.rooms: {append: "12"}    one more element of a list
  bot.taken: {append: "12", times: 1}   the same, unless so many elements are equal to it: then the action fails
  bot.taken: {remove: "12"}       the first element of a list that is equal
  bot.host: {if_empty: "Anna"}    a value, if there is only the default; otherwise the action fails
  chat.topic: null                forgets the value; the default is in force again
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, time, tzinfo

from msgspec import Struct, json

from core.errors import Conflict, Invalid
from core.model.text.characters import folded
from scenarios.bot.data import Data, MapNode, Node, Scalar, describe
from scenarios.bot.model import SCOPES, Variable, split_name
from scenarios.engine import Ending, completed
from scenarios.placeholders.values import as_moment, as_number, as_text, from_number, is_list
from scenarios.schema.types import Complaint, Type
from scenarios.words import SentenceError, sentence

SET, ADD, APPEND, CLEAR, REMOVE, IF_EMPTY = "set", "add", "append", "clear", "remove", "if_empty"
_CHANGES = (ADD, APPEND, REMOVE, IF_EMPTY)
_TIMES = "times"

LONGEST_TEXT = 10_000
"""Characters of one value."""
LONGEST_LIST = 1000
"""Elements of a list that is set at once; `append` makes it as long as a value may be."""
MOST_BYTES = 64 * 1024
"""Of a value as JSON."""

Declared = Mapping[str, Variable]
"""`person.age` → its declaration."""


NewValues = Mapping[str, Data] | None
"""Name of a variable → its new value, or a change of it."""


class VariableFault(SentenceError):
    """The value does not fit the variable, or there is no such variable."""


class Change(Struct, frozen=True):
    """One change. `name`: without the scope. `value`: fits the type. `expire`: seconds, 0 for ever. `times`: how often
    a list may have the element that is appended, 0 without a limit.
    """

    scope: str
    name: str
    verb: str
    value: Data
    expire: int
    default: Data = None
    times: int = 0


def changes_of(written: NewValues, declared: Declared, zone: tzinfo | None, expire: int | None = None) -> list[Change]:
    """Return the changes that the field `variables` asks for. `expire`: seconds, in place of those of the declarations.
    Raises VariableFault.
    """
    if written is None:
        raise VariableFault(sentence("variables_must_mapping_from"))
    return [change_of(str(name).strip(), value, declared, zone, expire) for name, value in written.items()]


def change_of(name: str, value: Data, declared: Declared, zone: tzinfo | None, expire: int | None = None) -> Change:
    """Return the change of one variable. Raises VariableFault."""
    variable, parts = declared.get(name), split_name(name)
    if variable is None or parts is None:
        raise VariableFault(sentence("no_variable_variables_yaml", name=name))
    verb, found = _verb(value, variable)
    if verb != CLEAR:
        found = _element(found) if verb in (APPEND, REMOVE) else fitted(found, variable, zone)
    lifetime = variable.expire if expire is None else expire
    return Change(*parts, verb, found, lifetime, variable.default, _times(value))


def _times(value: Data) -> int:
    """Return how often an element may stand in the list. Raises VariableFault."""
    written = value.get(_TIMES) if isinstance(value, Mapping) else None
    number = as_number(written) if written is not None else 0
    if number is None or number != int(number) or (written is not None and number < 1):
        raise VariableFault(sentence("times_whole_number_from", found=as_text(written)))
    return int(number)


def _verb(value: Data, variable: Variable) -> tuple[str, Data]:
    if value is None or value == "":
        return CLEAR, None
    if isinstance(value, Mapping):
        named = [verb for verb in _CHANGES if verb in value]
        if not is_change(value):
            raise VariableFault(sentence("change_add_append_element"))
        wanted = {ADD: "number", APPEND: "list", REMOVE: "list"}.get(named[0], variable.type)
        if variable.type != wanted:
            raise VariableFault(sentence("is_for_a_and", change=named[0], wanted=wanted, type=variable.type))
        return named[0], value[named[0]]
    return SET, value


def is_change(names: Collection[str]) -> bool:
    verbs = [name for name in names if name in _CHANGES]
    return len(verbs) == 1 and set(names) - {*verbs} <= ({_TIMES} if verbs == [APPEND] else set())


def fitted(value: Data, variable: Variable, zone: tzinfo | None) -> Data:
    """Return a value as the variable stores it. Raises VariableFault with a hint for the person that wrote it."""
    return _FITTED[variable.type](value, variable, zone)


def _text(value: Data, variable: Variable, zone: tzinfo | None) -> str:
    text = str(value).lower() if isinstance(value, bool) else as_text(value).strip()
    if len(text) > LONGEST_TEXT:
        raise VariableFault(sentence("text_has_most_characters", most=LONGEST_TEXT))
    return text


def _number(value: Data, variable: Variable, zone: tzinfo | None) -> int | float:
    number = as_number(value.strip().replace(",", ".") if isinstance(value, str) else value)
    if number is None:
        raise VariableFault(sentence("is_not", name=repr(as_text(value)[:50]), text=sentence("number")))
    return from_number(number)


def _date(value: Data, variable: Variable, zone: tzinfo | None) -> str:
    """Return a day as `2026-12-01`, a moment with its time and zone."""
    moment = None if as_number(value) is not None else as_moment(value, zone)
    if moment is None:
        raise VariableFault(sentence("not_date_such", value=as_text(value)[:50]))
    if moment.tzinfo is None and moment.time() == time():
        return moment.date().isoformat()
    return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).isoformat()


def _choice(value: Data, variable: Variable, zone: tzinfo | None) -> str:
    text = as_text(value).strip()
    found = next((one for one in variable.options if folded(one) == folded(text)), None)
    if found is None:
        raise VariableFault(sentence("value_is_none_of", value=text[:50], words=", ".join(variable.options)))
    return found


def _list(value: Data, variable: Variable, zone: tzinfo | None) -> list[Data]:
    elements = [_element(one) for one in (value if is_list(value) else as_text(value).split(","))]
    if len(elements) > LONGEST_LIST:
        raise VariableFault(sentence("list_has_most_elements", most=LONGEST_LIST))
    return elements


def _element(value: Data) -> Data:
    return value if isinstance(value, bool | int | float | Mapping) else as_text(value).strip()[:LONGEST_TEXT]


_FITTED = {"text": _text, "number": _number, "date": _date, "choice": _choice, "list": _list}


def applied(change: Change, value: Data) -> Data:
    """Return a variable's value after a change; None if it has none. `value`: None, or what is set. Raises Invalid
    VARIABLE_TOO_LARGE and Conflict VARIABLE_TAKEN, as the store does.
    """
    current = change.default if value is None else value
    if change.verb == CLEAR:
        return None
    if change.verb == ADD:
        return _number_of(current) + _number_of(change.value)
    elements = list(current) if is_list(current) else []
    equal = [at for at, one in enumerate(elements) if is_same(one, change.value)]
    has_no_room = change.verb == APPEND and 0 < change.times <= len(equal)
    if has_no_room or (change.verb == IF_EMPTY and current != change.default):
        raise taken(change.scope, change.name)
    if change.verb == REMOVE:
        at = equal[0] if equal else len(elements)
        return elements[:at] + elements[at + 1 :]
    found = [*elements, change.value] if change.verb == APPEND else change.value
    if len(json.encode(found, enc_hook=str)) > MOST_BYTES:
        raise too_large(change.scope, change.name)
    return found


def is_same(one: Data, other: Data) -> bool:
    """Return whether two elements of a list are equal: a number is equal to the text that shows it."""
    return _shown(one) == _shown(other)


def _shown(element: Data) -> Data:
    return str(element) if isinstance(element, int | float) and not isinstance(element, bool) else element


def _number_of(value: Data) -> int | float:
    return value if isinstance(value, int | float) else 0


def too_large(scope: str, name: str) -> Invalid:
    return Invalid(
        "VARIABLE_TOO_LARGE", sentence("would_have_more_than", name=f"{scope}.{name}", most=MOST_BYTES // 1024)
    )


def taken(scope: str, name: str) -> Conflict:
    return Conflict("VARIABLE_TAKEN", sentence("variable_has_already", name=f"{scope}.{name}"))


def ending_of_changes(
    changes: Sequence[Change], seen: Mapping[str, Data], stored: Mapping[str, Mapping[str, Data]]
) -> Ending:
    """Return the ending of a step: each changed scope with all its variables. `stored`: the values that the store
    returned, by scope; the others follow from what the action saw.
    """
    results: dict[str, dict[str, Data]] = {}
    for one in changes:
        before = seen.get(one.scope)
        values = results.setdefault(one.scope, dict(before) if isinstance(before, Mapping) else {})
        known = stored.get(one.scope)
        value = known.get(one.name) if known is not None else applied(one, values.get(one.name))
        values[one.name] = one.default if value is None else value
    return completed(results, from_person=results)


def defaults(declared: Declared, scope: str) -> dict[str, Data]:
    """Return all variables of a scope with their defaults; None for those without."""
    prefix = f"{scope}."
    return {name.removeprefix(prefix): one.default for name, one in declared.items() if name.startswith(prefix)}


def scopes_of(declared: Declared) -> list[str]:
    return [scope for scope in SCOPES if any(name.startswith(f"{scope}.") for name in declared)]


def is_past(until: int, now: int) -> bool:
    """Return whether a value that lasts until then (ms, 0: for ever) is over."""
    return 0 < until <= now


def moment_of(value: Data, zone: tzinfo | None) -> datetime | None:
    """Return the moment of a date variable; a day begins at midnight in `zone`."""
    moment = as_moment(value, zone)
    return moment.replace(tzinfo=zone) if moment and not moment.tzinfo else moment


# what is wrong with the field `variables`


def variables_complaints(node: Node) -> Iterator[Complaint]:
    if not isinstance(node, MapNode):
        yield node, sentence("must_mapping_from_names", found=describe(node))
        return
    for key, value in node.pairs:
        if split_name(key.text) is None:
            yield key, sentence("variable_person_name_chat", found=key.text)
        names = [one.text for one, _ in value.pairs] if isinstance(value, MapNode) else []
        if names and not is_change(names):
            yield value, sentence("change_add_append_element")


def variable_complaints(node: Node) -> Iterator[Complaint]:
    """Yield what is wrong with the name of one variable."""
    if not isinstance(node, Scalar) or split_name(node.text) is None:
        yield node, sentence("must_name_variable_such", found=describe(node))


VARIABLES = Type("name of a variable → value", {"type": "object"}, variables_complaints, needed=(APPEND, IF_EMPTY))
VARIABLE = Type("the name of a variable", {"type": "string"}, variable_complaints)
