"""The texts of the bots, in Russian and English: `bots/texts/<locale>.yaml`, name → text with {placeholders}.

A test compares the catalogues: every text is there in every language, with the same placeholders.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import yaml

_FOLDER = Path(__file__).with_name("texts")
LOCALES = ("ru", "en")
DEFAULT_LOCALE = "ru"


def text(name: str, locale: str, /, **values: object) -> str:
    """Return the text `name` in the language of a locale such as `en` or `en-GB`; Russian for all others."""
    language = locale.partition("-")[0].lower()
    return catalogue(language if language in LOCALES else DEFAULT_LOCALE)[name].format(**values)


@cache
def catalogue(locale: str) -> Mapping[str, str]:
    """Return all texts of one language."""
    texts: Mapping[str, str] = yaml.safe_load((_FOLDER / f"{locale}.yaml").read_text(encoding="utf-8"))
    return texts
