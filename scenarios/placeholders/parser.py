r"""Parses a text into a `Template`. Pure; each text is parsed once (the last 2048 are kept). Never raises.

    text        = { literal | placeholder }
    quoted      = "'" text "'" | '"' text '"'            all of a path or parameter; bars in it have no meaning
    placeholder = "{" path { "|" modifier } "}"
    modifier    = sign text | name [ ":" text ]          sign: + - * / %
    path        = text | quoted
    text        may be quoted in a modifier, too, except in a regular expression

A backslash before `{`, `}` or (in a placeholder) `|` takes their meaning away; before these, two backslashes are one.
Elsewhere a backslash is itself, so `C:\dir` needs no doubling. In a regular expression every backslash belongs to it,
and so do `{2,}`, `\{`, `\p{L}`, braces and bars in brackets, and bars in parentheses. A brace that is not closed is
literal.

`mentions` and `outline` are what is known of a text before it is rendered. `rendering` evaluates what is parsed here.
"""

import re
from collections.abc import Container, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from scenarios.bot.suggestion import did_you_mean
from scenarios.placeholders.modifiers import MODIFIERS, Modifier, ModifierError
from scenarios.placeholders.template import Literal, ModifierStep, Placeholder, Template, TemplateProblem
from scenarios.placeholders.values import starts_in
from scenarios.words import Text, placed, sentence


class Syntax(Protocol):
    """The rules of one place."""

    def stop(self, text: str, start: int) -> int | None:
        """Return where the literal that begins at `start` ends: at a brace or bar with a meaning; None: with the
        text."""

    def literal(self, raw: str, stopped: bool) -> Literal:
        """Return the literal, as written and without its escapes. `stopped`: a brace or bar with a meaning follows."""


