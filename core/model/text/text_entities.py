"""Texts with entities, as the Bot API reports them: written in HTML or MarkdownV2, and read from Markdown. Pure.

The opposite of `core.model.text.text_marks`. Entities that need no mark, such as a hashtag, are left out. What is
written is well-formed whatever the entities are; what they do not mark is escaped. Markdown is read as language models
write it; what is not recognised stays as it is written.

Sources: core.telegram.org/bots/api#messageentity; spec.commonmark.org, the part of it that Telegram can show.
"""

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from core.model.content import ParseMode

_HTML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})
_RESERVED = re.compile(r"([_*\[\]()~`>#+\-=|{}.!\\])")
_IN_CODE = re.compile(r"([`\\])")
_IN_ADDRESS = re.compile(r"([)\\])")

_TAGS = {"bold": "b", "italic": "i", "underline": "u", "strikethrough": "s", "spoiler": "tg-spoiler", "code": "code"}
_MARKS = {
    "bold": ("*", "*"),
    "italic": ("_\r", "_\r"),  # the character 13 is not shown; it keeps `_` and `__` apart
    "underline": ("__\r", "__\r"),
    "strikethrough": ("~", "~"),
    "spoiler": ("||", "||"),
    "code": ("`", "`"),
    "blockquote": (">", ""),
    "expandable_blockquote": (">", "||"),
}
_QUOTES = {"blockquote": "<blockquote>", "expandable_blockquote": "<blockquote expandable>"}

Entity = Mapping[str, Any]
_INSIDE = r"(?!\s)(?:[^\n]{0,1000}?)(?<!\s)"
_MARKDOWN = re.compile(
    r"^```(?P<language>[\w+#-]*)[ \t]*\n(?P<pre>.*?)\n?^```[ \t]*$"
    r"|(?P<ticks>`+)(?P<code>[^`\n]+)(?P=ticks)"
    r"|\[(?P<text_link>[^\]\n]+)\]\((?P<url>[a-z]+:[^\s()]*(?:\([^\s()]*\)[^\s()]*)*)\)"
    rf"|\*\*\*(?P<both>{_INSIDE})\*\*\*"
    rf"|(?P<double>\*\*|__)(?P<bold>{_INSIDE})(?P=double)"
    rf"|~~(?P<strikethrough>{_INSIDE})~~"
    rf"|(?<![\w*_])(?P<single>[*_])(?P<italic>{_INSIDE})(?P=single)(?![\w*_])"
    r"|^\#{1,6}[ \t]+(?P<heading>[^\n]+?)[ \t]*\#*$"
    r"|^(?P<indent>[ \t]*)[-*+](?=[ \t])"
    r"|\\(?P<escaped>[!-/:-@\[-`{-~])",
    re.MULTILINE | re.DOTALL,
)
_KINDS = {"both": ("bold", "italic"), "heading": ("bold",), "bold": ("bold",), "italic": ("italic",)}
_NESTED = ("both", "bold", "italic", "strikethrough", "heading", "text_link")
_DEEPEST = 10


class _Range(NamedTuple):
    """A marked range, in UTF-16 code units."""

    kind: str
    start: int
    end: int
    begin_mark: str
    end_mark: str


def escaped(text: str, mode: ParseMode) -> str:
    """Return the text as it must be written to show as it is."""
    if mode is ParseMode.HTML:
        return text.translate(_HTML)
    return _RESERVED.sub(r"\\\1", text) if mode is ParseMode.MARKDOWN_V2 else text


def marked(text: str, entities: Iterable[Entity], mode: ParseMode) -> str:
    return _Writer(text, mode).written(_ranges(text, entities, mode))


def has_marks(entities: Iterable[Entity]) -> bool:
    """Return whether any of the entities is written as a mark."""
    return any(_mark_of(entity, ParseMode.HTML) for entity in entities)


def _ranges(text: str, entities: Iterable[Entity], mode: ParseMode) -> list[_Range]:
    """Return the ranges in the order in which they begin, the outer ones first."""
    limits, found = _limits(text), []
    for entity in entities:
        start, end = int(entity["offset"]), int(entity["offset"]) + int(entity["length"])
        if (mark := _mark_of(entity, mode)) and start < end and {start, end} <= limits:
            found.append(_Range(str(entity["type"]), start, end, *mark))
    return sorted(found, key=lambda one: (one.start, -one.end, one.kind not in _QUOTES))


def _mark_of(entity: Entity, mode: ParseMode) -> tuple[str, str] | None:
    return (_tags_of if mode is ParseMode.HTML else _marks_of)(entity, str(entity.get("type")))


def _tags_of(entity: Entity, kind: str) -> tuple[str, str] | None:
    if kind in _TAGS:
        return f"<{_TAGS[kind]}>", f"</{_TAGS[kind]}>"
    if address := _address(entity, kind):
        return f'<a href="{html.escape(address)}">', "</a>"
    if kind == "pre":
        language = html.escape(str(entity.get("language") or ""))
        return (f'<pre><code class="language-{language}">', "</code></pre>") if language else ("<pre>", "</pre>")
    if kind == "custom_emoji":
        return f'<tg-emoji emoji-id="{html.escape(str(entity.get("custom_emoji_id")))}">', "</tg-emoji>"
    return (_QUOTES[kind], "</blockquote>") if kind in _QUOTES else None


