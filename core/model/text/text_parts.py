"""The parts of a text that a provider accepts: for Telegram at most 4096 UTF-16 code units each; for SMS the alphabet
that a text needs, and how many SMS it takes. Pure.

Sources: core.telegram.org/api/config, message_length_max; core.telegram.org/api/entities, "Entity length". 3GPP TS
23.038, 6.2.1 (alphabet and extension table); TS 23.040, 9.2.3.24.1 (concatenated messages).
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from functools import lru_cache

MAX_LENGTH = 4096
_SEARCHED = 400  # characters before the limit that are searched for a better place to cut
_JOINER = "\u200d"
_SKIN_TONES = range(0x1F3FB, 0x1F400)
_SEPARATORS = ("\n", " ")  # the end of a line is a better place to cut than the end of a word

_LONGEST = 70


def utf16_length(text: str) -> int:
    """Return the length as Telegram counts it."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def split_text(text: str, max_length: int = MAX_LENGTH) -> Sequence[str]:
    """Return the parts, in order. Joined they are the text; none is longer than `max_length` or empty.

    A part ends after a line or a word if one ends near its limit. Otherwise it ends between two visible characters.
    """
    return tuple(_parts(text, max_length)) or (text,)


def beginning(text: str, max_length: int) -> str:
    """Return the longest beginning that is not longer and ends between two visible characters."""
    limit = _limit(text, 0, max_length)
    while 0 < limit < len(text) and _continues(text, limit):
        limit -= 1
    return text[:limit]


def _parts(text: str, max_length: int) -> Iterator[str]:
    start = 0
    while start < len(text):
        end = _cut(text, start, _limit(text, start, max_length))
        yield text[start:end]
        start = end


def _limit(text: str, start: int, max_length: int) -> int:
    """Return the first index that does not fit. Indexes are code points, so a surrogate pair is never cut."""
    end, room = min(len(text), start + max_length), max_length
    room -= utf16_length(text[start:end])
    while room < 0:
        end -= 1
        room += utf16_length(text[end])
    return end


def _cut(text: str, start: int, limit: int) -> int:
    if limit == len(text):
        return limit
    lowest = max(start + 1, limit - _SEARCHED)
    for separator in _SEPARATORS:
        if (found := text.rfind(separator, lowest, limit)) >= 0:
            return found + 1
    return next((index for index in range(limit, lowest - 1, -1) if not _continues(text, index)), limit)


def _continues(text: str, index: int) -> bool:
    """Return whether the code point belongs to the character before it: an accent, a skin tone, part of an emoji."""
    character = text[index]
    return (
        text[index - 1] == _JOINER
        or character == _JOINER
        or ord(character) in _SKIN_TONES
        or unicodedata.category(character).startswith("M")
    )


def beginning_of(text: str) -> str:
    """Return the first line of a text for a subject, at most 70 characters long, without control characters."""
    lines = (" ".join(line.split()) for line in text.splitlines())
    line = re.sub("[\x00-\x1f\x7f-\x9f]", "", next((line for line in lines if line), ""))
    if len(line) <= _LONGEST:
        return line
    cut = line[: _LONGEST - 1]
    return (cut[: cut.rindex(" ")] if " " in cut else cut) + "…"


BASIC = frozenset(
    "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?"
    "¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
)
EXTENSION = frozenset("\f^{}\\[~]|€")  # each takes two septets: an escape and the character


class Coding(IntEnum):
    """The alphabet of a message. The numbers are the values of Kannel's `coding`."""

    GSM = 0
    UCS2 = 2


SINGLE = {Coding.GSM: 160, Coding.UCS2: 70}
CONCATENATED = {Coding.GSM: 153, Coding.UCS2: 67}  # six octets of each part are its header


@lru_cache(maxsize=64)  # a delivery has one text for many recipients
def coding_of(text: str) -> Coding:
    """Return UCS2 if any character is not in GSM 03.38 (Cyrillic, “quotes”, №), else GSM."""
    return Coding.GSM if all(character in BASIC or character in EXTENSION for character in text) else Coding.UCS2


@lru_cache(maxsize=64)
def sms_parts(text: str) -> int:
    """Return how many SMS the text takes.

    An escape sequence or surrogate pair is never cut in two, so this can be more than the length divided by the size.
    """
    coding = coding_of(text)
    sizes = [size(character, coding) for character in text]
    return 1 if sum(sizes) <= SINGLE[coding] else _part_count(sizes, CONCATENATED[coding])


def size(character: str, coding: Coding) -> int:
    """Return the size of one character, in septets (GSM) or UTF-16 code units (UCS2)."""
    if coding is Coding.GSM:
        return 2 if character in EXTENSION else 1
    return 2 if character > "\uffff" else 1


def _part_count(sizes: Iterable[int], capacity: int) -> int:
    count, free = 1, capacity
    for needed in sizes:
        if needed > free:
            count, free = count + 1, capacity
        free -= needed
    return count
