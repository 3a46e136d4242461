"""Facts about a text with placeholders that are known before it is rendered: the fields that it names, also in
parameters and in other placeholders, and what it has besides. Pure.
"""

import re
from collections.abc import Container, Iterator
from dataclasses import dataclass

from scenarios.placeholders.parser import parse
from scenarios.placeholders.template import Literal, Placeholder, Template
from scenarios.placeholders.values import starts_in

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
