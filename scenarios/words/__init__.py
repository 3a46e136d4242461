"""The sentences of Ada for authors of bots, in English and in Russian (`sentences.json`)."""

from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path

from core.sentence import (
    LANGUAGES,
    Sentence,
    SentenceError,
    Text,
    add_list,
    in_language,
    placed,
    sentence,
    without_place,
)

__all__ = [
    "LANGUAGES",
    "Sentence",
    "SentenceError",
    "Text",
    "Translations",
    "in_language",
    "placed",
    "sentence",
    "together",
    "translations",
    "without_place",
]

add_list(Path(__file__).with_name("sentences.json"))

Translations = Mapping[str, Mapping[str, str]]
"""Language → name of a field → its text."""


def together(texts: Sequence[Text]) -> Text:
    """Return several texts as one; "" for none."""
    return reduce(lambda one, other: sentence("and_also", first=one, second=other), texts) if texts else ""


def translations(**texts: Text) -> Translations:
    """Return the texts, by name, that are known in another language than English."""
    return {"ru": {name: in_language(text, "ru") for name, text in texts.items() if isinstance(text, Sentence)}}
