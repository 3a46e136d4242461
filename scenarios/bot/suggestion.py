"""“Did you mean …?” for names that are not known. Pure."""

import difflib
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

from scenarios.words import Text, sentence

MAX_KNOWN = 5000
"""With more known names there is no suggestion: the search would take longer than loading."""

_ALPHABETS = ("Latin", "Cyrillic", "Greek")
_LOOK_ALIKE = str.maketrans(
    "аеорсухіјѕкАВЕКМНОРСТУХІЈЅαορνκιΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "aeopcyxijskABEKMHOPCTYXIJSaopvkiABEZHIKMNOPTYX"
)
"""Letters of the Cyrillic and Greek alphabets → the Latin ones that look the same."""


def did_you_mean(text: Text, name: str, known: Iterable[str]) -> Text:
    """Return a text about a name that is not known with the known name that it may mean; as it is if none is similar. A
    letter of the name that only looks like that of the known one is named.
    """
    meant = closest(name, tuple(known))
    if not meant:
        return text
    if looks(name) != looks(meant) or name == meant:
        return sentence("did_you_mean", text=text, meant=meant)
    pairs = enumerate(zip(name, meant, strict=False), 1)
    place, (written, wanted) = next((place, pair) for place, pair in pairs if pair[0] != pair[1])
    letters = {"alphabet": _alphabet(written), "written": written, "other": _alphabet(wanted), "wanted": wanted}
    return sentence("did_you_mean_letter", text=text, meant=meant, place=place, **letters)


def _alphabet(letter: str) -> Text:
    name = unicodedata.name(letter, "other").split()[0].capitalize()
    return sentence(name.lower()) if name in _ALPHABETS else name


def looks(name: str) -> str:
    """Return the name with Latin letters in place of those that look like them."""
    return name.translate(_LOOK_ALIKE)


@lru_cache(maxsize=10_000)
def closest(name: str, known: tuple[str, ...]) -> str | None:
    """Return the most similar known name; a name that differs only by a slip comes first."""
    return slip_of(name, known) or next(iter(difflib.get_close_matches(name, known[:MAX_KNOWN], n=1)), None)


@lru_cache(maxsize=10_000)
def slip_of(name: str, known: tuple[str, ...]) -> str | None:
    """Return the known name of which this is a slip of the keyboard: it looks the same, or has one wrong letter, in
    long names two, in names of one or two letters none.
    """
    if len(known) > MAX_KNOWN:
        return None
    alike = (one for one in known if looks(one) == looks(name))
    return next(alike, None) or next((one for one in known if is_slip(name, one)), None)


def is_slip(name: str, known: str) -> bool:
    allowed = (len(known) > 2) + (len(known) > 5)
    name, known = looks(name), looks(known)
    return abs(len(name) - len(known)) <= allowed and distance(name.lower(), known.lower()) <= allowed


def distance(left: str, right: str) -> int:
    """Return how many letters are missing, added, replaced or exchanged with their neighbour."""
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, letter in enumerate(left, 1):
        older, before, row = before, row, [i]
        for j, other in enumerate(right, 1):
            best = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != other))
            if i > 1 and j > 1 and letter == right[j - 2] and left[i - 2] == other:
                best = min(best, older[j - 2] + 1)
            row.append(best)
    return row[-1]
