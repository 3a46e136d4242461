"""The alphabet that a text needs, and how many SMS it takes. Pure functions.

Source: 3GPP TS 23.038, 6.2.1 (alphabet and extension table); TS 23.040, 9.2.3.24.1 (concatenated messages).
"""

from collections.abc import Iterable
from enum import IntEnum

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


def coding_of(text: str) -> Coding:
    """Return UCS2 if any character is not in GSM 03.38 (Cyrillic, “quotes”, №), else GSM."""
    return Coding.GSM if all(character in BASIC or character in EXTENSION for character in text) else Coding.UCS2


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
