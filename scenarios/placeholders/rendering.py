"""Evaluates templates. Pure; never raises, and the work is bounded by depth and number of placeholders.

A value that a person has written is never parsed: otherwise a message with `{field}` in it would show the bot's fields.
"""

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from functools import partial
from typing import Any
from urllib.parse import quote

from core.model.content import ParseMode
from core.model.text.text_entities import escaped
from scenarios.bot.data import MISSING, Data
from scenarios.placeholders.modifiers import PARAMETER, ModifierError
from scenarios.placeholders.parser import parse, step_of, unknown
from scenarios.placeholders.template import Literal, ModifierStep, Placeholder, Template
from scenarios.placeholders.values import as_text, find, for_people, is_list, starts_in
from scenarios.words import Text, placed, sentence

_CODE = {ParseMode.HTML: ("<code>", "</code>"), ParseMode.MARKDOWN_V2: ("`", "`")}


@dataclass(frozen=True, slots=True)
class Escaping:
    """`escape`: a value as the text that shows it. `keeps_backslashes`: whether the parse mode itself removes the
    backslash of `\\{`, so that it must stay in the text. `keeps_whole`: whether a text of one
    placeholder alone is not escaped.
    """

    escape: Callable[[str], str]
    mode: ParseMode = ParseMode.PLAIN
    keeps_whole: bool = False

    @property
    def code(self) -> tuple[str, str]:
        """The marks before and behind code; empty without markup."""
        return _CODE.get(self.mode, ("", ""))

    @property
    def keeps_backslashes(self) -> bool:
        return self.mode is ParseMode.MARKDOWN_V2


PLAIN = Escaping(str)
"""No markup: conditions, ids, addresses, other actions than `send`."""


def _in_url(text: str) -> str:
    """Return a value as a part of a URL. One of dots alone is left out: no encoding keeps `..` from being a folder."""
    return quote(text, safe="", errors="replace") if text.strip(".") else ""


URL = Escaping(_in_url, keeps_whole=True)

HTML = Escaping(partial(escaped, mode=ParseMode.HTML), ParseMode.HTML)

MARKDOWN_V2 = Escaping(partial(escaped, mode=ParseMode.MARKDOWN_V2), ParseMode.MARKDOWN_V2)


MAX_DEPTH = 10
"""Placeholders in placeholders and in values, unless a setting says otherwise."""


@dataclass(frozen=True, slots=True)
class Scope:
    """`values`: the fields that the text can name. `from_person`: the fields whose values a person has written; these
    are escaped and never parsed for placeholders. A field in a mapping counts with the mapping.
    `marked_up`: those of them that are ready for the parse mode, and not escaped if no modifier changes them.
    `keeps_unknown`: whether a text in which nothing gets a value stays as it is written, also its backslashes.
    `escaping`: that of the text's parse mode. `zone`: for dates; None shows them as they are, and seconds in UTC.
    `shown_in`: the zone in which people read the text: a moment in ISO 8601 stands in it as `15.12.2026 12:00`. None
    leaves moments as they are.
    """

    values: Mapping[str, Data]
    from_person: Container[str] = frozenset()
    escaping: Escaping = PLAIN
    zone: tzinfo | None = None
    max_depth: int = MAX_DEPTH
    marked_up: Container[str] = frozenset()
    keeps_unknown: bool = False
    shown_in: tzinfo | None = None


@dataclass(frozen=True, slots=True)
class RenderWarning:
    """A fault in one placeholder; the rest of the text is unharmed. `placeholder`: as written. `offset`: of the
    outermost placeholder, in characters. `path`: of the text in what was rendered (`inline.0.1`), "" for a single text.

    Codes: MODIFIER_UNKNOWN, MODIFIER_FAILED, TOO_DEEP, TOO_MANY.
    """

    code: str
    message: Text
    placeholder: str
    offset: int
    path: str = ""


@dataclass(frozen=True, slots=True)
class Rendered:
    """`value`: of the placeholder's type if the text is one whole placeholder, otherwise a text.
    `from_person`: whether something of it was written by a person; as a field it belongs to `Scope.from_person`.
    """

    value: Data
    warnings: tuple[RenderWarning, ...] = ()
    from_person: bool = False


MOST_PLACEHOLDERS = 10_000
"""Evaluated for one text, with those in values. With more, the others stay as written."""

MOST_WARNINGS = 100
"""Kept for one text."""


def render(text: str, scope: Scope) -> Rendered:
    """Return a text with its placeholders replaced. A text without braces is returned as the same object."""
    if "{" not in text:
        return Rendered(text)
    return _Rendering(scope).rendered(text)


def render_all(value: Data, scope: Scope) -> Rendered:
    """Render every text in lists and mappings, with the keys of mappings. What has no placeholder stays the same
    object. All other values are returned as they are.
    """
    if isinstance(value, str):
        return render(value, scope)
    if isinstance(value, Mapping):
        return _render_mapping(value, scope)
    return _render_list(value, scope) if isinstance(value, list) else Rendered(value)


