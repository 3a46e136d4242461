"""The sentences of Ada for authors of bots, in English and in Russian (`sentences.json`)."""

from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path

from core.errors import InvalidMany, Refused
from core.sentence import (
    LANGUAGES,
    Sentence,
    SentenceError,
    Text,
    add_list,
    duration,
    in_language,
    placed,
    problem,
    sentence,
    sentences,
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
    "why_refused",
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


def why_refused(refusal: Refused) -> Text:
    """Return why something is refused. A plain detail is said in English; another language says what the code means,
    behind whom or what it is about, and how long to wait. What another program has said stays as it is.
    """
    general = problem(refusal.code)
    if isinstance(refusal.said, Sentence) or general.code not in sentences():
        return refusal.said
    return sentence("refused", detail=refusal.detail, text=_in_general(refusal, general))


def _in_general(refusal: Refused, general: Sentence) -> Sentence:
    first = refusal.errors[0] if isinstance(refusal, InvalidMany) else refusal
    about = placed(first.about, general) if first.about else general
    after = refusal.retry_after
    return sentence("possible_after", problem=about, after=duration(after)) if after else about
