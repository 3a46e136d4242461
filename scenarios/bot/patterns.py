"""Regular expressions that bot authors write, with limits: for triggers, the validator and placeholders. Pure.

Guarantees: a search ends in about 0.1 s, also with a pattern that backtracks exponentially (the limit is 50 ms; the
library reads the clock at intervals). A pattern whose compilation would take seconds or gigabytes is refused. The
library is `regex`: `re` has no time limit, and a thread that runs it cannot be stopped.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from scenarios.words import SentenceError, sentence

if TYPE_CHECKING:
    import regex

SEARCH_SECONDS = 0.05
"""Limit for one search."""

LONGEST_PATTERN = 1000
"""In characters."""

LARGEST_PATTERN = 50_000
"""In steps, with `x{n}` as n steps. A pattern of this size is compiled in about 0.1 s."""

_STEPS = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{(?P<times>\d+)(?:,\d*)?\}|(?P<open>\()|(?P<close>\))|.", re.DOTALL
)


class PatternRefused(SentenceError, ValueError):
    """The pattern is broken, or too large to be compiled."""


class PatternTimeout(SentenceError):
    """The search has reached its time limit. Whether the text matches is unknown."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A compiled pattern."""

    source: str
    compiled: "regex.Pattern[str]"

    def search(self, text: str) -> tuple[str, ...] | None:
        """Return the first match, then its groups ("" for a group that took no part); None if there is none.

        Raises PatternTimeout.
        """
        try:
            match = self.compiled.search(text, timeout=SEARCH_SECONDS)
        except TimeoutError:
            raise PatternTimeout(sentence("search_took_longer_than", most=f"{SEARCH_SECONDS * 1000:.0f}")) from None
        return (match[0], *match.groups("")) if match else None


@lru_cache(maxsize=1024)
def compile_pattern(source: str, ignore_case: bool = False) -> Pattern:
    """Return a pattern in the syntax of Python's `re`. Raises PatternRefused. The last 1024 patterns are kept."""
    import regex  # loading it takes 50 ms, and most commands of `./ada` never need it

    if len(source) > LONGEST_PATTERN:
        raise PatternRefused(sentence("pattern_longer_than_characters", most=LONGEST_PATTERN))
    if size_of(source) > LARGEST_PATTERN:
        raise PatternRefused(sentence("repetitions_pattern_larger_than", most=LARGEST_PATTERN))
    try:
        return Pattern(source, regex.compile(source, regex.IGNORECASE if ignore_case else 0))
    except (regex.error, ValueError, RecursionError) as error:
        raise PatternRefused(sentence("pattern_broken", why=str(error) or type(error).__name__)) from None


def size_of(source: str) -> int:
    """Return the number of steps of a pattern, with each counted repetition written out."""
    totals, last = [0], 0
    for step in _STEPS.finditer(source):
        if times := step["times"]:
            added = last * (int(times[:9]) - 1)
            last += added
        elif step["open"]:
            totals.append(0)
            continue
        elif step["close"] and len(totals) > 1:
            added = last = totals.pop() + 1
        else:
            added = last = 1
        totals[-1] += added
    return sum(totals)
