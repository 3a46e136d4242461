"""Reads texts with marks: HTML and MarkdownV2 as Telegram's Bot API knows them. Pure.

A text is a sequence of tokens; joined, their sources are the text, and what they show is the text without marks. So the
plain text, the cut and the marked ranges follow from one reading. Nothing is refused: a mark that is never closed ends
with the text, and an unknown tag is not shown. `broken_mark` finds what Telegram would refuse the whole text for.

Source: core.telegram.org/bots/api#formatting-options.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from core.model.content import ParseMode
from core.model.text.text_parts import beginning, utf16_length
from core.sentence import Text, sentence

CUT = "..."
"""The end of a text that was cut."""

_CUT_SOURCE = {ParseMode.PLAIN: CUT, ParseMode.HTML: CUT, ParseMode.MARKDOWN_V2: r"\.\.\."}

_KINDS = {
    **dict.fromkeys(("b", "strong", "*"), "bold"),
    **dict.fromkeys(("i", "em", "_"), "italic"),
    **dict.fromkeys(("u", "ins", "__"), "underline"),
    **dict.fromkeys(("s", "strike", "del", "~"), "strikethrough"),
    **dict.fromkeys(("tg-spoiler", "span", "||"), "spoiler"),
    **dict.fromkeys(("code", "`"), "code"),
    **dict.fromkeys(("pre", "```"), "pre"),
    **dict.fromkeys(("a", "["), "link"),
    "blockquote": "blockquote",
    "tg-emoji": "emoji",
}
"""Tag or mark → what it makes of the text."""

_HTML = re.compile(
    r"<(/?)([A-Za-z][A-Za-z0-9-]*)((?:\s[^<>]*)?)>"
    r"|(&(?:#[0-9]+|#x[0-9a-fA-F]+|(?:lt|gt|amp|quot)(?![A-Za-z]));?)|[^<&]+|.",
    re.DOTALL,
)
_ENTITY = re.compile(r"&(?:#([0-9]+)|#x([0-9a-fA-F]+)|(lt|gt|amp|quot)(?![A-Za-z]));?")
_NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"'}
_HREF = re.compile(r"""href\s*=\s*(?:"([^"]*)"|'([^']*)'|(\S+))""")
_MARKDOWN = re.compile(
    r"\\(?P<escaped>[\x01-\x7e])|(?P<quote>(?:^|(?<=\n))(?:\*\*)?>)|(?P<code>```(?:[A-Za-z0-9_+#-]*\n)?|`)"
    r"|(?P<mark>\|\||__|[*_~])|(?P<link>!?\[)"
    r"|(?P<target>\]\((?P<url>(?:\\.|[^)\\])*)\))|[^\\`|_*~!\[\]>]+|.",
    re.DOTALL,
)
_IN_CODE = re.compile(r"\\(?P<escaped>[\x01-\x7e])|(?P<code>```|`)|[^\\`]+|.", re.DOTALL)
_RESERVED = frozenset("_*[]()~`>#+-=|{}.!")


class Token(NamedTuple):
    """A piece of a text. `mark`: the tag or mark that begins here, or ends here if `is_end`; "" for text. `target`: the
    address of a link, or the language of code.
    """

    source: str
    shown: str
    mark: str = ""
    is_end: bool = False
    target: str = ""

    @property
    def length(self) -> int:
        """Of what it shows, in UTF-16 code units."""
        return utf16_length(self.shown)


class Span(NamedTuple):
    """A marked range. `kind`: bold, link, …; `offset` and `length` in UTF-16 code units of the plain text."""

    kind: str
    offset: int
    length: int
    target: str = ""


def tokens(text: str, mode: ParseMode) -> Iterator[Token]:
    """Emit the tokens of a text, in order."""
    match mode:
        case ParseMode.HTML:
            return map(_html_token, _HTML.finditer(text))
        case ParseMode.MARKDOWN_V2:
            return _markdown_tokens(text)
        case _:
            return iter([Token(text, text)] if text else ())


