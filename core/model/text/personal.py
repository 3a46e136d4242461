"""Personal texts: `{{field}}` stands for a value of the recipient (D-44). Pure.

`{{field|default}}` has a default for recipients without the value; the default is a part of the text, marks included.
`\\{{` writes `{{` itself. A value is escaped for the parse mode, so it never becomes a mark of the text, and quoted in
the address of a button.

`core.orders.personal_values` finds the values when a delivery is made; couriers, histories and previews fill the text.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import NamedTuple
from urllib.parse import quote

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from core.errors import Invalid
from core.model.content import Button, Content, ParseMode
from core.model.text.characters import nfc, with_plain_spaces
from core.model.text.text_entities import escaped

Values = Mapping[str, str]
"""Field → value of one recipient; a field without a value is missing."""

NO_TEXTS: Mapping[str, str] = {}
LONGEST_FIELD = 64
LANGUAGE = "@language"
"""The field of a recipient that selects one of the texts by language."""
_QUOTE = partial(quote, safe="")
_MARK = r"\{\{([^{}]*)\}\}|(\{\{)"
_IN_TEXT = re.compile(rf"\\(\{{\{{)|{_MARK}")
_IN_MARKDOWN = re.compile(rf"\\(\{{\{{)|\\[\s\S]|{_MARK}")
"""There a backslash escapes every character, and `\\{\\{` is no mark."""
AS_WRITTEN = re.compile(r"\{\{[^{}]*\}\}")


class Personal(Struct, frozen=True):
    """The fields and values of a delivery with a personal text. `values`: of each recipient, in the order of `fields`;
    None where it has none.
    """

    fields: Sequence[str]
    values: Sequence[Sequence[str | None]]


class _PersonalMark(NamedTuple):
    field: str
    default: str | None


class PersonalText:
    """One text with its marks. `escape`: writes a value into it."""

    def __init__(self, parts: Sequence[str | _PersonalMark], escape: Callable[[str], str]) -> None:
        self._parts = parts
        self._escape = escape
        self.marks = [part for part in parts if isinstance(part, _PersonalMark)]

    def filled(self, values: Values) -> str:
        return "".join(part if isinstance(part, str) else self._value(part, values) for part in self._parts)

    def _value(self, mark: _PersonalMark, values: Values) -> str:
        value = values.get(mark.field)
        return (mark.default or "") if value is None else self._escape(value)


class PersonalTemplate:
    """The text, the texts by language and the content of a delivery with their marks. `fields`: those that they name,
    each once, and LANGUAGE if there are texts by language. Making one raises Invalid FIELD_MALFORMED for braces that
    are no mark.
    """

    def __init__(self, text: str, content: Content | None, texts: Mapping[str, str] = NO_TEXTS) -> None:
        mode = content.parse_mode if content else ParseMode.PLAIN
        self._text = _read(text, "text", mode)
        self._texts = {language: _read(one, f"texts.{language}", mode) for language, one in texts.items()}
        self._content = content
        self._labels = {one: _read(one, "content", ParseMode.PLAIN) for one in _labels(content)}
        self._addresses = {one: _read(one, "content", ParseMode.PLAIN, _QUOTE) for one in _addresses(content)}
        in_content = [*self._labels.items(), *self._addresses.items()]
        self._content_marks = [mark for _, text in in_content for mark in text.marks]
        marks = [mark for one in (self._text, *self._texts.values()) for mark in one.marks] + self._content_marks
        self._is_content_personal = any(one != text.filled({}) for one, text in in_content)
        languages = [LANGUAGE] if texts else []
        self.fields: Sequence[str] = list(dict.fromkeys([*(mark.field for mark in marks), *languages]))

    def text(self, values: Values) -> str:
        return self._text_for(values.get(LANGUAGE)).filled(values)

    def _text_for(self, language: str | None) -> PersonalText:
        return self._texts.get(language or "", self._text)

    def required(self, language: str | None) -> Collection[str]:
        """Return the fields of the text in a language that have no default somewhere."""
        return {mark.field for mark in self._marks_for(language) if mark.default is None}

    def has_fallback(self, values: Values) -> bool:
        """Return whether a default stands for a missing value in the text or the content of these values."""
        marks = self._marks_for(values.get(LANGUAGE))
        return any(mark.default is not None and mark.field not in values for mark in marks)

    def _marks_for(self, language: str | None) -> Sequence[_PersonalMark]:
        return [*self._text_for(language).marks, *self._content_marks]

    def content(self, values: Values) -> Content | None:
        """Return the content with the labels, data and addresses of its buttons filled."""
        if self._content is None or not self._is_content_personal:
            return self._content

        def label(one: str) -> str:
            return self._labels[one].filled(values)

        def button(one: Button) -> Button:
            return Button(label(one.text), label(one.data), self._addresses[one.url].filled(values))

        content = self._content
        return replace(
            content,
            inline=[[button(one) for one in row] for row in content.inline],
            reply=None if content.reply is None else [[label(one) for one in row] for row in content.reply],
            request_contact=[label(one) for one in content.request_contact],
        )


def load_texts(text: str | None) -> Mapping[str, str]:
    """Return the texts by language, as a history stores them."""
    return msgspec.json.decode(text, type=dict[str, str]) if text else NO_TEXTS


def values_in(fields: Sequence[str], row: Sequence[str | None]) -> Values:
    """Return the values of one recipient, of a row as it is stored."""
    return {field: value for field, value in zip(fields, row, strict=False) if value is not None}


@lru_cache(maxsize=1024)  # 10,000 recipients have the same few fields
def field_name(written: str) -> str:
    """Return the form in which names of fields are compared: without case, with plain single spaces, ё is е."""
    return " ".join(with_plain_spaces(nfc(written)).casefold().replace("ё", "е").split())


def marks_in(text: str, content: Content | None) -> Sequence[str]:
    """Return the marks of a text and of its buttons as they are written, each once."""
    written = [text, *_labels(content), *_addresses(content)]
    return list(dict.fromkeys(mark for one in written for mark in AS_WRITTEN.findall(one)))


def _buttons(content: Content | None) -> Sequence[Button]:
    return [button for row in content.inline for button in row] if content else []


def _labels(content: Content | None) -> Iterator[str]:
    """Emit the labels and the data of all buttons."""
    for button in _buttons(content):
        yield from (button.text, button.data)
    for row in (content.reply if content else None) or ():
        yield from row


def _addresses(content: Content | None) -> Iterator[str]:
    return (button.url for button in _buttons(content))


def _read(text: str, path: str, mode: ParseMode, escape: Callable[[str], str] | None = None) -> PersonalText:
    """Return a text with its marks. Raises Invalid FIELD_MALFORMED."""
    if "{{" not in text:
        return PersonalText([text], str)
    parts: list[str | _PersonalMark] = []
    end = 0
    pattern = _IN_MARKDOWN if mode is ParseMode.MARKDOWN_V2 else _IN_TEXT
    for found in pattern.finditer(text):
        literal, named, unclosed = found.groups()
        if literal is None and named is None and unclosed is None:
            continue  # an escaped character of MarkdownV2
        parts.append(text[end : found.start()])
        parts.append(escaped("{{", mode) if literal else _mark(named, text, found.start(), path, mode))
        end = found.end()
    parts.append(text[end:])
    return PersonalText(parts, escape or partial(escaped, mode=mode))


def _mark(named: str | None, text: str, start: int, path: str, mode: ParseMode) -> _PersonalMark:
    """Return a mark. Raises Invalid FIELD_MALFORMED."""
    name, bar, default = (named or "").partition("|")
    if mode is ParseMode.MARKDOWN_V2:
        name = name.replace("\\", "")
    field = field_name(name)
    if named is None or not field or len(field) > LONGEST_FIELD:
        detail = (
            f"Character {start + 1}, {text[start : start + 20]!r}: a field is written {{{{name}}}}, with at most"
            f" {LONGEST_FIELD} characters; \\{{{{ writes two braces."
        )
        raise Invalid("FIELD_MALFORMED", detail, path)
    return _PersonalMark(field, default if bar else None)