def _render_list(values: list[Data], scope: Scope) -> Rendered:
    elements = [_placed(render_all(value, scope), str(index)) for index, value in enumerate(values)]
    new = [one for written, element in zip(values, elements, strict=True) for one in _expanded(written, element.value)]
    same = len(values) == len(new) and all(a is b for a, b in zip(values, new, strict=True))
    return _together(values if same else new, elements)


def _expanded(written: Data, value: Data) -> list[Data]:
    """Return what stands in a list for an element: the lists in a list, if the element is `{rows|expand}`."""
    whole = parse(written).whole if isinstance(written, str) and "{" in written else None
    expands = whole is not None and any(step.name == "expand" for step in whole.steps)
    return list(value) if expands and is_list(value) and all(map(is_list, value)) else [value]


def _render_mapping(values: Mapping[Any, Data], scope: Scope) -> Rendered:
    keys = [_placed(render_all(key, scope) if isinstance(key, str) else Rendered(key), str(key)) for key in values]
    elements = [_placed(render_all(value, scope), str(key)) for key, value in values.items()]
    same = all(a is b.value for a, b in zip([*values, *values.values()], [*keys, *elements], strict=True))
    new = {_key(key.value): element.value for key, element in zip(keys, elements, strict=True)}
    return _together(values if same else new, [*keys, *elements])


def _key(value: Data) -> Any:
    """Return a value as a key; a list or a mapping cannot be one."""
    return as_text(value) if isinstance(value, (list, Mapping)) else value


def _placed(rendered: Rendered, name: str) -> Rendered:
    """Return the value with `name` before the paths of the warnings."""
    if not rendered.warnings:
        return rendered
    warnings = tuple(replace(one, path=f"{name}.{one.path}".rstrip(".")) for one in rendered.warnings)
    return replace(rendered, warnings=warnings)


def _together(value: Data, elements: list[Rendered]) -> Rendered:
    warnings = tuple(warning for element in elements for warning in element.warnings)
    return Rendered(value, warnings[:MOST_WARNINGS], any(element.from_person for element in elements))


@dataclass(frozen=True, slots=True)
class _Value:
    """`from_person`: a person has written some of it. `markup`: it belongs into a text as it is."""

    data: Data
    from_person: bool = False
    markup: bool = False


_MISSING = _Value(MISSING)


