"""How a channel asks the question of a delivery: by buttons, or by a link to a page. Pure.

    buttons that count a press ─▶ a link for each option ─▶ one link ─▶ a line with the link ─▶ not at all

The first that the channel can show. The link of each recipient is put in last, by `with_link`.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from core.answers import LINK, PRESS
from core.answers.buttons import asking
from core.answers.tokens import LINK_LENGTH
from core.model.content import Button, Content, Feature
from core.model.question import Question
from couriers.sending.content.content_for_channel import Presented, with_lines

LINK_PLACE = "0" * LINK_LENGTH
"""Stands for the token of a link."""
_MOST_LINKS = 5
"""Options that have a link each."""
_LABELS = {"ru": "Ответить", "en": "Answer"}


class Asked(NamedTuple):
    """How a channel asks. `by`: press or link, "" if it cannot ask. `was_cut`: the text had to be cut for it."""

    by: str
    text: str
    content: Content | None
    was_cut: bool = False

    def presented(self, presented: Presented) -> Presented:
        """Return what the courier gets, with what of the question is not shown."""
        not_asked = () if self.by else (Feature.ANSWER,)
        cut = (Feature.TEXT_END,) if self.was_cut and Feature.TEXT_END not in presented.not_shown else ()
        return presented._replace(not_shown=(*presented.not_shown, *not_asked, *cut), answer_by=self.by)


def ask(
    question: Question,
    text: str,
    content: Content | None,
    shows: Collection[Feature],
    as_text: Callable[[Content], Collection[Feature]],
    answer_url: str,
) -> Asked:
    """Return the text and content with the question. `answer_url`: the address of the page, "" if there is none."""
    if asked := asking(content, question, shows, as_text):
        return Asked(PRESS, text, asked)
    if not answer_url:
        return Asked("", text, content)
    content, url = content or Content(), f"{answer_url}{LINK_PLACE}"
    for rows in _linked_buttons(question, url):
        linked = replace(content, inline=[*content.inline, *rows])
        if Feature.INLINE in shows and Feature.INLINE not in as_text(linked):
            return Asked(LINK, text, linked)
    text, was_cut = with_lines(text, content.parse_mode, [f"{_label(question)}: {url}"])
    return Asked(LINK, text, None if content == Content() else content, was_cut)


def with_link(text: str, content: Content | None, token: str) -> tuple[str, Content | None]:
    """Return the text and content with the link of one recipient."""
    if content and content.inline:
        rows = [[replace(one, url=one.url.replace(LINK_PLACE, token)) for one in row] for row in content.inline]
        content = replace(content, inline=rows)
    return text.replace(LINK_PLACE, token), content


def may_have_link(address: str) -> bool:
    """Return whether a link may be sent to an address: in a group anybody could answer for the recipient."""
    return not address.startswith("-")


def _linked_buttons(question: Question, url: str) -> Iterator[Sequence[Sequence[Button]]]:
    """Emit the rows to try: a link for each option, which the page then shows as chosen, or one for all."""
    if len(question.options) <= _MOST_LINKS:
        yield [[Button(one.text, url=f"{url}?o={number}")] for number, one in enumerate(question.options, 1)]
    yield [[Button(_label(question), url=url)]]


def _label(question: Question) -> str:
    return _LABELS.get(question.locale, _LABELS["en"])
