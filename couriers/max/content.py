"""The content of a message as the bodies of the calls that send it: its text in parts, its files with the first, its
buttons with the last. Pure.

MAX takes parts of at most 4,000 characters, with marks in its HTML. The unit of the 4,000 and whether marks count are
not documented: UTF-16 code units of what is sent are counted, the strictest. A text without marks is sent without a
format, letter for letter.

MAX has no keyboard in place of the person's own: a row of texts is a row of buttons of type `message`, each of which
writes its text as the person, or of type `request_contact`. Rows that are too long are continued in the next row.
Source: dev.max.ru, "text formatting", "keyboard".
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, NamedTuple

from couriers.sending import (
    Button,
    Content,
    Feature,
    KeyboardLimits,
    ParseMode,
    Span,
    marked,
    spans,
    split_text,
    utf16_length,
)

LONGEST_LABEL = 128

Json = dict[str, Any]

MOST_ROWS = 30
LONGEST_PAYLOAD, LONGEST_LINK = 1024, 2048

_WIDTH, _WIDTH_OF_WIDE = 7, 3
"""Buttons in a row; fewer if one of them is a link or asks for a contact."""

LIMITS = KeyboardLimits(
    inline_rows=MOST_ROWS,
    inline_buttons=MOST_ROWS * _WIDTH,
    reply_rows=MOST_ROWS,
    reply_buttons=MOST_ROWS * _WIDTH,
    width=_WIDTH,
    label=LONGEST_LABEL,
    data=2**16,
    data_bytes=LONGEST_PAYLOAD,
    wide=_WIDTH_OF_WIDE,
    link=LONGEST_LINK,
)

LONGEST = 4000
_SHOWN = frozenset({"bold", "italic", "underline", "strikethrough", "code", "pre", "link", "blockquote"})

_TRIED = (4000, 3000, 2000, 1000, 500)
"""Lengths of parts without marks, until they are short enough with them."""

MOST_FILES = 11
"""With the keyboard a message has at most 12 attachments."""

NOTHING = Content()


def keyboard_of(rows: Sequence[Sequence[Json]]) -> Json:
    return {"type": "inline_keyboard", "payload": {"buttons": [list(row) for row in rows]}}


def callback_button(text: str, payload: str) -> Json:
    return {"type": "callback", "text": text, "payload": payload}


def link_button(text: str, url: str) -> Json:
    return {"type": "link", "text": text, "url": url}


def text_button(text: str) -> Json:
    return {"type": "message", "text": text}


def contact_button(text: str) -> Json:
    """Return a button that shares the person's contact."""
    return {"type": "request_contact", "text": text}


def keyboard(content: Content) -> Json | None:
    """Return the attachment with the buttons, None for none. Buttons below the message win."""
    if content.inline:
        return keyboard_of([[_button(one) for one in row] for row in LIMITS.rows(content.inline)])
    texts = LIMITS.rows(content.reply or (), content.request_contact)
    return keyboard_of([[_key(one, content) for one in row] for row in texts]) if texts else None


def _key(label: str, content: Content) -> Json:
    return contact_button(label) if label in content.request_contact else text_button(label)


def _button(button: Button) -> Json:
    return link_button(button.text, button.url) if button.url else callback_button(button.text, button.data)


class MaxPart(NamedTuple):
    """A part of a text. `shown`: without marks, as the person sees it."""

    text: str
    shown: str
    has_marks: bool = False


def parts(text: str, mode: ParseMode = ParseMode.PLAIN) -> tuple[Sequence[MaxPart], bool]:
    """Return the parts, and whether all marks are shown: MAX has no spoilers and no custom emoji."""
    if not text.strip():
        return (), True
    plain, found = (text, []) if mode is ParseMode.PLAIN else spans(text, mode)
    known = [one for one in found if one.kind in _SHOWN]
    if not known:
        return [MaxPart(one, one) for one in split_text(plain, LONGEST)], not found
    for longest in _TRIED:
        made = list(_marked(split_text(plain, longest), known))
        if max(utf16_length(part.text) for part in made) <= LONGEST:
            return made, len(known) == len(found)
    return [MaxPart(one, one) for one in split_text(plain, LONGEST)], False


def _marked(texts: Sequence[str], found: Sequence[Span]) -> Iterator[MaxPart]:
    start = 0
    for text in texts:
        end = start + utf16_length(text)
        inner = [_entity(one, start, end) for one in found if one.offset < end and one.offset + one.length > start]
        yield MaxPart(marked(text, inner, ParseMode.HTML), text, has_marks=True)
        start = end


def _entity(span: Span, start: int, end: int) -> dict[str, object]:
    """Return the piece of a marked range that is within a part."""
    begin, stop = max(span.offset, start), min(span.offset + span.length, end)
    kind = "text_link" if span.kind == "link" else span.kind
    return {"type": kind, "offset": begin - start, "length": stop - begin, "url": span.target}


@dataclass(frozen=True, slots=True)
class Body:
    """The body of one call. `shown`: the text as the person sees it."""

    json: Json
    shown: str

    def without_reply(self) -> "Body":
        return Body({name: value for name, value in self.json.items() if name != "link"}, self.shown)


@dataclass(frozen=True, slots=True)
class MaxDraft:
    """The calls of one message, in order. `not_shown`: as in `couriers.sending.Sent`."""

    bodies: Sequence[Body]
    not_shown: tuple[str, ...] = ()


def draft(text: str, content: Content = NOTHING, files: Sequence[Json] = (), missing: Sequence[str] = ()) -> MaxDraft:
    """Return the calls. `missing`: the files that could not be transferred."""
    texts, shows_marks = parts(text, content.parse_mode)
    not_shown = list(missing)
    if not shows_marks:
        not_shown.append(Feature.PARSE_MODE)
    if content.inline and content.reply is not None:
        not_shown.append(Feature.REPLY)  # a message has one keyboard
    return MaxDraft(list(_bodies(texts, content, files)), tuple(not_shown))


def _bodies(texts: Sequence[MaxPart], content: Content, files: Sequence[Json]) -> Iterator[Body]:
    groups = [files[start : start + MOST_FILES] for start in range(0, len(files), MOST_FILES)]
    last = max(len(texts), len(groups)) - 1
    for number, (part, group) in enumerate(zip_longest(texts, groups)):
        body = _text(part) | (
            {"link": {"type": "reply", "mid": mid}} if not number and (mid := _reply(content)) else {}
        )
        buttons = keyboard(content) if number == last else None
        attachments = [*(group or ()), *([buttons] if buttons else ())]
        yield Body(body | ({"attachments": attachments} if attachments else {}), part.shown if part else "")


def _text(part: MaxPart | None) -> Json:
    if part is None:
        return {}
    return {"text": part.text, "format": "html"} if part.has_marks else {"text": part.text}


def _reply(content: Content) -> str:
    return content.reply_to.partition(",")[0]


def edited_body(text: str, content: Content, files: Sequence[Json]) -> Json | None:
    """Return the body of an edit; None if one message cannot show the content. An edit removes the buttons and files
    that it does not name.
    """
    texts, _ = parts(text, content.parse_mode)
    if len(texts) > 1 or len(files) > MOST_FILES:
        return None
    buttons = keyboard(content)
    return _text(texts[0] if texts else None) | {"attachments": [*files, *([buttons] if buttons else ())]}


def files_of(message: Json) -> list[Json]:
    """Return the files of a message as an edit that keeps them names them."""
    attachments = message["body"].get("attachments") or ()
    named = [(one["type"], (one.get("payload") or {}).get("token")) for one in attachments]
    return [{"type": kind, "payload": {"token": token}} for kind, token in named if token]
