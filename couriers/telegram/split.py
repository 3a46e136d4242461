"""Cuts a text into parts that Telegram takes: 4096 UTF-16 code units each.

Source: core.telegram.org/api/config, message_length_max; core.telegram.org/api/entities, "Entity length".
"""

import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache

LONGEST = 4096
_SEARCHED = 400  # how far back a better place to cut is looked for
_JOINER = "\u200d"
_SKIN_TONES = range(0x1F3FB, 0x1F400)
_BLANKS = ("\n", " ")  # the end of a line is a better place to cut than the end of a word


def units(text: str) -> int:
    """The length that Telegram counts."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


@lru_cache(maxsize=16)
def split(text: str, longest: int = LONGEST) -> Sequence[str]:
    """The parts, in order, which joined give the text again; none is longer than `longest`, none is empty.

    A part ends behind a line or a word if one ends near its limit, else never inside of what is seen as one character.
    Kept for a while: all recipients of a delivery get the same text.
    """
    return tuple(_parts(text, longest)) or (text,)


def _parts(text: str, longest: int) -> Iterator[str]:
    start = 0
    while start < len(text):
        end = _cut(text, start, _furthest(text, start, longest))
        yield text[start:end]
        start = end


def _furthest(text: str, start: int, longest: int) -> int:
    """The first index that does not fit any more. Python's characters are code points: a surrogate pair stays whole."""
    end, room = min(len(text), start + longest), longest
    room -= units(text[start:end])
    while room < 0:
        end -= 1
        room += units(text[end])
    return end


def _cut(text: str, start: int, limit: int) -> int:
    if limit == len(text):
        return limit
    lowest = max(start + 1, limit - _SEARCHED)
    for blank in _BLANKS:
        if (found := text.rfind(blank, lowest, limit)) >= 0:
            return found + 1
    return next((place for place in range(limit, lowest - 1, -1) if not _belongs(text, place)), limit)


def _belongs(text: str, place: int) -> bool:
    """Whether the character here is part of what is seen before it: an accent, a skin tone, a member of a family."""
    character = text[place]
    return (
        text[place - 1] == _JOINER
        or character == _JOINER
        or ord(character) in _SKIN_TONES
        or unicodedata.category(character).startswith("M")
    )
