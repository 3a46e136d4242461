"""The texts of the dialogs, in Russian and English: `bots/texts/<locale>.yaml`, name → text with {placeholders}. Texts
that bots of scenarios say, too, are sentences of `scenarios.words`.

A test compares the catalogues: every text is there in every language, with the same placeholders.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import yaml

from scenarios.sending.person import language_of
from scenarios.words import Text, in_language, sentence

_FOLDER = Path(__file__).with_name("texts")
LOCALES = ("ru", "en")


def text(name: str, locale: str, /, **values: Text | int) -> str:
    """Return the text `name` in the language of a locale such as `en` or `en-GB`; Russian for all others."""
    language = language_of(locale)
    if name in catalogue(language):
        return catalogue(language)[name].format(**values)
    return in_language(sentence(name, **values), language)


@cache
def catalogue(locale: str) -> Mapping[str, str]:
    """Return all texts of one language."""
    texts: Mapping[str, str] = yaml.safe_load((_FOLDER / f"{locale}.yaml").read_text(encoding="utf-8"))
    return texts
