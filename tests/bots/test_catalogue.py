"""The texts of the bots exist in every language and have the same placeholders."""

import string

import pytest

from bots.catalogue import LOCALES, catalogue, text


def placeholders(template: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(template) if name is not None}


@pytest.mark.parametrize("locale", LOCALES)
def test_every_catalogue_has_the_same_texts_with_the_same_placeholders(locale: str) -> None:
    russian = {name: placeholders(template) for name, template in catalogue("ru").items()}
    assert {name: placeholders(template) for name, template in catalogue(locale).items()} == russian


@pytest.mark.parametrize(
    ("locale", "language"), [("en", "en"), ("en-GB", "en"), ("ru", "ru"), ("de", "ru"), ("", "ru")]
)
def test_a_text_is_in_the_language_of_the_person(locale: str, language: str) -> None:
    assert text("failed", locale) == catalogue(language)["failed"]
