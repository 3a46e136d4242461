"""“Did you mean …?” for names that are not known. Pure."""

import difflib
from collections.abc import Sequence


def closest(name: str, known: Sequence[str]) -> str:
    """Return the end of an error message with the most similar known name; empty if none is similar."""
    similar = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {similar[0]}?" if similar else ""


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """Return what `closest` does; if none is similar, all known names."""
    return closest(name, known) or f"; known are {', '.join(known)}"
