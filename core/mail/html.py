"""A plain text as HTML. Pure."""

import re
from html import escape

_LINK = re.compile(r"(https?://[^\s<>\"'«»“”]*[^\s<>\"'«»“”.,;:!?)\]}…])")
_PAGE = '<!doctype html>\n<html><head><meta charset="utf-8"></head><body><div>{}</div></body></html>\n'


def html_of(text: str) -> str:
    """Return a page that shows the text as it is; its URLs of http and https are links. All markup is escaped."""
    pieces = _LINK.split(text)  # every second one is a link
    return _PAGE.format("".join(_link(piece) if number % 2 else _shown(piece) for number, piece in enumerate(pieces)))


def _link(url: str) -> str:
    return f'<a href="{escape(url)}">{escape(url)}</a>'


def _shown(text: str) -> str:
    """HTML shows a line break and a second space only if they are written so."""
    return escape(text).replace("  ", " &nbsp;").replace("\n", "<br>\n")
