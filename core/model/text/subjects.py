"""The subject of a mail, made of its text. Pure."""

import re

_LONGEST = 70


def beginning_of(text: str) -> str:
    """Return the first line of a text for a subject, at most 70 characters long, without control characters."""
    lines = (" ".join(line.split()) for line in text.splitlines())
    line = re.sub("[\x00-\x1f\x7f-\x9f]", "", next((line for line in lines if line), ""))
    if len(line) <= _LONGEST:
        return line
    cut = line[: _LONGEST - 1]
    return (cut[: cut.rindex(" ")] if " " in cut else cut) + "…"
