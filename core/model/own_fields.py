"""Own fields of people: the types that a tenant gives them, the one form of a value, conditions. Pure.

A value is stored as text in the form of its type: `4.5`, `2026-09-01`, the option as it was defined. A field without a
type is text, and a value from before its field had a type stays as it is until it is written again.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date
from decimal import Decimal
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct

from core.errors import Invalid
from core.model.text.characters import refusal, with_plain_spaces
from core.model.text.personal import LONGEST_FIELD, field_name

MOST_OPTIONS = 100
_NUMBER = re.compile(r"[+-]?[0-9]{1,18}(?:\.[0-9]{1,18})?")
_ISO = re.compile(r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})")
_WRITTEN = re.compile(r"([0-9]{1,2})\.([0-9]{1,2})\.([0-9]{4})")
_CONDITION = re.compile(r"\s*([^<>=]*[^<>=\s])\s*(>=|<=|=|<|>)\s*(.*?)\s*")
_ORDERED = frozenset({"<", "<=", ">", ">="})


class FieldType(StrEnum):
    """The type of the values of an own field."""

    TEXT = "text"
    NUMBER = "number"
    DATE = "date"
    CHOICE = "choice"


class OwnField(Struct, frozen=True, omit_defaults=True):
    """An own field and its type. `choices`: the values that a choice allows, in their order."""

    name: str
    type: FieldType = FieldType.TEXT
    choices: Sequence[str] = ()


OwnFieldsByName = Mapping[str, OwnField]
NO_TYPES: OwnFieldsByName = {}


def faults_of_field_name(name: str, path: str) -> Iterator[Invalid]:
    """Emit the fault of the name of a field: a text can have it between braces."""
    known = field_name(name)
    if not known or len(known) > LONGEST_FIELD or set(name) & set("{}|"):
        detail = f"The name of a field has 1 to {LONGEST_FIELD} characters, without braces and |."
        yield Invalid("FIELD_MALFORMED", detail, path)
    elif refused := refusal(with_plain_spaces(name)):
        yield Invalid("NOT_PRINTABLE", refused, path)


def faults_of_field(field: OwnField) -> Iterator[Invalid]:
    """Emit every fault of a field: its name, and options that are missing, alike, or of another type."""
    yield from faults_of_field_name(field.name, "name")
    if set(field.name) & set("<>="):
        yield Invalid("FIELD_MALFORMED", "The name of a field with a type has no < > =, which conditions need.", "name")
    alike = {field_name(one) for one in field.choices}
    if (field.type is FieldType.CHOICE) != bool(field.choices):
        yield Invalid("CHOICES_WRONG", "A choice, and nothing else, has a list of its options.", "choices")
    elif len(alike) < len(field.choices) or "" in alike:
        yield Invalid("CHOICES_WRONG", "Two options are the same, or one is empty.", "choices")
    for number, refused in enumerate(map(refusal, field.choices)):
        if refused:
            yield Invalid("NOT_PRINTABLE", refused, f"choices.{number}")


def typed(field: OwnField, value: str) -> str:
    """Return a value in the form in which it is stored. Raises Invalid FIELD_VALUE_WRONG."""
    form = _form(field, value)
    if form is None:
        raise Invalid("FIELD_VALUE_WRONG", f"{value[:200]!r} is {_WANTED[field.type]}{_options(field)}.", field.name)
    return form


def typed_fields(fields: OwnFieldsByName, values: Mapping[str, str]) -> tuple[dict[str, str], list[Invalid]]:
    """Return the values in the forms of their types, and the fault of each that has another, at `fields.NAME`."""
    found, faults = dict(values), list[Invalid]()
    for name, value in values.items():
        if value and name in fields:
            try:
                found[name] = typed(fields[name], value)
            except Invalid as fault:
                faults.append(Invalid(fault.code, fault.detail, f"fields.{name}"))
    return found, faults


def shown(field: OwnField, value: str, language: str) -> str:
    """Return a value as people read it: 01.09.2026 or 1 September 2026, 4,5 or 4.5."""
    form = _form(field, value)
    if form and field.type is FieldType.NUMBER and language != "en":
        return form.replace(".", ",")
    if form and field.type is FieldType.DATE:
        day = date.fromisoformat(form)
        return f"{day.day} {day:%B %Y}" if language == "en" else f"{day:%d.%m.%Y}"
    return value


def as_data(field: OwnField | None, value: str) -> str | int | float:
    """Return a value for the placeholders of a scenario: a number as such, a date as 2026-09-01."""
    form = _form(field, value) if field else None
    if field is None or form is None or field.type is not FieldType.NUMBER:
        return form or value
    return int(form) if "." not in form else float(form)


def _form(field: OwnField, value: str) -> str | None:
    text = with_plain_spaces(value).strip()
    match field.type:
        case FieldType.NUMBER:
            return _number(text)
        case FieldType.DATE:
            return _date(text)
        case FieldType.CHOICE:
            return next((one for one in field.choices if field_name(one) == field_name(text)), None)
    return value


def _number(text: str) -> str | None:
    plain = "".join(text.replace("−", "-").split()).replace(",", ".")
    if not _NUMBER.fullmatch(plain):
        return None
    form = f"{Decimal(plain):f}"
    form = form.rstrip("0").rstrip(".") if "." in form else form
    return "0" if form in ("-0", "") else form


def _date(text: str) -> str | None:
    iso, written = _ISO.fullmatch(text), _WRITTEN.fullmatch(text)
    parts = iso.groups() if iso else (written.groups()[::-1] if written else None)
    with suppress(ValueError):
        return date(*map(int, parts)).isoformat() if parts else None
    return None


_WANTED = {
    FieldType.TEXT: "no text",
    FieldType.NUMBER: "no number, such as 4.5",
    FieldType.DATE: "no date, such as 2026-09-01 or 01.09.2026",
    FieldType.CHOICE: "none of the options: ",
}


def _options(field: OwnField) -> str:
    return ", ".join(field.choices)


class FieldCondition(NamedTuple):
    """A condition for an own field: `course=2`, `mark>=4.5`, `born<2010-09-01`; `course=` is true without a value."""

    field: OwnField
    operator: str
    value: str

    def is_met(self, values: Mapping[str, str]) -> bool:
        """Return whether a person with these values meets it. Without a value, or with one of another type, only `=`
        may be met.
        """
        value = values.get(self.field.name, "")
        form = (_form(self.field, value) if value else None) or value
        if self.operator == "=":
            return field_name(form) == field_name(self.value)
        if not value or _form(self.field, value) is None:
            return False
        if self.field.type is FieldType.NUMBER:
            order = Decimal(form).compare(Decimal(self.value))
        else:
            order = Decimal((form > self.value) - (form < self.value))
        return order == (-1 if "<" in self.operator else 1) or (order == 0 and "=" in self.operator)


def read_condition(fields: OwnFieldsByName, written: str, path: str) -> FieldCondition:
    """Read a condition. Raises Invalid CONDITION_MALFORMED, FIELD_VALUE_WRONG."""
    found = _CONDITION.fullmatch(with_plain_spaces(written))
    if found is None:
        detail = f"{written!r} is no condition, such as course=2, mark>=4.5 or born<2010-09-01."
        raise Invalid("CONDITION_MALFORMED", detail, path)
    name, operator, value = found.groups()
    field = fields.get(field_name(name)) or OwnField(field_name(name))
    if operator in _ORDERED and field.type not in (FieldType.NUMBER, FieldType.DATE):
        detail = f"Only numbers and dates have an order, and {name!r} is none: write {name}={value}."
        raise Invalid("CONDITION_MALFORMED", detail, path)
    try:
        return FieldCondition(field, operator, typed(field, value) if value or operator in _ORDERED else "")
    except Invalid as wrong:
        raise Invalid(wrong.code, wrong.detail, path) from None
