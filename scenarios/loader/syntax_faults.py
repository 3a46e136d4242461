"""Says in an author's words what is wrong in a text that is not YAML: what is written, and what to write instead. Pure.

PyYAML names what its reader expected; what an author has done wrong shows in the line itself, and in the one before.
"""

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

import yaml

from scenarios.words import Text, sentence

_LONGEST = 2000
_BREAK = re.compile(r"\r\n|[\n\r\x85\u2028\u2029]")
_NO_SPACE_BEHIND_COLON = re.compile(r"\s*(?:- )?([A-Za-z_]\w*):[^\s/]")
_NO_SPACE_BEHIND_DASH = re.compile(r"\s*-[A-Za-z_\"'{\[]")
_OTHER_DASH = re.compile(r"\s*([–—−])\s")
_TWO_COLONS = re.compile(r"\s*(?:- )*[^\s\"'#{\[][^:]*:\s+[^\"'|>{\[&*!#\s].*:(?:\s|$)")
_GOES_ON = re.compile(r":\s+(?:\"(?:[^\"\\]|\\.)*\"|'(?:[^']|'')*')\s*\S")
_BEGINS_WITH_BRACKET = re.compile(r":\s+([{\[])")
_NAME_ONLY = re.compile(r"\s*(?:- )?([A-Za-z_]\w*)\s*")
_OTHER_SPACE = re.compile(r"(?:^[ \t-]*|[:-])([^\S \t\r\n])")


@dataclass(frozen=True, slots=True)
class Fault:
    """A syntax error and its place: `line` and `column` count from 1."""

    line: int
    column: int
    message: Text


@dataclass(frozen=True, slots=True)
class _Place:
    """The character at which PyYAML gave up, counted from 0, and where the value began that it was reading."""

    lines: list[str]
    line: int
    column: int
    words: str
    began: tuple[int, int] | None

    def at(self, line: int) -> str:
        """Return the beginning of a line; no author's mistake needs more."""
        return self.lines[line][:_LONGEST] if 0 <= line < len(self.lines) else ""

    @property
    def text(self) -> str:
        return self.at(self.line)

    @property
    def letter(self) -> str:
        return self.text[self.column : self.column + 1]

    @property
    def before(self) -> tuple[int, str]:
        """The last line before this one that is neither empty nor a comment; line -1 if there is none."""
        for number in range(min(self.line, len(self.lines)) - 1, -1, -1):
            if self.lines[number].strip() and not self.lines[number].lstrip().startswith("#"):
                return number, self.at(number)
        return -1, ""

    def here(self, message: Text, column: int | None = None) -> Fault:
        return Fault(self.line + 1, (self.column if column is None else column) + 1, message)


def fault_in(text: str, error: yaml.YAMLError) -> Fault:
    """Return what is wrong in the text in which PyYAML found this error."""
    if not isinstance(error, yaml.MarkedYAMLError) or not (mark := error.problem_mark or error.context_mark):
        return _unreadable(text, max(0, getattr(error, "position", 0) or 0))
    began = (error.context_mark.line, error.context_mark.column) if error.context_mark else None
    words = ", ".join(word for word in (error.context, error.problem) if word)
    place = _Place(_BREAK.split(text), mark.line, mark.column, words, began)
    found = (fault for explain in _EXPLANATIONS if (fault := explain(place)))
    return next(found, place.here(sentence("not_valid_yaml", why=words)))


def _unreadable(text: str, position: int) -> Fault:
    before, letter = text[:position], text[position : position + 1]
    if letter:
        message = sentence("character_cannot_stand_yaml_2", character=f"U+{ord(letter):04X}")
    else:
        message = sentence("character_cannot_stand_yaml")
    return Fault(len(_BREAK.findall(before)) + 1, len(before) - before.rfind("\n"), message)


def _tab(place: _Place) -> Fault | None:
    """Return the fault of a tab before words; between words tabs may stand."""
    for number, line in ((place.line, place.text), place.before):
        if "\t" in _indent(line):
            message = sentence("tab_indents_line")
            return Fault(number + 1, line.index("\t") + 1, message)
    return None


def _other_space(place: _Place) -> Fault | None:
    """Return a space that only looks like one, as word processors and messengers write it."""
    for number, line in ((place.line, place.text), place.before):
        if found := _OTHER_SPACE.search(line):
            name = unicodedata.name(found[1], "another space").lower()
            message = sentence("this_is_a", name=name, number=f"U+{ord(found[1]):04X}")
            return Fault(number + 1, found.start(1) + 1, message)
    return None


