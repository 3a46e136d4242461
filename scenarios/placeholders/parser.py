"""Parses a text into a `Template`. Pure; each text is parsed once (the last 2048 are kept). Never raises.

    text        = { literal | placeholder }
    quoted      = "'" text "'" | '"' text '"'            all of a path or parameter; bars in it have no meaning
    placeholder = "{" path { "|" modifier } "}"
    modifier    = sign text | name [ ":" text ]          sign: + - * / %
    path        = text | quoted
    text        may be quoted in a modifier, too, except in a regular expression

`syntax` says where a literal ends. A brace that is not closed is literal. `rendering` evaluates what is parsed here.
"""

import re
from functools import lru_cache

from scenarios.bot.suggestion import did_you_mean
from scenarios.placeholders.modifiers import MODIFIERS, Modifier, ModifierError
from scenarios.placeholders.syntax import INSIDE, OUTSIDE, RegexSyntax, Syntax
from scenarios.placeholders.template import Literal, ModifierStep, Placeholder, Template, TemplateProblem
from scenarios.words import Text, placed, sentence

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
    """Return the parts of a text."""
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
