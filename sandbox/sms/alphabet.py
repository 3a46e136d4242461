"""Characters and parts of an SMS (3GPP TS 23.038, 6.2.1 and 23.040, 9.2.3.24.1)."""

from collections.abc import Iterable

BASIC = frozenset(
    "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?"
    "¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
)
EXTENSION = frozenset("\f^{}\\[~]|€")  # each takes two septets: an escape and the character

GSM, UCS2 = 0, 2
_SINGLE = {GSM: 160, UCS2: 70}
_CONCATENATED = {GSM: 153, UCS2: 67}


def as_gsm(text: str) -> str:
    """Return the text as received in GSM 03.38: a character outside the alphabet becomes a question mark."""
    return "".join(character if character in BASIC or character in EXTENSION else "?" for character in text)


def parts(text: str, coding: int) -> int:
    """Return how many SMS the text takes. An escape sequence or surrogate pair is never cut in two."""
    sizes = [_size(character, coding) for character in text]
    return 1 if sum(sizes) <= _SINGLE[coding] else _part_count(sizes, _CONCATENATED[coding])


def _size(character: str, coding: int) -> int:
    if coding == GSM:
        return 2 if character in EXTENSION else 1
    return 2 if ord(character) > 0xFFFF else 1


def _part_count(sizes: Iterable[int], capacity: int) -> int:
    """Count the parts that these letters fill, one after the other."""
    full, used = 0, 0
    for size in sizes:
        if used + size > capacity:
            full, used = full + 1, 0
        used += size
    return full + 1
