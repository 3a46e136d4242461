"""The sentences of Ada for authors of bots, in English and in Russian (`sentences.json`)."""

from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path

from core.errors import MOST_SAID, InvalidMany, Refused
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
    return sentence("refused", detail=refusal.detail, text=_in_general(refusal))


def _in_general(refusal: Refused) -> Text:
    faults = refusal.errors if isinstance(refusal, InvalidMany) else [refusal]
    said = list(dict.fromkeys(map(_fault, faults)))
    about = reduce(lambda one, other: sentence("side_by_side", first=one, second=other), said[:MOST_SAID])
    if len(said) > MOST_SAID:
        about = sentence("and_more", first=about, count=len(said) - MOST_SAID)
    after = refusal.retry_after
    return sentence("possible_after", problem=about, after=duration(after)) if after else about


def _fault(one: Refused) -> Text:
    general = problem(one.code)
    text = general if general.code in sentences() else one.said
    return placed(one.about, text) if one.about else text
