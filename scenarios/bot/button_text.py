"""The normalised text of a button, which callback data and callback triggers are compared by (C-07). Pure."""

import re
import unicodedata

LONGEST = 60

# GOST 7.79, system B, without its apostrophes and double letters for signs.
_CYRILLIC = {
    **dict(zip("абвгдезийклмнопрстуфыэ", "abvgdeziyklmnoprstufye", strict=True)),
    "ё": "e",
    "ж": "zh",
    "х": "kh",
    "ц": "ts",
    "ч": "ch",
    "ш": "sh",
    "щ": "shch",
    "ъ": "",
    "ь": "",
    "ю": "yu",
    "я": "ya",
    "і": "i",
    "ї": "yi",
    "є": "ye",
    "ґ": "g",
    "ў": "u",
}
_TABLE = str.maketrans(_CYRILLIC)
_OTHER = re.compile(r"[^a-z0-9 _-]")


def normalise(text: str) -> str:
    """Lower case, Cyrillic in Latin letters, only `[a-z0-9_-]`, spaces as `_`, at most 60 characters.

    A normalised text stays as it is. A text without letters and digits, such as an emoji alone, becomes empty.
    """
    latin = unicodedata.normalize("NFC", text).lower().translate(_TABLE)
    plain = _OTHER.sub("", re.sub(r"\s", " ", unicodedata.normalize("NFKD", latin).lower()))
    return "_".join(plain.split())[:LONGEST]
