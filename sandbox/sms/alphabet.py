"""Letters and parts of an SMS (3GPP TS 23.038, 6.2.1 and 23.040, 9.2.3.24.1)."""

from collections.abc import Iterable

BASIC = frozenset(
    "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?"
    "¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
)
EXTENSION = frozenset("\f^{}\\[~]|€")  # each takes an escape before it

GSM, UCS2 = 0, 2
_ALONE = {GSM: 160, UCS2: 70}
_JOINED = {GSM: 153, UCS2: 67}


def as_gsm(text: str) -> str:
    """Return the text as it arrives in GSM 03.38: a letter it does not have becomes a question mark."""
    return "".join(letter if letter in BASIC or letter in EXTENSION else "?" for letter in text)


def parts(text: str, coding: int) -> int:
    """Return how many SMS the text takes; an escape or surrogate pair is never cut in two."""
    sizes = [_size(letter, coding) for letter in text]
    return 1 if sum(sizes) <= _ALONE[coding] else _filled(sizes, _JOINED[coding])


def _size(letter: str, coding: int) -> int:
    if coding == GSM:
        return 2 if letter in EXTENSION else 1
    return 2 if ord(letter) > 0xFFFF else 1


def _filled(sizes: Iterable[int], room: int) -> int:
    """Count the parts that these letters fill, one after the other."""
    full, used = 0, 0
    for size in sizes:
        if used + size > room:
            full, used = full + 1, 0
        used += size
    return full + 1