def plain_text(text: str, mode: ParseMode) -> str:
    """Return the text without marks. The address of a link follows it in parentheses, unless the link shows it."""
    if mode is ParseMode.PLAIN:
        return text
    shown, links = "", []
    for token in tokens(text, mode):
        shown += token.shown
        if _KINDS.get(token.mark) != "link":
            continue
        if not token.is_end:
            links.append((len(shown), token.target))
        elif links:
            start, target = links.pop()
            shown += _address_behind(shown[start:], token.target or target)
    return shown


def _address_behind(label: str, target: str) -> str:
    is_shown = target.rstrip("/") in (label, f"https://{label}", f"http://{label}")
    return f" ({target})" if target.startswith(("http://", "https://", "mailto:")) and not is_shown else ""


def has_marks(text: str, mode: ParseMode) -> bool:
    return mode is not ParseMode.PLAIN and any(token.mark for token in tokens(text, mode))


def shown_length(text: str, mode: ParseMode) -> int:
    """Return the length of the text without marks, in UTF-16 code units, as Telegram counts it."""
    return sum(token.length for token in tokens(text, mode))


def cut_text(text: str, mode: ParseMode, longest: int) -> str:
    """Return the text if it shows at most `longest` UTF-16 code units, else a beginning of it with "..." (C-46).

    No tag, entity, escape or visible character is cut in two, and every mark that is open at the cut is closed.
    """
    if len(text) * 2 > longest and shown_length(text, mode) > longest:
        return "".join(_cut(list(tokens(text, mode)), mode, longest - len(CUT)))
    return text


def _cut(found: list[Token], mode: ParseMode, room: int) -> Iterator[str]:
    is_open: list[str] = []
    for number, token in enumerate(found):
        if token.length > room:
            if token.source == token.shown:
                yield beginning(token.source, room)
            yield _CUT_SOURCE[mode]
            yield from _ends(found[number:], len(is_open))
            return
        room -= token.length
        _follow(token, is_open)
        yield token.source


def _ends(rest: Iterable[Token], depth: int) -> Iterator[str]:
    """Emit the sources of the ends, in the rest of the text, of the marks that are open before it."""
    is_open: list[str] = [""] * depth
    for token in rest:
        _follow(token, is_open)
        if token.is_end and len(is_open) < depth:
            depth -= 1
            yield token.source


def _follow(token: Token, is_open: list[str]) -> None:
    """Keep the list of the marks that are open."""
    if token.is_end and is_open:
        is_open.pop()
    elif token.mark and not token.is_end:
        is_open.append(token.mark)


def spans(text: str, mode: ParseMode) -> tuple[str, list[Span]]:
    """Return the text without marks, and the ranges that were marked, in the order of their ends."""
    shown, offset, found = [], 0, []
    is_open: list[tuple[Token, int]] = []
    for token in tokens(text, mode):
        shown.append(token.shown)
        offset += token.length
        if token.is_end and is_open:
            begun, start = is_open.pop()
            found.append(Span(_KINDS[begun.mark], start, offset - start, token.target or begun.target))
        elif token.mark in _KINDS and not token.is_end:
            is_open.append((token, offset))
    return "".join(shown), [span for span in found if span.length]


def _html_token(found: re.Match[str]) -> Token:
    source, (slash, tag, attributes, entity) = found[0], found.groups()
    if entity:
        return Token(source, _unescaped(entity))
    if tag is None:
        return Token(source, source)
    name = tag.lower()
    if name not in _KINDS:
        return Token(source, "")
    address = _HREF.search(attributes)
    return Token(source, "", name, bool(slash), _unescaped("".join(filter(None, address.groups())) if address else ""))


def _unescaped(text: str) -> str:
    """Return a text with the characters of its entities. Telegram knows four by name, and numbers (tdlib,
    MessageEntity.cpp, decode_html_entity); what it does not know stays as it is.
    """
    return _ENTITY.sub(_character, text)


def _character(entity: re.Match[str]) -> str:
    if entity[3]:
        return _NAMED[entity[3]]
    code = int(entity[1]) if entity[1] else int(entity[2], 16)
    is_character = 0 < code < 0x10FFFF and not 0xD800 <= code <= 0xDFFF
    return chr(code) if is_character and len(entity[0].removesuffix(";")) < 10 else entity[0]


