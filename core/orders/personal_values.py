"""Finds the values of a personal text for each recipient, and refuses what would not be a right text for each (D-44).

A value is that which the order gives, else the person's own field, else `name`, `first_name` or `groups` of the person,
`children` of a guardian, or `sender` of the order. Blank is missing. Pure.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

from msgspec.structs import replace

from core.errors import Invalid, InvalidForRecipient, InvalidMany
from core.model.content import Content, ParseMode
from core.model.delivery import NewDelivery, Recipient
from core.model.text.characters import counted, is_blank
from core.model.text.personal import AS_WRITTEN, LANGUAGE, Personal, PersonalTemplate, Values, values_in
from core.orders.check import check_content

LONGEST_TEXT = 4096
MOST_FIELDS = 50
MOST_VALUES = 16 * 2**20
"""Characters of all values of a delivery: they are in the memory of the server as long as its history."""
MOST_ERRORS = 1000

_PATRONYMIC = re.compile(r".+(?:вич|вна|чна|мич|ьич|оглы|кызы)", re.IGNORECASE)
Row = Sequence[str | None]


def make_personal(delivery: NewDelivery, titles: Mapping[str, str]) -> NewDelivery:
    """Return the delivery with the values of its recipients; without marks it is one with a shared text. `titles`: of
    groups by their ids; a group without one is named by its id.

    Raises Invalid FIELDS_TOO_MANY, VALUES_TOO_LARGE, those of `check_content`; InvalidMany VALUE_MISSING, TEXT_EMPTY,
    TEXT_TOO_LONG.
    """
    template = PersonalTemplate(delivery.text, delivery.content, delivery.texts)
    if not template.fields:
        return replace(delivery, text=template.text({}), content=template.content({}))
    if len(template.fields) > MOST_FIELDS:
        raise Invalid("FIELDS_TOO_MANY", f"A text has at most {MOST_FIELDS} different fields.", "text")
    rows = [[_value(field, one, delivery, titles) for field in template.fields] for one in delivery.recipients]
    _refuse(list(_missing(template, delivery.recipients, rows)), "value", "missing")
    if sum(len(value) for row in rows for value in row if value) > MOST_VALUES:
        raise Invalid("VALUES_TOO_LARGE", f"The values have more than {MOST_VALUES} characters.", "recipients")
    _check_shapes(delivery, template, rows)
    _refuse(list(_unfit(template, delivery, rows)), "text", "not sendable")
    return replace(delivery, personal=Personal(template.fields, rows))


def check_files(content: Content | None) -> None:
    """Check that no file has a mark in its name or address: all recipients get the same files. Raises Invalid
    FIELD_IN_FILE.
    """
    for one in content.attachments if content else ():
        if found := next((text for text in (one.name, one.url) if AS_WRITTEN.search(text)), ""):
            raise Invalid(
                "FIELD_IN_FILE", f"Everybody gets the same file: {found!r} has a field.", "content.attachments"
            )


def as_typed(given: NewDelivery) -> NewDelivery:
    """Return a delivery with texts by language whose braces are no marks."""
    texts = {language: text.replace("{{", r"\{{") for language, text in given.texts.items()}
    return replace(given, text=given.text.replace("{{", r"\{{"), texts=texts)


def _value(field: str, recipient: Recipient, delivery: NewDelivery, titles: Mapping[str, str]) -> str | None:
    if field == LANGUAGE:
        return recipient.locale if recipient.locale in delivery.texts else None
    value = recipient.values.get(field)
    if value is None or is_blank(value):
        value = recipient.fields.get(field)
    if value is None and field in _GROUPS:
        value = ", ".join(titles.get(one, one) for one in recipient.origin)
    elif value is None and field in _OWN:
        value = _OWN[field](recipient, delivery)
    return None if value is None or is_blank(value) else value


def _first_name(recipient: Recipient, _: NewDelivery) -> str | None:
    """Return the first name if it is certain: the name is one word, or a patronymic follows. Anna Petrova and Петрова
    Анна look alike.
    """
    words = (recipient.name or "").split()
    if len(words) == 1:
        return words[0]
    return next((word for word, behind in pairwise(words) if _PATRONYMIC.fullmatch(behind)), None)


def _children(recipient: Recipient) -> str:
    return ", ".join(one.name or str(one.id) for one in recipient.children)


_GROUPS = ("groups", "группа", "группы")
_OWN: Mapping[str, Callable[[Recipient, NewDelivery], str | None]] = {
    **dict.fromkeys(("name", "фио"), lambda recipient, _: recipient.name),
    **dict.fromkeys(("first_name", "имя"), _first_name),
    **dict.fromkeys(("children", "child", "дети", "ребенок"), lambda recipient, _: _children(recipient)),
    **dict.fromkeys(("sender", "отправитель"), lambda _, delivery: delivery.sender.name),
}


def _missing(
    template: PersonalTemplate, recipients: Sequence[Recipient], rows: Sequence[Row]
) -> Iterator[InvalidForRecipient]:
    fields = template.fields
    for recipient, row in zip(recipients, rows, strict=True):
        required = template.required(values_in(fields, row).get(LANGUAGE))
        for field, value in zip(fields, row, strict=True):
            if value is None and field in required:
                yield _fault("VALUE_MISSING", recipient, f"has no value for {{{{{field}}}}}", field)


def _fault(code: str, recipient: Recipient, what: str, field: str = "") -> InvalidForRecipient:
    name = f"{recipient.name} ({recipient.id})" if recipient.name else str(recipient.id)
    table, _, row = recipient.place.rpartition(".")
    path = f"{recipient.place or 'text'}{'.values.' if field else ''}{field}"
    return InvalidForRecipient(code, f"{name} {what}.", path, name, field, int(row) if table.endswith(".table") else 0)


def _check_shapes(delivery: NewDelivery, template: PersonalTemplate, rows: Sequence[Row]) -> None:
    """Check the content and the marks of one text of each shape: what is escaped never breaks a mark, but a value that
    is there, or is not, may.
    """
    mode = delivery.content.parse_mode if delivery.content else ParseMode.PLAIN
    if mode is ParseMode.PLAIN and template.content({}) is delivery.content:
        return  # the content is that of the template, which was checked
    named = [field == LANGUAGE for field in template.fields]
    shapes = {tuple(value if as_is else value and "x" for value, as_is in zip(row, named, strict=True)) for row in rows}
    for row in shapes:
        values = values_in(template.fields, row)
        check_content(_filled(delivery, template, values))


def _filled(delivery: NewDelivery, template: PersonalTemplate, values: Values) -> NewDelivery:
    return replace(delivery, text=template.text(values), content=template.content(values))


def _unfit(template: PersonalTemplate, delivery: NewDelivery, rows: Sequence[Row]) -> Iterator[InvalidForRecipient]:
    content = delivery.content or Content()
    may_be_empty = bool(content.attachments or (content.edit and content.inline))
    for recipient, row in zip(delivery.recipients, rows, strict=True):
        text = template.text(values_in(template.fields, row))
        if len(text) > LONGEST_TEXT:
            what = f"would get a text of {len(text)} characters; at most {LONGEST_TEXT} are allowed"
            yield _fault("TEXT_TOO_LONG", recipient, what)
        elif not may_be_empty and is_blank(text):
            yield _fault("TEXT_EMPTY", recipient, "would get an empty text")


def _refuse(errors: Sequence[InvalidForRecipient], what: str, fault: str) -> None:
    """Refuse the order if there are errors. Raises InvalidMany."""
    if errors:
        verb = "is" if len(errors) == 1 else "are"
        detail = f"{counted(len(errors), what)} {verb} {fault}. The first: {errors[0].detail}"
        raise InvalidMany(detail, errors[:MOST_ERRORS])
