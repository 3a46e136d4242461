"""Finds the mark of a text that cannot be shown, as Telegram's Bot API would refuse the whole text for it. Pure.

`core.model.text.text_marks` reads any text, whatever is wrong with it; the channels without such a provider show that.
"""

from collections.abc import Iterator
from typing import NamedTuple

from core.model.content import ParseMode
from core.model.text.text_marks import Token, tokens
from core.sentence import Text, sentence

_RESERVED = frozenset("_*[]()~`>#+-=|{}.!")


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
    """Return the first mark that cannot be shown; None if all can."""
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
    if mode is ParseMode.PLAIN or token.mark or is_code or token.source != token.shown:
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