def _first_letter(place: _Place) -> Fault | None:
    if "cannot start any token" in place.words:
        return place.here(_in_quotes(place.letter))
    if "scanning an alias" in place.words and place.began:
        line, column = place.began
        return Fault(line + 1, column + 1, _in_quotes(place.at(line)[column : column + 1]))
    return None


def _in_quotes(letter: str) -> Text:
    return sentence("text_begins_written_quotes", letter=letter)


def _quote_without_end(place: _Place) -> Fault | None:
    if "unexpected end of stream" not in place.words or place.began is None:
        return None
    line, column = place.began
    return Fault(line + 1, column + 1, sentence("quote_opens_never_closed"))


def _escape(place: _Place) -> Fault | None:
    if "unknown escape character" not in place.words:
        return None
    return place.here(sentence("double_quotes_backslash_written"))


def _text_beside_block(place: _Place) -> Fault | None:
    if "expected comment or line break" not in place.words:
        return None
    return place.here(sentence("behind_text_begins_next"))


def _no_colon(place: _Place) -> Fault | None:
    """Return the fault of a line before that is a name without a colon, or without a space behind its colon or dash."""
    number, line = place.before
    if number < 0 or "mapping values are not allowed" not in place.words:
        return None
    column = len(_indent(line)) + 1
    if found := _NO_SPACE_BEHIND_COLON.fullmatch(line) or _NO_SPACE_BEHIND_COLON.match(line):
        return Fault(number + 1, found.end(1) + 1, sentence("behind_colon_space_missing", name=found[1]))
    if found := _NAME_ONLY.fullmatch(line):
        return Fault(number + 1, found.end(1) + 1, sentence("behind_colon_missing", name=found[1]))
    if _NO_SPACE_BEHIND_DASH.match(line):
        return Fault(number + 1, column, sentence("behind_space_missing"))
    return None


def _wrong_dash(place: _Place) -> Fault | None:
    for number, line in ((place.line, place.text), place.before):
        if found := _OTHER_DASH.match(line):
            return Fault(number + 1, found.start(1) + 1, sentence("entry_list_begins_not", dash=found[1]))
    return None


def _colon_in_text(place: _Place) -> Fault | None:
    if "mapping values are not allowed" in place.words and _TWO_COLONS.match(place.text):
        return place.here(sentence("text_has_colon_space"))
    return None


def _text_behind_quote(place: _Place) -> Fault | None:
    if _GOES_ON.search(place.text) and place.text[: place.column].rstrip()[-1:] in ('"', "'"):
        return place.here(sentence("text_ends_quote_before"))
    return None


def _text_behind_bracket(place: _Place) -> Fault | None:
    """Return the fault of a text behind a bracket, as in `text: {first_name}, hello`."""
    if not (found := _BEGINS_WITH_BRACKET.search(place.text)) or place.column <= found.start(1):
        return None
    if "expected ',' or" in place.words and place.began == (place.line, found.start(1)):
        return None  # it is a list, and not closed
    return place.here(_in_quotes(found[1]), found.start(1))


def _open_bracket(place: _Place) -> Fault | None:
    if "expected ',' or" not in place.words or place.began is None:
        return None
    line, column = place.began
    opened = place.at(line)[column : column + 1]
    closing = {"[": "]", "{": "}"}.get(opened, "")
    return Fault(
        line + 1,
        column + 1,
        sentence("opens_not_closed", opened=opened, closing=closing),
    )


def _no_field(place: _Place) -> Fault | None:
    if "could not find expected ':'" not in place.words or place.began is None:
        return None
    line, column = place.began
    return Fault(line + 1, column + 1, sentence("colon_missing"))


def _indentation(place: _Place) -> Fault | None:
    if not any(words in place.words for words in ("did not find expected", "mapping values are not allowed")):
        return None
    own = len(_indent(place.text))
    message = sentence("line_indented_no_line", own=own)
    return place.here(message, own)


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


_EXPLANATIONS: tuple[Callable[[_Place], Fault | None], ...] = (
    _tab,
    _other_space,
    _wrong_dash,
    _quote_without_end,
    _escape,
    _text_beside_block,
    _first_letter,
    _text_behind_quote,
    _text_behind_bracket,
    _open_bracket,
    _colon_in_text,
    _no_colon,
    _no_field,
    _indentation,
)
"""Tried in this order; the first that applies explains the error."""
