"""Findings of the check and warnings in Russian. Pure but for reading the words once.

A finding is written in English where it is found. `ru.json` has that English with {names} in place of what varies, and
its Russian beside it: so a text is recognised, its parameters are read, and it is written again. What an outside
program has said is quoted as it is.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

LANGUAGES = ("en", "ru")
Translations = Mapping[str, Mapping[str, str]]
"""Language → name of a field → its text."""
_WORDS = Path(__file__).with_name("ru.json")
_NAME = re.compile(r"\{(\w+)\}")
_LONGEST, _COLON, _MOST_COLONS = 600, ": ", 12
_INNER = "text"
"""The parameter that is a whole text of its own."""


@dataclass(frozen=True, slots=True)
class Translated:
    """A text with its parameters, by name, as they are in the English text."""

    parameters: Mapping[str, str]
    russian: str


@dataclass(frozen=True, slots=True)
class _Phrase:
    """A text with {names}, in both languages. `pattern` finds the English one."""

    english: str
    russian: str
    pattern: re.Pattern[str]

    def read(self, text: str) -> Translated | None:
        """Return the text in Russian if it is this one."""
        if (found := self.pattern.fullmatch(text)) is None:
            return None
        values, inner = found.groupdict(), None
        if _INNER in values and (inner := translated(values.pop(_INNER))) is None:
            return None
        shown = {name: _value(value) for name, value in values.items()}
        values = {name: _unquoted(value) for name, value in values.items()}
        if inner:
            values, shown = {**values, **inner.parameters}, {**shown, _INNER: inner.russian}
        return Translated(values, _NAME.sub(lambda name: shown.get(name[1], name[0]), self.russian))


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] in "'\"" else value


def in_language(text: str, language: str) -> str:
    """Return a text of Ada in a language; in English if it is not known."""
    found = translated(text) if language == "ru" else None
    return found.russian if found else text


def translations(**texts: str) -> Translations:
    """Return the texts, by name, that are known in another language than English."""
    return {"ru": {name: found.russian for name, text in texts.items() if (found := translated(text))}}


@lru_cache(maxsize=10_000)
def translated(text: str) -> Translated | None:
    """Return a text in Russian; None if it is not known, or so long that reading it would take time."""
    if len(text) > _LONGEST or text.count(_COLON) > _MOST_COLONS:
        return None
    return _phrase(text) or _behind_place(text)


def _phrase(text: str) -> Translated | None:
    return next((found for one in _phrases() if (found := one.read(text))), None)


def _behind_place(text: str) -> Translated | None:
    """Return a text behind the name of what it is about, such as `send: text: …`."""
    for colon in re.finditer(_COLON, text):
        if found := translated(text[colon.end() :]):
            place = text[: colon.start()]
            return Translated({"place": place, **found.parameters}, f"{place}: {found.russian}")
    return None


@lru_cache(maxsize=10_000)
def _value(value: str) -> str:
    """Return a parameter in Russian, such as “a list”. What the author has written is in quotes, and stays."""
    found = _phrase(value) if value[:1].isalpha() else None
    return found.russian if found else value


@cache
def _phrases() -> tuple[_Phrase, ...]:
    """Return all texts: those around another text first, then those with more words of their own."""
    return tuple(
        sorted(_read(), key=lambda one: (f"{{{_INNER}}}" not in one.english, -len(_NAME.sub("", one.english))))
    )


def _read() -> Iterator[_Phrase]:
    words: dict[str, str] = json.loads(_WORDS.read_text())
    for english, russian in words.items():
        yield _Phrase(english, russian, re.compile(_pattern(english), re.DOTALL))


def _pattern(english: str) -> str:
    """Return a pattern. A name that is there twice has one value. At the beginning a value ends before a colon: that is
    the one of a place.
    """
    parts, seen = [], set[str]()
    for number, part in enumerate(_NAME.split(english)):
        if number % 2 == 0:
            parts.append(re.escape(part))
        elif part in seen:
            parts.append(f"(?P={part})")
        else:
            letter = "(?:(?!: ).)" if "".join(parts) == "" and part != _INNER else "."
            parts.append(f"(?P<{part}>{letter}+?)")
            seen.add(part)
    return "".join(parts)
