"""A text as HTML: a plain one, or one whose marked ranges are known. Pure."""

import re
from collections.abc import Iterator, Sequence
from html import escape

from core.model.content import Button
from core.model.text.text_marks import Span

_LINK = re.compile(r"(https?://[^\s<>\"'«»“”]*[^\s<>\"'«»“”.,;:!?)\]}…])")
_PAGE = '<!doctype html>\n<html><head><meta charset="utf-8"></head><body><div>{}</div></body></html>\n'
_TAGS = {
    "bold": "b",
    "italic": "i",
    "underline": "u",
    "strikethrough": "s",
    "code": "code",
    "pre": "pre",
    "blockquote": "blockquote",
}
_BUTTON = (
    "display:inline-block;margin:4px 8px 4px 0;padding:12px 20px;border-radius:8px;background:#1f5fbf;color:#ffffff;"
    "font-weight:600;text-decoration:none"
)
_TARGET = re.compile(r"(?:https?://|mailto:)[^\s]+", re.IGNORECASE)
PLACE = "\ue000"
"""Stands for the marked text in a page; of the private use area, so no text needs it."""


def html_of(text: str) -> str:
    """Return a page that shows the text as it is; its URLs of http and https are links. All markup is escaped."""
    return _PAGE.format(_with_links(text))


def html_of_marked(around: str, text: str, spans: Sequence[Span], buttons: Sequence[Button] = ()) -> str:
    """Return a page that shows `around`, a plain text with `PLACE` in it, and in that place the marked text, behind it
    the buttons, each with an address. Links lead to http, https and mailto only. All markup of the texts is escaped.
    """
    below = f"<p>{''.join(map(_button, buttons))}</p>" if buttons else ""
    return html_of(around).replace(PLACE, "".join(_marked(text, spans)) + below)


def _button(button: Button) -> str:
    return f'<a href="{escape(button.url)}" style="{_BUTTON}">{escape(button.text)}</a>'


def _marked(text: str, spans: Sequence[Span]) -> Iterator[str]:
    """Emit the text with tags: offsets are in UTF-16 code units, and spans lie within each other, the inner one
    first."""
    units, position, links = text.replace(PLACE, "").encode("utf-16-le", "surrogatepass"), 0, 0
    for offset, is_start, _, _, span in sorted(_edges(spans), key=lambda edge: edge[:4]):
        piece = units[2 * position : 2 * offset].decode("utf-16-le", "replace")
        yield _shown(piece) if links else _with_links(piece)
        yield _tag(span, is_start=bool(is_start))
        position, links = offset, links + (2 * is_start - 1 if span.kind in ("link", "code", "pre") else 0)
    yield _with_links(units[2 * position :].decode("utf-16-le", "replace"))


def _edges(spans: Sequence[Span]) -> Iterator[tuple[int, int, int, int, Span]]:
    """Yield the edges of all spans with their order: ends before starts; of the ends the innermost first, of the starts
    the outermost.
    """
    for number, span in enumerate(spans):
        yield span.offset, 1, -span.length, -number, span
        yield span.offset + span.length, 0, -span.offset, number, span


def _tag(span: Span, *, is_start: bool) -> str:
    if span.kind == "link" and _TARGET.fullmatch(span.target):
        return f'<a href="{escape(span.target)}">' if is_start else "</a>"
    tag = _TAGS.get(span.kind)
    return f"<{'' if is_start else '/'}{tag}>" if tag else ""


def _with_links(text: str) -> str:
    pieces = _LINK.split(text)  # every second one is a link
    return "".join(_link(piece) if number % 2 else _shown(piece) for number, piece in enumerate(pieces))


def _link(url: str) -> str:
    return f'<a href="{escape(url)}">{escape(url)}</a>'


def _shown(text: str) -> str:
    """Return a text as HTML, which shows a line break and a second space only if they are written so."""
    return escape(text).replace("  ", " &nbsp;").replace("\n", "<br>\n")
