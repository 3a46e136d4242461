"""Which characters names, ids and addresses may have, and any text in the characters of a URL. Pure."""

import re
import unicodedata
from urllib.parse import quote, unquote

_SPACES = re.compile(r"[^\S\n\r\t\v\f\x1c-\x1f\x85\u2028\u2029]")
_MARKS = re.compile(r"[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufe00-\ufe0f\ufeff]")
_JOINERS = frozenset("\u200c\u200d")
"""They join emoji, and letters in some scripts."""

ONE = "([A-Za-z0-9_.-]|~[0-9A-F]{2})"
"""One unreserved character of a URL (RFC 3986, section 2.3), as a pattern; `~` stands for `%`."""


def nfc(text: str) -> str:
    """Return the text in the normal form NFC. A Mac writes й as two characters (NFD), which look the same."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def folded(text: str) -> str:
    """Return the text as words are compared: in one normal form, without case."""
    return nfc(text).casefold()


def is_blank(text: str) -> bool:
    """Return whether nothing of a text is seen: it has only white space and invisible marks."""
    if text[:1].isalnum():  # most texts
        return False
    return all(letter.isspace() or unicodedata.category(letter) == "Cf" for letter in text)


def without_marks(address: str) -> str:
    """Return an address without the invisible marks that come along when it is copied: white space round it,
    directions, joiners, variation selectors. Other spaces than U+0020 become that.
    """
    if address.isascii():
        return address
    return _MARKS.sub("", with_plain_spaces(address)).strip()


def with_plain_spaces(text: str) -> str:
    """Return the text with U+0020 in place of every other space, such as the non-breaking one of spreadsheets."""
    return text if text.isascii() else _SPACES.sub(" ", text)


def refusal(text: str, *, joiners: bool = False) -> str:
    """Return the name of the first character that is not printable; "" if there is none. `joiners`: whether they are
    allowed, and the tags that follow the emoji of a flag.
    """
    if text.isprintable():
        return ""
    for place, character in enumerate(text, 1):
        if not character.isprintable() and not (joiners and _joins(character)):
            name = unicodedata.name(character, "")
            shown = f"U+{ord(character):04X}{' ' if name else ''}{name}"
            return f"Only printable characters are allowed; character {place} is {shown}."
    return ""


def _joins(character: str) -> bool:
    return character in _JOINERS or "\U000e0020" <= character <= "\U000e007f"


def to_unreserved(text: str) -> str:
    """Return the text as a client may write it into a URL unchanged."""
    return quote(text, safe="").replace("~", "%7E").replace("%", "~")


def from_unreserved(written: str) -> str:
    """Return the text of which `to_unreserved` has made this."""
    return unquote(written.replace("~", "%"))


def counted(number: int, thing: str, things: str = "") -> str:
    """Return the number with its thing: 1 error, 2 errors. `things`: more of them, by default with an s."""
    return f"{number} {thing if number == 1 else things or f'{thing}s'}"
