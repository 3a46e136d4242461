"""The attributes of an action type: one frozen struct, in which each field is declared once.

    class RemoveAttributes(Attributes, frozen=True):
        remove_message_id: Annotated[Whole, Seen("The message to remove, instead of that of the event.")] = None

From the declaration come the check of an author's files, the JSON Schema for editors, the reference page, and what an
action runs with: the values are converted once, when the placeholders are replaced.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, tzinfo
from functools import cache
from inspect import get_annotations
from typing import Annotated, Any, TypeVar, get_args

from msgspec import Struct

from core.errors import Invalid
from core.model.json_form import JsonObject
from scenarios.bot.data import Data
from scenarios.bot.times import as_written
from scenarios.placeholders.attributes import Prepared
from scenarios.schema import conversion, types
from scenarios.schema.rules import RULE_ENTRIES
from scenarios.schema.types import Type
from scenarios.words import sentence

Default = str | int | bool | None
Convert = Callable[[Data, str, tzinfo], Any]
Text = Annotated[str, types.TEXT, conversion.text]
TextOrEmpty = Annotated[str | None, types.TEXT, conversion.text_or_empty]
"""None if it is not written: an empty text has a meaning of its own."""
Verbatim = Annotated[str, types.TEXT, conversion.verbatim]
Texts = Annotated[tuple[str, ...], types.TEXTS, conversion.texts]
Elements = Annotated[tuple[str, ...], types.TEXTS, conversion.elements]
Whole = Annotated[int | None, types.WHOLE, conversion.whole]
Count = Annotated[int | None, types.COUNT, conversion.count]
Number = Annotated[float | None, types.NUMBER, conversion.number]
Flag = Annotated[bool, types.FLAG, conversion.flag]
OptionalFlag = Annotated[bool | None, types.FLAG, conversion.flag]
Duration = Annotated[timedelta | None, types.DURATION, conversion.duration]
Moment = Annotated[datetime | None, types.DATE, conversion.moment]
Fields = Annotated[JsonObject, types.MAPPING, conversion.mapping]
Anything = Annotated[Any, types.ANY, conversion.anything]


class Attributes(Struct, frozen=True):
    """The attributes of an action. Each one has a default: authors may leave out all."""


class Own(Struct, frozen=True):
    """A field that is read in the action itself. `help`: a sentence for authors; without one it is no field that they
    write. `default`: what authors read as the default, if it is not that of the struct. `key`: its name in the action,
    if it has another one in the struct. `alias_of`: the field of which this is the name in Coreness. `may_be_empty`: an
    empty value has a meaning of its own, so placeholders without a value are not refused.
    """

    help: str = ""
    default: Default = None
    key: str = ""
    alias_of: str = ""
    may_be_empty: bool = False


class Seen(Own, frozen=True):
    """A field that is read in all that the action sees, in which results of earlier actions come first (C-32).

    `together`: the fields that belong together and that an earlier action may have returned. If the action has one of
    them, this field is read in the action itself.
    """

    together: tuple[str, ...] = ()


StaysOpenFor = Annotated[
    tuple[str, ...],
    types.TEXTS,
    conversion.texts,
    Own("Texts such as `/help` that are answered while the question stays open; any other command ends it."),
]
"""Of an action that waits for a person."""


class Field(Struct, frozen=True):
    """One field, as it was declared. `default`: what a missing field means, as authors read it; None if nothing.
    `alias_of`: the field of which this is the name in Coreness (docs/scenarios-coreness.md). `may_be_empty`: as
    in `Own`.
    """

    name: str
    type: Type
    help: str
    default: Default = None
    alias_of: str = ""
    may_be_empty: bool = False


class _Reader(Struct, frozen=True):
    """Reads one field. `attribute`: its name in the struct."""

    attribute: str
    field: Field
    convert: Convert
    about: Own

    def source(self, prepared: Prepared) -> Mapping[str, Data]:
        if isinstance(self.about, Seen) and not any(name in prepared.own for name in self.about.together):
            return prepared.seen
        return prepared.own


A = TypeVar("A", bound=Attributes)


def fields_of(kind: type[Attributes]) -> tuple[Field, ...]:
    """Return the fields that authors write."""
    return tuple(one.field for one in _readers(kind) if one.field.help)


def converted(kind: type[A], prepared: Prepared, zone: tzinfo) -> A:
    """Return the attributes of an action. `zone`: of moments that name none. Raises Invalid FIELD_INVALID, FIELD_EMPTY.

    Without the refusal of an empty field its default would hold: `delay: "{x}"` would send at once, `to: "{x}"` to the
    chat of the event. So it is with a rule that compares with nothing: all people without a course are those whose
    course is `"{person.course}"`.
    """
    _check_emptied(kind, prepared)
    given = {}
    for one in _readers(kind):
        source = one.source(prepared)
        if (
            one.field.name in source
            and (value := one.convert(source[one.field.name], one.field.name, zone)) is not None
        ):
            given[one.attribute] = value
    return kind(**given)


def _check_emptied(kind: type[Attributes], prepared: Prepared) -> None:
    may_be_empty = {one.field.name for one in _readers(kind) if one.field.may_be_empty}
    names = {one.field.name for one in _readers(kind)} | {"when"}
    for name in sorted(prepared.emptied & names - may_be_empty):
        raise Invalid("FIELD_EMPTY", sentence("field_has_no_value", field=name), name)
    needed = {one.field.name: one.field.type.needed for one in _readers(kind)} | {"when": RULE_ENTRIES}
    for name, entry in sorted(prepared.gaps):
        if entry in needed.get(name, ()):
            raise Invalid("FIELD_EMPTY", sentence("field_has_no_value", field=f"{name}: {entry}"), name)


@cache
def _readers(kind: type[Attributes]) -> tuple[_Reader, ...]:
    annotations: dict[str, Any] = {}
    for one in reversed(kind.__mro__):
        annotations |= get_annotations(one)
    fields = zip(kind.__struct_fields__, kind.__struct_defaults__, strict=True)  # each has a default
    return tuple(_reader(name, annotations[name], default) for name, default in fields)


def _reader(name: str, annotation: Any, default: Any) -> _Reader:
    _, kind, convert, about = get_args(annotation)
    shown = about.default
    if shown is None and default != "" and isinstance(default, str | int | timedelta):
        shown = as_written(default) if isinstance(default, timedelta) else default
    help_text = f"The same as `{about.alias_of}`." if about.alias_of else about.help
    field = Field(about.key or name.rstrip("_"), kind, help_text, shown, about.alias_of, about.may_be_empty)
    return _Reader(name, field, convert, about)
