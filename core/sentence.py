"""A sentence of Ada: a code with parameters, for which each language has a text.

Lists have the code, the English and the Russian text beside each other, one on a line: `texts.json` what Ada says to
people in messages and on pages, which an installation can replace (ADA_TEXTS); `problems.json` what each
code of a refusal means, for API, console, bots and command line; each `sentences.json` what a room says to those who
set Ada up or write bots, and the refusals that no page of the console can meet. Programs read the code and the
parameters, never the text.
"""

import json
import re
from collections.abc import Mapping
from datetime import timedelta
from functools import cache, reduce
from pathlib import Path

from msgspec import Struct

LANGUAGES = ("en", "ru")
DEFAULT_LANGUAGE = "ru"
"""The language of the installation."""
Languages = Mapping[str, str]
"""Language → text, with {names} in place of parameters."""

_LANGUAGE = re.compile(r"\s*([A-Za-z]+)")

INNER = "text"
"""The parameter that is a whole sentence of its own; its parameters count as those of the sentence around it."""

_FOR_PEOPLE = Path(__file__).with_name("texts.json")
_PROBLEMS = Path(__file__).with_name("problems.json")
_lists = [Path(__file__).with_name("sentences.json"), _PROBLEMS, _FOR_PEOPLE]
_own_texts: dict[str, Languages] = {}


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
    values = ((name, value if isinstance(value, int | Sentence) else str(value)) for name, value in parameters.items())
    return Sentence(code, tuple(values))


def problem(code: str) -> Sentence:
    """Return what a code of a refusal means."""
    return Sentence(f"problem.{code}")


def problems_of_pages(language: str) -> Mapping[str, str]:
    """Return what the refusals mean that a page of the console can meet: `problem.CODE` → text."""
    return {code: texts[language] for code, texts in _listed(_PROBLEMS).items()}


def duration(span: timedelta) -> Sentence:
    """Return a duration in its two largest units, rounded up: after it, what was refused is possible again."""
    seconds = max(1, -(-span // timedelta(seconds=1)))
    minutes = -(-seconds // 60)
    if seconds < 60:
        return sentence("span_seconds", count=seconds)
    days, rest = divmod(minutes, 24 * 60) if minutes >= 60 else (0, minutes)
    hours, minutes = divmod(rest, 60)
    parts = [("span_days", days), ("span_hours", hours), ("span_minutes", 0 if days else minutes)]
    said = [sentence(code, count=count) for code, count in parts if count]
    return reduce(lambda one, other: sentence("side_by_side", first=one, second=other), said)


def placed(place: str, text: Text) -> Sentence:
    """Return a text behind the name of what it is about."""
    return sentence("place", place=place, text=text)


def without_place(text: Text, place: str) -> Text:
    """Return a text without this place before it."""
    values = dict(text.values) if isinstance(text, Sentence) and text.code == "place" else {}
    inner = values.get(INNER)
    return inner if values.get("place") == place and isinstance(inner, Text) else text


def in_language(text: Text | int, language: str) -> str:
    return text.in_language(language) if isinstance(text, Sentence) else str(text)


def say(code: str, locale: str | None, **values: object) -> str:
    """Return the text of a sentence for a person with this locale; None or "" if it has stated none."""
    return sentences()[code][language_of(locale)].format_map(values)


def language_of(*locales: str | None) -> str:
    """Return the language in which Ada speaks to a person: that of the first locale with a known one, such as `en`,
    `en-GB` or the beginning of a header Accept-Language, else that of the installation. Their order: the one that the
    person has stated; that of the text that it gets, or of the conversation; that of its account or browser.
    """
    found = (_LANGUAGE.match(locale or "") for locale in locales)
    languages = (one[1].lower() for one in found if one)
    return next((one for one in languages if one in LANGUAGES), DEFAULT_LANGUAGE)


def language_of_text(text: str) -> str:
    """Return the language of a text: ru if it has a Cyrillic letter, en if it has only others, "" if it has none."""
    if any("\u0400" <= letter <= "\u04ff" for letter in text):
        return "ru"
    return "en" if any(map(str.isalpha, text)) else ""


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
        found |= _listed(path)
    for code, texts in _own_texts.items():
        found[code] = {**found[code], **texts}
    return found


def texts_for_people() -> Mapping[str, Languages]:
    """Return what Ada says to people, by code, without the texts of the installation."""
    return _listed(_FOR_PEOPLE)


def replace_texts(own: Mapping[str, Languages]) -> None:
    """Have these texts said in place of Ada's, in this process. `own`: code of `texts_for_people` → texts; a language
    that it leaves out keeps Ada's.
    """
    if own != _own_texts:
        _own_texts.clear()
        _own_texts.update(own)
        sentences.cache_clear()


def _listed(path: Path) -> dict[str, Languages]:
    return {code: dict(zip(LANGUAGES, texts, strict=True)) for code, texts in json.loads(path.read_text()).items()}