class TextSyntax:
    """Text, where each of `stops` has a meaning unless it is escaped."""

    def __init__(self, escaped: str, stops: str) -> None:
        self._special = re.compile(rf"(\\*)([{escaped}])")
        self._escape = re.compile(rf"(\\+)([{escaped}])")
        self._stops = stops

    def stop(self, text: str, start: int) -> int | None:
        found = (one for one in self._special.finditer(text, start) if len(one[1]) % 2 == 0 and one[2] in self._stops)
        return next((one.end() - 1 for one in found), None)

    def literal(self, raw: str, stopped: bool) -> Literal:
        if "\\" not in raw:
            return Literal(raw, raw)
        followed = raw + "{" * stopped  # the backslashes before it are halved like all others
        plain = self._escape.sub(lambda found: found[1][: len(found[1]) // 2] + found[2], followed)
        return Literal(raw, plain[: len(plain) - stopped])


OUTSIDE = TextSyntax("{}", stops="{")
INSIDE = TextSyntax("{}|", stops="{}|")


class RegexSyntax:
    """A regular expression. It counts its parentheses and literal braces, so there is one object per expression."""

    _TOKEN = re.compile(
        r"\\[pPN]\{[^{}]*\}"  # a kind of character
        r"|\\."
        r"|\[\^?\]?(?:\\.|[^\]\\])*\]"  # a set of characters
        r"|(?P<placeholder>\{(?=[^\W\d]))"
        r"|(?P<one>[{}|()])",
        re.DOTALL,
    )

    def __init__(self) -> None:
        self._open = {"(": 0, "{": 0}

    def stop(self, text: str, start: int) -> int | None:
        return next((token.start() for token in self._TOKEN.finditer(text, start) if self._stops(token)), None)

    def _stops(self, token: re.Match[str]) -> bool:
        one = token["one"]
        if one in ("(", "{"):
            self._open[one] += 1
        elif one in (")", "}"):
            opening = "(" if one == ")" else "{"
            self._open[opening] -= 1
            return one == "}" and self._open["{"] < 0
        return bool(token["placeholder"]) or (one == "|" and self._open["("] <= 0)

    def literal(self, raw: str, stopped: bool) -> Literal:
        return Literal(raw, raw)


DEEPEST = 50
"""Placeholders in placeholders, from here on, are not parsed; they stay as written."""

MOST_UNCLOSED = 30
"""With more open braces without an end, the rest of a text is literal."""

_STEP = re.compile(r"\s*(?:(?P<sign>[-+*/%])|(?P<name>[^\W\d]\w*)\s*(?::|(?=[|}])))")
_QUOTED = re.compile(r"""\s*(?P<quote>['"])(?P<text>(?:\\.|(?!(?P=quote)).)*+)(?P=quote)\s*(?=[|}])""", re.DOTALL)
_BEGUN = re.compile(r"\{\s?[^\W\d]\w*(?:\.\w+)*")
_BRACE = re.compile(r"(?P<backslashes>\\*)(?P<brace>[{}])")


class _Unclosed(Exception):
    """The text ends inside a placeholder."""


@lru_cache(maxsize=2048)
def parse(text: str) -> Template:
    return _Parser(text).template()


def problems(text: str) -> tuple[TemplateProblem, ...]:
    """Return the mistakes that show without values, by offset: unknown modifiers, parameters that they refuse, and
    braces that stand before a name and are not closed.
    """
    if "{" not in text:
        return ()
    parser = _Parser(text)
    parser.template()
    found = {**parser.unclosed(), **parser.problems}
    return tuple(found[offset] for offset in sorted(found))


def step_of(text: str) -> ModifierStep:
    """Return the modifier that stands in a text, as in `upper` or `truncate:10`."""
    found = _STEP.match(text + "}")
    if found is None:
        return ModifierStep(text.strip(), None, Template(()))
    rest = text[found.end() :]
    return _step(found["sign"] or found["name"], Template((Literal(rest, rest),)))


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._unclosed: set[int] = set()
        self.problems: dict[int, TemplateProblem] = {}

    def template(self) -> Template:
        """Return the whole text."""
        return self._parts(OUTSIDE, depth=0)

    def unclosed(self) -> dict[int, TemplateProblem]:
        """Return the braces that are not closed and begin a placeholder."""
        begun = {start: found[0] for start in self._unclosed if (found := _BEGUN.match(self._text, start))}
        message = sentence("brace_never_closed")
        return {start: TemplateProblem("BRACE_UNCLOSED", message, source, start) for start, source in begun.items()}

    def _parts(self, syntax: Syntax, depth: int) -> Template:
        """Parse up to the end of the text; in a placeholder, up to its next bar or its closing brace."""
        parts: list[Literal | Placeholder] = []
        while True:
            literal = self._literal(syntax)
            if literal.raw:
                parts.append(literal)
            if self._at == len(self._text) and depth:
                raise _Unclosed
            if not self._text.startswith("{", self._at):
                return Template(tuple(parts))
            parts.append(self._braces(depth + 1))

    def _literal(self, syntax: Syntax) -> Literal:
        """Parse up to the next brace or bar that has a meaning, or to the end."""
        start, stop = self._at, syntax.stop(self._text, self._at)
        self._at = len(self._text) if stop is None else stop
        return syntax.literal(self._text[start : self._at], stop is not None)

    def _braces(self, depth: int) -> Literal | Placeholder:
        """Return the placeholder that begins here, or a literal brace if it is not closed."""
        start = self._at
        try:
            if start not in self._unclosed:
                return self._placeholder(start, depth)
        except _Unclosed:
            self._unclosed.add(start)
            if depth > 1:
                raise
        self._at = start + 1 if len(self._unclosed) <= MOST_UNCLOSED else len(self._text)
        brace = self._text[start : self._at]
        return Literal(brace, brace)

    def _placeholder(self, start: int, depth: int) -> Placeholder:
        if depth > DEEPEST:
            return self._skip(start)
        self._at = start + 1
        quoted = self._quoted(depth)
        path = quoted or self._parts(INSIDE, depth)
        steps: list[ModifierStep] = []
        while self._text[self._at] == "|":
            self._at += 1
            steps.append(self._modifier(start, depth))
        self._at += 1
        return Placeholder(self._text[start : self._at], start, path, tuple(steps), quoted is not None)

    def _quoted(self, depth: int) -> Template | None:
        """Parse the text in quotes that begins here and is all of a path or parameter; return None if there is none."""
        found = _QUOTED.match(self._text, self._at)
        if found is None or depth >= DEEPEST:
            return None
        self._at = found.end()
        inner = _Parser(found["text"].replace(f"\\{found['quote']}", found["quote"]))
        parts = inner.template()
        for problem in inner.problems.values():
            self.problems.setdefault(found.start("text") + problem.offset, problem)
        return parts

    def _skip(self, start: int) -> Placeholder:
        """Return a placeholder that is not parsed: up to the brace that closes it."""
        opened = 0
        for found in _BRACE.finditer(self._text, start):
            if len(found["backslashes"]) % 2 == 0:
                opened += 1 if found["brace"] == "{" else -1
            if not opened:
                self._at = found.end()
                return Placeholder(self._text[start : self._at], start, None)
        raise _Unclosed

    def _modifier(self, start: int, depth: int) -> ModifierStep:
        begin = self._at
        found = _STEP.match(self._text, begin)
        name = (found["sign"] or found["name"]) if found else ""
        self._at = found.end() if found else begin
        parameter = self._parameter(name, depth)
        if not name and parameter.literal is None:
            return ModifierStep("", None, parameter)
        step = _step(name or str(parameter.literal).strip(), parameter)
        self._check(step, start)
        return step

    def _parameter(self, name: str, depth: int) -> Template:
        """Parse a parameter. A quote belongs to a regular expression, and without a modifier's name there is no
        parameter.
        """
        if name == "regex":
            return self._parts(RegexSyntax(), depth)
        return (self._quoted(depth) if name else None) or self._parts(INSIDE, depth)

    def _check(self, step: ModifierStep, start: int) -> None:
        source = self._text[start : self._at] + "…"
        if step.modifier is None:
            self.problems.setdefault(
                start, TemplateProblem("MODIFIER_UNKNOWN", unknown(step.name, source), source, start)
            )
        elif isinstance(step.parsed, ModifierError):
            message = placed(step.name, step.parsed.said)
            self.problems.setdefault(start, TemplateProblem("MODIFIER_PARAMETER", message, source, start))


def _step(name: str, parameter: Template) -> ModifierStep:
    modifier = MODIFIERS.get(name)
    literal = parameter.literal
    if modifier is None or modifier.chooses or literal is None:
        return ModifierStep(name, modifier, parameter)
    return ModifierStep(name, modifier, parameter, _parsed(modifier, literal))


def _parsed(modifier: Modifier, literal: str) -> object:
    try:
        return modifier.parse(literal)
    except ModifierError as error:
        return error


def unknown(name: str, source: str) -> Text:
    """Return the message about a modifier that does not exist. `source`: the placeholder."""
    message = sentence("no_modifier", name=name)
    if (suggested := did_you_mean(message, name, filter(str.isidentifier, MODIFIERS))) is not message:
        return suggested
    return sentence("bar_regular_expression_stands", text=message) if "|regex:" in source else message


_NAME = re.compile(r"[^\W\d]\w*(?:[.\[].*)?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Mention:
    """`path`: as written, for example `attachments.0.type`. `source`: the placeholder. `is_doubled`: the placeholder is
    all that another one has in its braces, `{{path}}`; then its value is the name of a field. `is_optional`: a modifier
    says what becomes of a missing value.
    """

    path: str
    source: str
    is_doubled: bool = False
    is_optional: bool = False


def mentions(text: str) -> list[Mention]:
    """Return the fields that are named by their names, in the order of the text. A name with a placeholder in it is not
    known before the text is rendered, and one with spaces or other signs is no name: `{"a": 1}` is JSON.
    """
    return list(_in_template(parse(text))) if "{" in text else []


def outline(text: str, filler: str) -> str:
    """Return the text with `filler` in place of each character of a placeholder."""
    parts = parse(text).parts
    return "".join(part.raw if isinstance(part, Literal) else filler * len(part.source) for part in parts)


def may_bring_marks(text: str, of_people: Container[str]) -> bool:
    """Return whether a value can have marks of the parse mode. Those of people, in the fields `of_people`, are
    escaped."""
    return not all(isinstance(part, Literal) or _is_escaped(part, of_people) for part in parse(text).parts)


def _is_escaped(part: Placeholder, of_people: Container[str]) -> bool:
    path = part.path.literal if part.path and not part.is_quoted else None
    brings_own = any(
        step.modifier is None or step.modifier.chooses or step.name in ("raw", "code") for step in part.steps
    )
    return path is not None and starts_in(path.strip(), of_people) and not brings_own


def _in_template(template: Template | None) -> Iterator[Mention]:
    for part in template.parts if template else ():
        if isinstance(part, Placeholder):
            yield from _in_placeholder(part)


def _in_placeholder(part: Placeholder) -> Iterator[Mention]:
    path = part.path
    inner = path.whole if path and not part.is_quoted else None
    if path and path.literal is not None and not part.is_quoted and _NAME.fullmatch(path.literal.strip()):
        is_optional = any(step.modifier is None or step.modifier.sees_null for step in part.steps)
        yield Mention(path.literal.strip(), part.source, is_optional=is_optional)
    elif inner and inner.path and inner.path.literal is not None and not inner.steps:
        yield Mention(inner.path.literal.strip(), part.source, is_doubled=True)
    else:
        yield from _in_template(path)
    for step in part.steps:
        yield from _in_template(step.parameter)
