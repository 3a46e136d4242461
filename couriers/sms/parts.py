"""Which alphabet a text needs and how many SMS it takes: pure, for whoever wants to show the price before sending.

Source: 3GPP TS 23.038, 6.2.1 (alphabet and extension table); TS 23.040, 9.2.3.24.1 (concatenated messages).
"""

from collections.abc import Iterable
from enum import IntEnum

BASIC = frozenset(
    "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?"
    "¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
)
EXTENSION = frozenset("\f^{}\\[~]|€")  # each is an escape and a septet


class Coding(IntEnum):
    """The alphabet of a message, by the number that Kannel's `coding` has for it."""

    GSM = 0
    UCS2 = 2


ALONE = {Coding.GSM: 160, Coding.UCS2: 70}
JOINED = {Coding.GSM: 153, Coding.UCS2: 67}  # six octets of each part say which part it is


def coding_of(text: str) -> Coding:
    """One letter outside of GSM 03.38 (any Cyrillic one, “quotes”, №) turns the whole text to UCS-2."""
    return Coding.GSM if all(letter in BASIC or letter in EXTENSION for letter in text) else Coding.UCS2


def parts(text: str) -> int:
    """How many SMS the text takes. No part ends inside of an escape or surrogate pair, so rounding up is too little."""
    coding = coding_of(text)
    sizes = [size(letter, coding) for letter in text]
    return 1 if sum(sizes) <= ALONE[coding] else _filled(sizes, JOINED[coding])


def size(letter: str, coding: Coding) -> int:
    """Septets or UTF-16 units of one letter."""
    if coding is Coding.GSM:
        return 2 if letter in EXTENSION else 1
    return 2 if letter > "\uffff" else 1


def _filled(sizes: Iterable[int], room: int) -> int:
    count, free = 1, room
    for taken in sizes:
        if taken > free:
            count, free = count + 1, room
        free -= taken
    return count
