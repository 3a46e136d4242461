"""Texts as MAX takes them: in parts of at most 4,000, with marks in its HTML. Pure.

The unit of the 4,000 and whether marks count are not documented: UTF-16 code units of what is sent are counted, the
strictest. A text without marks is sent without a format, letter for letter. Source: dev.max.ru, "text formatting".
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from couriers.sending import ParseMode, Span, marked, spans, split_text, utf16_length

LONGEST = 4000

_SHOWN = frozenset({"bold", "italic", "underline", "strikethrough", "code", "pre", "link", "blockquote"})
_TRIED = (4000, 3000, 2000, 1000, 500)
"""Lengths of parts without marks, until they are short enough with them."""


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
