"""Replaces features that a channel does not have by text: numbered choices, and links to files. Pure.

Called by `couriers.sending.content.content_for_channel`.
"""

import html
import re
from collections.abc import Collection
from typing import NamedTuple

from msgspec.structs import replace

from core.model.content import Button, Content, Feature, ParseMode
from core.model.numbered_choices import choice_lines, choices_of
from core.model.text.text_marks import cut_text
from core.model.text.text_parts import utf16_length

LONGEST_TEXT = 4096
"""UTF-16 code units, of a text with its lines."""

_MARKDOWN_MARKS = re.compile(r"([_*\[\]()~`>#+\-=|{}.!\\])")


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
