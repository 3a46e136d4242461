"""Selects the content that a channel can show; the rest is recorded as not shown (C-91). Pure.

What a courier declares as text is written behind the text: buttons as numbered choices, files as links.

Called by `couriers.sending.parcels.parcel_executor`, once for each parcel.
"""

import html
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import PurePath
from typing import Any, NamedTuple

from msgspec.structs import replace

from core.deliveries.numbered_choices import choice_lines, choices_of
from core.model.content import Button, Content, Feature, ParseMode
from core.model.text.characters import nfc
from core.model.text.text_marks import cut_text, has_marks, plain_text
from core.model.text.text_parts import utf16_length
from core.model.user_files import safe_name

NOTHING = Content()

LONGEST_TEXT = 4096
"""UTF-16 code units, of a text with its lines."""

_MARKDOWN_MARKS = re.compile(r"([_*\[\]()~`>#+\-=|{}.!\\])")


class Presented(NamedTuple):
    """`content`: None if nothing but the text is left. `not_shown`: the features that the delivery uses and the channel
    does not have. `choices`: the buttons that the text shows with numbers. `answer_by`: how a question is answered, ""
    if it cannot be.
    """

    text: str
    content: Content | None = None
    not_shown: tuple[str, ...] = ()
    choices: Sequence[Button] = ()
    answer_by: str = ""

    @property
    def is_empty(self) -> bool:
        """Return whether nothing can be sent: the delivery has only what the channel cannot show."""
        content = self.content or NOTHING
        return bool(self.not_shown) and not (self.text.strip() or content.attachments or content.edit)


def present(
    text: str,
    content: Content | None,
    shows: Collection[Feature],
    as_text: Collection[Feature] = (),
) -> Presented:
    """Return what a courier with these features gets. Without PARSE_MODE the text is the plain text."""
    if content is None:
        return Presented(text)
    asks = bool(content.request_contact)
    if asks and (Feature.REQUEST_CONTACT not in shows or Feature.REPLY in as_text):
        content = without_contact_buttons(content)
    lost = (Feature.REQUEST_CONTACT,) if asks and not content.request_contact else ()
    content, lines, choices = text_form(content, as_text)
    missing = (*lost, *dict.fromkeys(feature for feature in _used(text, content) if feature not in shows))
    if content.inline and content.reply is not None and not {Feature.INLINE, Feature.REPLY} & {*missing}:
        missing = (*missing, Feature.REPLY)  # a message has one keyboard
    if Feature.PARSE_MODE not in shows:
        text, content = plain_text(text, content.parse_mode), replace(content, parse_mode=ParseMode.PLAIN)
    text, was_cut = with_lines(text, content.parse_mode, lines)
    content = replace(content, **dict(_changes(content, missing)))
    not_shown = (*missing, *_changed_names(content), *((Feature.TEXT_END,) if was_cut else ()))
    return Presented(text, None if content == NOTHING else content, not_shown, choices)


def _changed_names(content: Content) -> Iterator[str]:
    """Emit the names of the files that arrive under another name, as names in headers and forms must be safe."""
    names = (one.name or PurePath(one.path).name for one in content.attachments)
    yield from (f"file_name {name}" for name in names if name and safe_name(name) != nfc(name))


def without_contact_buttons(content: Content) -> Content:
    """Return the content for where no button can ask for a contact. Such a button would only write its text."""
    rows = [[label for label in row if label not in content.request_contact] for row in content.reply or ()]
    return replace(content, reply=[row for row in rows if row] or None, request_contact=())


def _used(text: str, content: Content) -> Iterator[Feature]:
    """Emit the features that a delivery uses; those of the attachments more than once."""
    if has_marks(text, content.parse_mode):
        yield Feature.PARSE_MODE
    for feature in (Feature.INLINE, Feature.REPLY_TO, Feature.EDIT, Feature.REMOVE):
        if getattr(content, feature):
            yield feature
    if content.reply is not None:
        yield Feature.REPLY
    for attachment in content.attachments:
        yield Feature(attachment.type)


def _changes(content: Content, missing: Collection[Feature]) -> Iterator[tuple[str, Any]]:
    """Emit the fields of the content without the missing features."""
    for feature in missing:
        if feature in (Feature.INLINE, Feature.REPLY_TO, Feature.EDIT, Feature.REMOVE, Feature.REPLY):
            yield str(feature), getattr(NOTHING, feature)
    if content.attachments:
        yield "attachments", tuple(one for one in content.attachments if Feature(one.type) not in missing)


class TextForm(NamedTuple):
    """`rest`: the content that is not written as lines. `choices`: what the numbers of the lines mean."""

    rest: Content
    lines: list[str]
    choices: list[Button]


def text_form(content: Content, as_text: Collection[Feature]) -> TextForm:
    """Write these features of a content as lines. A file without an address stays in the rest."""
    is_inline, is_reply = Feature.INLINE in as_text, Feature.REPLY in as_text
    written = Content(inline=content.inline if is_inline else (), reply=content.reply if is_reply else None)
    links = [one for one in content.attachments if one.url and Feature(one.type) in as_text]
    rest = replace(
        content,
        inline=() if is_inline else content.inline,
        reply=None if is_reply else content.reply,
        attachments=[one for one in content.attachments if one not in links] if links else content.attachments,
    )
    return TextForm(rest, [*choice_lines(written), *(one.url for one in links)], choices_of(written))


def with_lines(text: str, mode: ParseMode, lines: Collection[str]) -> tuple[str, bool]:
    """Return the text with the lines behind it, and whether the text had to be cut for them."""
    if not lines:
        return text, False
    behind = "\n".join(_escaped(line, mode) for line in lines)
    if not text.strip():
        return behind, False
    kept = cut_text(text, mode, LONGEST_TEXT - utf16_length(behind) - 1)
    return f"{kept}\n{behind}", kept != text


def _escaped(line: str, mode: ParseMode) -> str:
    match mode:
        case ParseMode.HTML:
            return html.escape(line, quote=False)
        case ParseMode.MARKDOWN_V2:
            return _MARKDOWN_MARKS.sub(r"\\\1", line)
    return line
