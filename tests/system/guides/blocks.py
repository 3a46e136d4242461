"""The code blocks of a guide in their order, each with its mark.

A mark is an HTML comment, which readers do not see, in front of a block:

    <!-- file: PATH -->          the block is written to this file
    <!-- add to: PATH -->        it is added to this file
    <!-- printed -->             the commands before it have printed it: … stands for anything, a number for any
    <!-- printed: A | B -->      they have printed these texts of it
    <!-- until: TEXT -->         its commands are repeated until they print this
    <!-- not run: REASON -->     it is not run
    <!-- run by: tests/… -->     a test of its own runs it
    <!-- list -->                 the page runs each of these commands at another place

Unmarked are commands, in the language `sh` or none. Two marks stand without a block:

    <!-- prints: A | B -->       the commands before it have printed these texts
    <!-- do: COMMANDS -->        what the text asks the reader to do by hand, as commands
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

WITH_BLOCK = ("file", "add to", "printed", "until", "not run", "run by", "list")
ALONE = ("prints", "do")
RUN = "run"
"""The mark of an unmarked block of commands."""

_COMMENT = re.compile(r"<!--\s+(.*?)\s+-->", re.DOTALL)
_OTHERS = ("magic",)
"""Comments that are no marks of ours."""
_SHELL = ("", "sh")


@dataclass(frozen=True)
class Block:
    """A code block, or a mark without one. `mark` is its name, `about` what stands behind the name."""

    line: int
    language: str
    text: str
    mark: str
    about: str = ""


class Unmarked(Exception):
    """A block is no commands and has no mark, or a mark stands at the wrong place."""


def blocks_of(page: Path) -> list[Block]:
    """Raises Unmarked."""
    return list(_blocks(page.name, MarkdownIt().parse(page.read_text(encoding="utf-8"))))


def commands_run_by(test: str, page: Path) -> list[list[str]]:
    """The commands of a page that this test has to run, as words."""
    text = "\n".join(block.text for block in blocks_of(page) if (block.mark, block.about) == ("run by", test))
    return [words for line in text.splitlines() if (words := shlex.split(line, comments=True))]


def _blocks(name: str, tokens: list[Token]) -> Iterator[Block]:
    waiting: tuple[str, str] | None = None
    for token in (one for one in tokens if one.map is not None):
        line = token.map[0] + 1 if token.map else 0
        if waiting is not None and token.type not in ("fence", "code_block"):
            raise Unmarked(f"{name}:{line}: the mark “{waiting[0]}” has no block behind it")
        if token.type == "html_block":
            for mark, about in _marks(name, line, token.content):
                if mark in ALONE:
                    yield Block(line, "", "", mark, about)
                else:
                    waiting = mark, about
        elif token.type in ("fence", "code_block"):
            yield _block(name, token, line, waiting)
            waiting = None
    if waiting is not None:
        raise Unmarked(f"{name}: the mark “{waiting[0]}” has no block behind it")


def _marks(name: str, line: int, html: str) -> Iterator[tuple[str, str]]:
    for comment in _COMMENT.findall(html):
        mark, _, about = comment.partition(":")
        if mark not in (*WITH_BLOCK, *ALONE, *_OTHERS):
            raise Unmarked(f"{name}:{line}: “{mark}” is no mark")
        if mark not in _OTHERS:
            yield mark, about.strip()


def _block(name: str, token: Token, line: int, mark: tuple[str, str] | None) -> Block:
    language = token.info.strip()
    if mark is None and language not in _SHELL:
        raise Unmarked(f"{name}:{line}: a block of {language} without a mark")
    return Block(line, language, token.content, *(mark or (RUN,)))
