"""Recognises the addressee with which a written message begins: a group or supergroup, by its title or its id. Pure.

    ИВТ-101 Пары не будет            the first words are a whole title; the longest one counts
    ивт: Пары не будет               before a colon or a line break the beginning of a title is enough

Without the colon a beginning is not enough: "А пары не будет" must not go to the group "А-12". Letters are compared
without case, ё is е, and any number of spaces is one.
"""

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from core.model.people import id_text
from core.model.text.characters import nfc
from core.orders.choices import Choice

MOST_WORDS = 12
"""Words of a title that are recognised without a colon or line break."""

_MARKED = re.compile(r"\s*([^\n:]{1,300})[:\n](.*)", re.DOTALL)
_WORD = re.compile(r"\S+")


class Recognised(Struct, frozen=True):
    """`choice`: the addressee. `text`: what follows it, without spaces around; it may be empty."""

    choice: Choice
    text: str


class UnclearWords(Struct, frozen=True):
    """No addressee or several. `candidates`: those it may be; none if nothing is like it."""

    candidates: Sequence[Choice] = ()


def recognise(text: str, choices: Iterable[Choice]) -> Recognised | UnclearWords:
    """Return the addressee of a message among `choices`."""
    choices = tuple(choices)
    marked = _MARKED.match(text)
    if marked and (found := _named(marked[1], choices) or _beginning_with(marked[1], choices)):
        return _result(found, marked[2])
    words = list(_WORD.finditer(text))[:MOST_WORDS]
    for word in reversed(words):
        if found := _named(text[: word.end()], choices):
            return _result(found, text[word.end() :])
    return UnclearWords(_beginning_with(words[0][0], choices) if words else ())


def _result(found: Sequence[Choice], rest: str) -> Recognised | UnclearWords:
    return Recognised(found[0], rest.strip()) if len(found) == 1 else UnclearWords(found)


def _named(name: str, choices: Sequence[Choice]) -> Sequence[Choice]:
    name = _plain(name)
    return [one for one in choices if name in _names(one)] if name else ()


def _beginning_with(name: str, choices: Sequence[Choice]) -> Sequence[Choice]:
    name = _plain(name)
    return [one for one in choices if any(other.startswith(name) for other in _names(one))] if name else ()


def _names(choice: Choice) -> tuple[str, str]:
    return _plain(choice.title), _plain(id_text(choice.id))


def _plain(name: str) -> str:
    return " ".join(nfc(name).casefold().replace("ё", "е").strip(" \t\r\n:,;").split())
