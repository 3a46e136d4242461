"""The texts of Ada for authors of bots, in other languages than English."""

from scenarios.words.translation import LANGUAGES, Translated, Translations, in_language, translated, translations

__all__ = ["LANGUAGES", "Translated", "Translations", "in_language", "translated", "translations"]
