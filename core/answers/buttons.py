"""The buttons that answer the question of a delivery. Pure.

They stand below the buttons of the delivery itself. A channel that receives no presses, or whose keyboard has no room
for all of them, shows none: then the answer is among what is not shown.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

from msgspec.structs import replace

from core.model.content import Button, Content, Feature
from core.model.question import Option, Question

_PLACEHOLDER = "q" * 64
"""The data of a button before its token is made: as long as a token can be."""
_MOST_ALONE = 5
"""Options that have a row each; more stand in pairs."""
_CHOSEN = "✓ "

Rows = Sequence[Sequence[Button]]


def asking(
    content: Content | None,
    question: Question,
    shows: Collection[Feature],
    as_text: Callable[[Content], Collection[Feature]],
) -> Content | None:
    """Return the content with a button for each option, None if the channel cannot show them."""
    if Feature.ANSWER not in shows or not question.has_options:
        return None
    content = content or Content()
    asked = replace(content, inline=[*content.inline, *_rows(question, [_PLACEHOLDER] * len(question.options))])
    return None if Feature.INLINE in as_text(asked) else asked


def with_tokens(content: Content, question: Question, tokens: Sequence[str]) -> Content:
    """Return the content for one recipient. `content`: of `asking`. `tokens`: by option."""
    rows = _rows(question, tokens)
    return replace(content, inline=[*content.inline[: -len(rows)], *rows])


def as_reminder(content: Content | None) -> Content | None:
    """Return the content of a reminder: without the files, which may be gone, and without what changes earlier
    messages.
    """
    return Content(content.parse_mode, content.inline) if content else None


def answered_rows(content: Content | None, question: Question, tokens: Sequence[str], chosen: Collection[str]) -> Rows:
    """Return the buttons of a message whose question was answered: the keys `chosen` are marked."""
    own = content.inline if content else ()
    return [*own, *_rows(question, tokens, chosen)]


def counting_rows(
    content: Content | None, question: Question, tokens: Sequence[str], counts: Mapping[str, int]
) -> Rows:
    """Return the buttons of the message of a group chat: each has how many have chosen it. `counts`: by key."""
    own = content.inline if content else ()
    counted = [
        replace(one, text=f"{one.text} · {counts[one.key]}") if counts.get(one.key) else one for one in question.options
    ]
    return [*own, *_rows(replace(question, options=counted), tokens)]


def _rows(question: Question, tokens: Sequence[str], chosen: Collection[str] = ()) -> Rows:
    buttons = [Button(_label(one, chosen), data) for one, data in zip(question.options, tokens, strict=True)]
    width = 1 if len(buttons) <= _MOST_ALONE else 2
    return [buttons[start : start + width] for start in range(0, len(buttons), width)]


def _label(option: Option, chosen: Collection[str]) -> str:
    return f"{_CHOSEN}{option.text}" if option.key in chosen else option.text
