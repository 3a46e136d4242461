"""Parses texts with parse_mode: the plain text and its entities, or the error of a text that is malformed.

Source: core.telegram.org/bots/api#formatting-options.
"""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from sandbox.bot_api.state.errors import bad_request

_TAGS = {
    "b": "bold", "strong": "bold", "i": "italic", "em": "italic", "u": "underline", "ins": "underline",
    "s": "strikethrough", "strike": "strikethrough", "del": "strikethrough", "tg-spoiler": "spoiler",
    "span": "spoiler", "code": "code", "pre": "pre", "a": "text_link", "blockquote": "blockquote",
    "tg-emoji": "custom_emoji",
}  # fmt: skip
_TAG = re.compile(r"<(/?)([a-zA-Z-]+)([^<>]*)>")
_ENTITY = re.compile(r"&(?:#([0-9]+)|#x([0-9a-fA-F]+)|(lt|gt|amp|quot)(?![A-Za-z]));?")
_NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"'}
_HREF = re.compile(r"""href\s*=\s*["']([^"']*)["']""")
_TARGET = re.compile(r"\]\(((?:\\.|[^)\\])*)\)", re.DOTALL)
_MARKS = {"*": "bold", "_": "italic", "__": "underline", "~": "strikethrough", "||": "spoiler"}
_OLD_MARKS = {"*": "bold", "_": "italic"}
_RESERVED = frozenset("_*[]()~`>#+-=|{}.!")

Entity = dict[str, Any]


class _Open(NamedTuple):
    """An entity whose end is not found yet."""

    mark: str
    kind: str
    offset: int
    url: str = ""


def utf16_length(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def parse_text(text: str, mode: str) -> tuple[str, list[Entity]]:
    """Return the text as it is shown, and its entities. Raises ApiError."""
    parsers: dict[str, Callable[[str], _Parser]] = {
        "": _plain,
        "html": _html,
        "markdownv2": _markdown,
        "markdown": _old,
    }
    if mode.lower() not in parsers:
        raise bad_request("unsupported parse_mode")
    parser = parsers[mode.lower()](text)
    parser.finish()
    return parser.text, parser.entities


class _Parser:
    """The text and the entities found so far."""

    def __init__(self) -> None:
        self.text = ""
        self.entities: list[Entity] = []
        self._open: list[_Open] = []

    def is_inside(self, mark: str) -> bool:
        return bool(self._open) and self._open[-1].mark == mark

    def start(self, mark: str, kind: str, url: str = "") -> None:
        self._open.append(_Open(mark, kind, utf16_length(self.text), url))

    def end(self, url: str = "") -> None:
        opened = self._open.pop()
        length = utf16_length(self.text) - opened.offset
        entity = {"type": opened.kind, "offset": opened.offset, "length": length}
        if length > 0:
            self.entities.append({**entity, "url": opened.url or url} if opened.kind == "text_link" else entity)

    def finish(self) -> None:
        if self._open:
            raise _malformed(f"Can't find end of the entity starting at byte offset {self._open[-1].offset}")
        self.entities.sort(key=lambda entity: (entity["offset"], -entity["length"]))


def _malformed(what: str) -> Exception:
    return bad_request(f"can't parse entities: {what}")


def _plain(text: str) -> _Parser:
    parser = _Parser()
    parser.text = text
    return parser


def _html(text: str) -> _Parser:
    parser, position = _Parser(), 0
    while position < len(text):
        if text[position] == "<":
            position = _read_tag(parser, text, position)
        else:
            end = text.find("<", position)
            end = len(text) if end < 0 else end
            parser.text += _unescaped(text[position:end])
            position = end
    return parser


def _unescaped(text: str) -> str:
    """Return the text with the characters of the entities that Telegram knows: four names, and numbers."""
    return _ENTITY.sub(_character, text)


def _character(entity: re.Match[str]) -> str:
    if entity[3]:
        return _NAMED[entity[3]]
    code = int(entity[1]) if entity[1] else int(entity[2], 16)
    is_character = 0 < code < 0x10FFFF and not 0xD800 <= code <= 0xDFFF
    return chr(code) if is_character and len(entity[0].removesuffix(";")) < 10 else entity[0]


def _read_tag(parser: _Parser, text: str, position: int) -> int:
    """Read the tag that begins here; return the position after it."""
    found = _TAG.match(text, position)
    name = found[2].lower() if found else ""
    if found is None or name not in _TAGS:
        raise _malformed(f'Unsupported start tag "{name}" at byte offset {len(text[:position].encode())}')
    if not found[1]:
        href = _HREF.search(found[3])
        parser.start(name, _TAGS[name], _unescaped(href[1]) if href else "")
    elif parser.is_inside(name):
        parser.end()
    else:
        raise _malformed(f"Unexpected end tag at byte offset {len(text[:position].encode())}")
    return found.end()


def _markdown(text: str) -> _Parser:
    return _MarkdownReader(text, _MARKS, _RESERVED).read()


def _old(text: str) -> _Parser:
    return _MarkdownReader(text, _OLD_MARKS, frozenset()).read()


class _MarkdownReader:
    """Reads MarkdownV2, or the older Markdown, which has no reserved characters."""

    def __init__(self, text: str, marks: dict[str, str], reserved: frozenset[str]) -> None:
        self._text, self._marks, self._reserved = text, marks, reserved
        self._position = 0
        self._parser = _Parser()

    def read(self) -> _Parser:
        while self._position < len(self._text):
            self._step()
        return self._parser

    def _step(self) -> None:
        character = self._text[self._position]
        if character == "\\" and self._position + 1 < len(self._text):
            self._keep(self._text[self._position + 1], 2)
        elif character == "`" or self._is_in_code():
            self._read_code(character)
        elif character == "\r":
            self._position += 1  # ignored; it keeps marks apart
        elif character == "[" or self._text.startswith("![", self._position):
            self._parser.start("[", "text_link" if character == "[" else "custom_emoji")
            self._position += 1 if character == "[" else 2
        elif character == "]" and self._parser.is_inside("["):
            self._read_url()
        else:
            self._read_mark(character)

    def _is_in_code(self) -> bool:
        return self._parser.is_inside("`") or self._parser.is_inside("```")

    def _keep(self, character: str, consumed: int = 1) -> None:
        self._parser.text += character
        self._position += consumed

    def _read_code(self, character: str) -> None:
        mark = "```" if self._text.startswith("```", self._position) else "`"
        if character != "`" or (self._parser.is_inside("```") and mark == "`"):
            self._keep(character)
            return
        self._toggle(mark, "pre" if mark == "```" else "code")

    def _toggle(self, mark: str, kind: str) -> None:
        if self._parser.is_inside(mark):
            self._parser.end()
        else:
            self._parser.start(mark, kind)
        self._position += len(mark)

    def _read_url(self) -> None:
        found = _TARGET.match(self._text, self._position)
        if found is None:
            raise _malformed(f"Can't find end of a URL at byte offset {self._position}")
        self._parser.end(url=re.sub(r"\\(.)", r"\1", found[1]))
        self._position = found.end()

    def _read_mark(self, character: str) -> None:
        double = self._text[self._position : self._position + 2]
        mark = double if double in self._marks else character
        if mark in self._marks:
            self._toggle(mark, self._marks[mark])
        elif character == ">" and self._text[self._position - 1 : self._position] in ("", "\n"):
            self._position += 1  # a quotation; its entity is left out
        elif character in self._reserved:
            raise _malformed(f"Character '{character}' is reserved and must be escaped with the preceding '\\'")
        else:
            self._keep(character)
