"""A sentence of Ada for people: a code with parameters, for which each language has a text.

Lists of sentences (`sentences.json`) have the code, the English and the Russian text beside each other, one on a line.
Programs read the code and the parameters, never the text.
"""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from msgspec import Struct

LANGUAGES = ("en", "ru")
Languages = Mapping[str, str]
"""Language → text, with {names} in place of parameters."""

INNER = "text"
"""The parameter that is a whole sentence of its own; its parameters count as those of the sentence around it."""

_lists = [Path(__file__).with_name("sentences.json")]


class Sentence(Struct, frozen=True):
    """`values`: name of a parameter → its value, which may be a sentence, too. Its text as a str is English."""

    code: str
    values: "tuple[tuple[str, Text | int], ...]" = ()

    @property
    def parameters(self) -> Mapping[str, str]:
        """The values by name, with those of the sentence inside."""
        found: dict[str, str] = {}
        for name, value in self.values:
            inner = value.parameters if name == INNER and isinstance(value, Sentence) else {name: str(value)}
            found |= inner
        return found

    def in_language(self, language: str) -> str:
        """Return the text; the code with the parameters if another version of Ada has made it."""
        if self.code not in sentences():
            return f"{self.code}: {', '.join(self.parameters.values())}"
        values = {name: in_language(value, language) for name, value in self.values}
        return sentences()[self.code][language].format_map(values)

    def __str__(self) -> str:
        return self.in_language(LANGUAGES[0])


Text = str | Sentence
"""Words of an outside program are a str, in any language."""


class SentenceError(Exception):
    """An error whose text is a sentence, `said`, in each language."""

    def __init__(self, said: Text) -> None:
        super().__init__(said)
        self.said = said

    def __str__(self) -> str:
        return str(self.said)


def sentence(code: str, **parameters: Text | int) -> Sentence:
    """Return the sentence with this code."""
    values = ((name, value if isinstance(value, int | Sentence) else str(value)) for name, value in parameters.items())
    return Sentence(code, tuple(values))


def placed(place: str, text: Text) -> Sentence:
    """Return a text behind the name of what it is about."""
    return sentence("place", place=place, text=text)


def in_language(text: Text | int, language: str) -> str:
    return text.in_language(language) if isinstance(text, Sentence) else str(text)


def add_list(path: Path) -> None:
    """Have the sentences of a list known."""
    if path not in _lists:
        _lists.append(path)
        sentences.cache_clear()


@cache
def sentences() -> Mapping[str, Languages]:
    """Return all sentences, by code."""
    found: dict[str, Languages] = {}
    for path in _lists:
        for code, texts in json.loads(path.read_text()).items():
            found[code] = dict(zip(LANGUAGES, texts, strict=True))
    return found