@dataclass(slots=True)
class _Rendering:
    """One text. `outermost`: the offset of the placeholder at the top that is evaluated. `replaced`: if any got
    a value.
    """

    scope: Scope
    warnings: list[RenderWarning] = field(default_factory=list)
    evaluated: int = 0
    outermost: int = 0
    replaced: bool = False

    def rendered(self, text: str) -> Rendered:
        value = self.top(parse(text))
        if self.scope.keeps_unknown and not self.replaced:
            return Rendered(text)
        return Rendered(value.data, tuple(self.warnings), value.from_person)

    def top(self, template: Template) -> _Value:
        """Return the text itself: what stays a text is escaped."""
        whole = template.whole
        if whole is None:
            return self.mixed(template, 0, markup=True)
        value = self.placeholder(whole, 1, markup=True)
        if value.data is MISSING:
            return _Value(self.as_written(whole))
        if not isinstance(value.data, str) or self.scope.escaping.keeps_whole:
            return value
        return _Value(self.text_of(value), value.from_person)

    def template(self, template: Template, depth: int, markup: bool) -> _Value:
        """Return a parameter, or a value with placeholders. One whole placeholder keeps its type, and may be
        missing."""
        whole = template.whole
        return self.placeholder(whole, depth + 1, markup) if whole else self.mixed(template, depth, markup)

    def mixed(self, template: Template, depth: int, markup: bool) -> _Value:
        """Render literals and placeholders as one text. With `markup` it suits the parse mode, otherwise plain."""
        texts: list[str] = []
        from_person = False
        for part in template.parts:
            if isinstance(part, Literal):
                texts.append(part.raw if markup and self.scope.escaping.keeps_backslashes else part.plain)
                continue
            value = self.placeholder(part, depth + 1, markup)
            from_person |= value.from_person
            texts.append(self.text_in(part, value, markup))
        return _Value("".join(texts), from_person, markup)

    def text_in(self, part: Placeholder, value: _Value, markup: bool) -> str:
        """Return what a placeholder contributes to a text."""
        if value.data is MISSING:
            return self.as_written(part) if markup else part.source
        return self.text_of(value) if markup else as_text(value.data)

    def text_of(self, value: _Value) -> str:
        """Return a value as a text for the parse mode. Numbers and moments are escaped, too: MarkdownV2 refuses a bare
        `-` or `.`."""
        written = as_text(value.data)
        text = for_people(value.data, self.scope.shown_in) if self.scope.shown_in else written
        number = isinstance(value.data, (int, float)) or text != written
        return self.scope.escaping.escape(text) if (value.from_person or number) and not value.markup else text

    def as_written(self, part: Placeholder) -> str:
        """Return a placeholder as it is written. MarkdownV2 refuses a message with bare braces, so there they are
        escaped.
        """
        escaping = self.scope.escaping
        return escaping.escape(part.source) if escaping.keeps_backslashes else part.source

    def placeholder(self, part: Placeholder, depth: int, markup: bool) -> _Value:
        """Return its value after all modifiers; missing if it stays as written."""
        if depth == 1:
            self.outermost = part.offset
        self.evaluated += 1
        if self.evaluated > MOST_PLACEHOLDERS:
            self.warn("TOO_MANY", sentence("more_than_placeholders_one", most=MOST_PLACEHOLDERS), part)
            return _MISSING
        if part.path is None or depth > self.scope.max_depth:
            self.warn("TOO_DEEP", sentence("placeholders_nested_deeper_than", most=self.scope.max_depth), part)
            return _MISSING
        value = self.start(part, part.path, depth, markup)
        for step in part.steps:
            value = self.modified(value, step, part, depth, markup)
        self.replaced |= value.data is not MISSING
        return value

    def start(self, part: Placeholder, path: Template, depth: int, markup: bool) -> _Value:
        """Return what the modifiers begin with. Words of people in a quoted text are escaped after the modifiers."""
        if not part.is_quoted:
            keeps_text = all(step.modifier and step.modifier.chooses for step in part.steps)
            return self.field(path, depth, markup, keeps_text=keeps_text)
        return self.template(path, depth, markup and not part.steps)

    def field(self, path: Template, depth: int, markup: bool, *, keeps_text: bool) -> _Value:
        """Return the value of a field; placeholders in it are evaluated, unless a person has written it. `keeps_text`:
        no modifier changes it.
        """
        name = path.literal if path.literal is not None else as_text(self.mixed(path, depth, markup=False).data)
        data = find(self.scope.values, name.strip())
        if data is not MISSING and starts_in(name.strip(), self.scope.from_person):
            return _Value(data, from_person=True, markup=keeps_text and name.strip() in self.scope.marked_up)
        if not isinstance(data, str) or "{" not in data:
            return _Value(data)
        value = self.template(parse(data), depth, markup)
        return _Value(data) if value.data is MISSING else value

    def modified(self, value: _Value, step: ModifierStep, part: Placeholder, depth: int, markup: bool) -> _Value:
        if not step.name:
            step = step_of(as_text(self.template(step.parameter, depth, markup=False).data))
        if step.modifier is None:
            self.warn("MODIFIER_UNKNOWN", unknown(step.name, part.source), part)
            return value
        if not step.modifier.sees_null and (value.data is MISSING or value.data is None):
            return value
        try:
            return self.applied(value, step, depth, markup)
        except ModifierError as error:
            self.warn("MODIFIER_FAILED", placed(step.name, error.said), part)
            return value

    def applied(self, value: _Value, step: ModifierStep, depth: int, markup: bool) -> _Value:
        """Return a value with one modifier applied. Raises ModifierError."""
        assert step.modifier
        if step.modifier.chooses:
            chosen = step.modifier.apply(value.data, PARAMETER, None)
            if chosen is PARAMETER:
                return self.template(step.parameter, depth, markup)
            return value if chosen is value.data else _Value(chosen)
        if step.name == "code":
            return self.code(value)
        result = step.modifier.apply(value.data, self.parameter(step, depth), self.scope.zone)
        from_person = value.from_person and not isinstance(result, bool)
        return _Value(result, from_person, value.markup or step.name == "raw")

    def code(self, value: _Value) -> _Value:
        """Return a value in the mark of code; unchanged where there is no markup."""
        begin, end = self.scope.escaping.code
        if not begin:
            return value
        elements = value.data if is_list(value.data) else [value.data]
        lines = [begin + self.text_of(replace(value, data=element)) + end for element in elements]
        return _Value("\n".join(lines), value.from_person, markup=True)

    def parameter(self, step: ModifierStep, depth: int) -> Any:
        """Return what the modifier made of its parameter. Raises ModifierError."""
        if isinstance(step.parsed, ModifierError):
            raise step.parsed
        if step.parsed is not None:
            return step.parsed
        assert step.modifier
        found = self.template(step.parameter, depth, markup=False).data
        if found is MISSING:
            raise ModifierError(sentence("placeholder_parameter_has_no"))
        return step.modifier.parse(found)

    def warn(self, code: str, message: Text, part: Placeholder) -> None:
        if len(self.warnings) < MOST_WARNINGS:
            self.warnings.append(RenderWarning(code, message, part.source, self.outermost))