def _markdown_tokens(text: str) -> Iterator[Token]:
    position, is_open = 0, list[str]()
    while position < len(text):
        code = is_open[-1] if is_open and is_open[-1].startswith("`") else ""
        found = (_IN_CODE if code else _MARKDOWN).match(text, position)
        assert found is not None, "the last alternative matches any character"
        token = _markdown_token(found, is_open)
        _follow(token, is_open)
        yield token
        position = found.end()


def _markdown_token(found: re.Match[str], is_open: list[str]) -> Token:
    source, parts = found[0], found.groupdict()
    if parts["escaped"]:
        return Token(source, parts["escaped"])
    if parts["code"]:
        return _code_token(source, is_open)
    if parts.get("mark"):
        return Token(source, "", source, source in is_open)
    if parts.get("link"):
        return Token(source, "", "[")
    if parts.get("target") and "[" in is_open:
        return Token(source, "", "[", True, re.sub(r"\\(.)", r"\1", parts["url"]))
    return Token(source, "" if parts.get("quote") else source)


def _code_token(source: str, is_open: list[str]) -> Token:
    """Return a mark of code; within code only the mark that ends it."""
    mark = "```" if source.startswith("```") else "`"
    opened = is_open[-1] if is_open else ""
    if opened.startswith("`") and opened != mark:
        return Token(source, source)
    return Token(source, "", mark, opened == mark, source[3:].strip() if opened != mark else "")


class BrokenMark(NamedTuple):
    """`position`: of the character in the text, from 1. `reason`: why it cannot be shown."""

    position: int
    reason: Text


class _Open(NamedTuple):
    """A mark that is not closed yet."""

    mark: str
    source: str
    position: int


def broken_mark(text: str, mode: ParseMode) -> BrokenMark | None:
    """Return the first mark that cannot be shown; None if all can. A plain text has no marks."""
    if mode is ParseMode.PLAIN:
        return None
    is_open: list[_Open] = []
    for position, token in _placed(text, mode):
        if fault := _unreadable(token, mode, is_open):
            return BrokenMark(position + fault.position, fault.reason)
        if token.is_end:
            if not is_open or is_open[-1].mark != token.mark:
                return BrokenMark(position, _wrong_end(token, is_open))
            is_open.pop()
        elif token.mark and not _ends_a_quotation(token, text[position - 1 :]):
            is_open.append(_Open(token.mark, token.source, position))
    return BrokenMark(is_open[-1].position, sentence("never_closed", mark=is_open[-1].source)) if is_open else None


def _placed(text: str, mode: ParseMode) -> Iterator[tuple[int, Token]]:
    position = 1
    for token in tokens(text, mode):
        yield position, token
        position += len(token.source)


def _unreadable(token: Token, mode: ParseMode, is_open: list[_Open]) -> BrokenMark | None:
    """Return what is wrong with a token by itself; its position counts from 0."""
    if mode is ParseMode.HTML:
        return _unreadable_html(token)
    is_code = bool(is_open) and is_open[-1].mark.startswith("`")
    if token.mark or is_code or token.source != token.shown:
        return None
    wrong = next((n for n, letter in enumerate(token.source) if letter in _RESERVED), None)
    return (
        None
        if wrong is None
        else BrokenMark(wrong, sentence("sign_is_escaped", sign=token.source[wrong], escaped=token.source[wrong]))
    )


def _unreadable_html(token: Token) -> BrokenMark | None:
    if token.source == "<":
        return BrokenMark(0, sentence("begins_no_mark_written"))
    if token.source.startswith("<") and not token.mark:
        return BrokenMark(0, sentence("is_no_mark", mark=token.source[:40]))
    return None


def _wrong_end(token: Token, is_open: list[_Open]) -> Text:
    if not is_open:
        return sentence("closes_no_mark", mark=token.source[:40])
    return sentence("comes_before_closed", mark=token.source[:40], open=is_open[-1].source[:40])


def _ends_a_quotation(token: Token, rest: str) -> bool:
    """Return whether a mark stands for the end of an expandable quotation of MarkdownV2, which is no range."""
    after = rest[len(token.source) :]
    return token.mark == "||" and after[:1] in ("", "\n") and "||" not in after