def _marks_of(entity: Entity, kind: str) -> tuple[str, str] | None:
    if kind in _MARKS:
        return _MARKS[kind]
    if kind == "custom_emoji":
        return "![", f"](tg://emoji?id={entity.get('custom_emoji_id')})"
    if address := _address(entity, kind):
        return "[", "](" + _IN_ADDRESS.sub(r"\\\1", address) + ")"
    return (f"```{entity.get('language') or ''}\n", "\n```") if kind == "pre" else None


def _address(entity: Entity, kind: str) -> str:
    """Return the address of a link; "" for another entity."""
    if kind == "text_mention":
        return f"tg://user?id={entity['user']['id']}"
    return str(entity.get("url") or "") if kind == "text_link" else ""


def _limits(text: str) -> set[int]:
    """Return the places between two characters, in UTF-16 code units."""
    return set(accumulate((1 + (ord(character) > 0xFFFF) for character in text), initial=0))


class _Writer:
    """Writes one text. `_open`: the ranges that are open, the innermost last."""

    def __init__(self, text: str, mode: ParseMode) -> None:
        self._units = text.encode("utf-16-le", "surrogatepass")
        self._mode = mode
        self._open: list[_Range] = []
        self._at = 0
        self._parts: list[str] = []

    def written(self, ranges: Sequence[_Range]) -> str:
        for one in ranges:
            self._close_until(one.start)
            if self._is_out_of_place(one):
                continue
            limit = self._open[-1].end if self._open else one.end
            self._write_until(one.start)
            self._parts.append(one.begin_mark)
            self._open.append(one._replace(end=min(one.end, limit)))
        self._close_until(len(self._units))
        self._write_until(len(self._units))
        return "".join(self._parts)

    def _is_out_of_place(self, one: _Range) -> bool:
        """Return whether a range is where Telegram reports none: in code, in one of its kind, or a quotation within a
        line."""
        before = self._units[one.start * 2 - 2 : one.start * 2] if one.start else b"\n\0"
        if one.kind in _QUOTES and (self._open or before != b"\n\0"):
            return True
        return any(outer.kind in ("code", "pre", one.kind) for outer in self._open)

    def _close_until(self, position: int) -> None:
        """Close the ranges that end before a position."""
        while self._open and self._open[-1].end <= position:
            self._write_until(self._open[-1].end)
            self._parts.append(self._open.pop().end_mark)

    def _write_until(self, position: int) -> None:
        text = self._units[self._at * 2 : position * 2].decode("utf-16-le", "surrogatepass")
        self._at = max(self._at, position)
        self._parts.append(self._escaped(text))

    def _escaped(self, text: str) -> str:
        if self._mode is ParseMode.HTML:
            return escaped(text, self._mode)
        kinds = {one.kind for one in self._open}
        shown = _IN_CODE.sub(r"\\\1", text) if kinds & {"code", "pre"} else escaped(text, self._mode)
        return shown.replace("\n", "\n>") if kinds & _QUOTES.keys() else shown


def read_markdown(text: str) -> tuple[str, list[Entity]]:
    """Return the text without marks, and its entities as the Bot API has them."""
    reader = _MarkdownReader()
    reader.read(text)
    return "".join(reader.parts), reader.entities


class _MarkdownReader:
    def __init__(self) -> None:
        self.parts: list[str] = []
        self.entities: list[Entity] = []
        self._length = 0

    def read(self, text: str, depth: int = 0) -> None:
        at = 0
        for found in _MARKDOWN.finditer(text) if depth < _DEEPEST else ():
            self._show(text[at : found.start()])
            self._read_mark(found, depth)
            at = found.end()
        self._show(text[at:])

    def _show(self, text: str) -> None:
        self.parts.append(text)
        self._length += len(text.encode("utf-16-le", "surrogatepass")) // 2

    def _read_mark(self, found: re.Match[str], depth: int) -> None:
        if found["indent"] is not None:
            self._show(f"{found['indent']}•")
        elif found["escaped"]:
            self._show(found["escaped"])
        else:
            name = next(one for one in (*_NESTED, "code", "pre") if found[one] is not None)
            self._read_range(name, found, depth)

    def _read_range(self, name: str, found: re.Match[str], depth: int) -> None:
        start = self._length
        if name in _NESTED:
            self.read(found[name], depth + 1)
        else:
            self._show(found[name])
        more = {"url": found["url"]} if name == "text_link" else {}
        more |= {"language": found["language"]} if found["language"] else {}
        for kind in _KINDS.get(name, (name,)):
            self.entities.append({"type": kind, "offset": start, "length": self._length - start, **more})
