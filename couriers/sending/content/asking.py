"""Forms of the question of a delivery in a channel: buttons, numbers, or a link to a page. Pure.

    buttons that count a press, or a reply ─▶ numbers in the text ─▶ buttons with links ─▶ a link in the text ─▶ not
    at all

The first that the channel can show. The link of each recipient is put in last, by `with_link`.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from core.answers import LINK, NUMBER, PRESS, TEXT
from core.answers.buttons import asking
from core.answers.tokens import LINK_LENGTH
from core.deliveries.numbered_choices import MOST_CHOICES
from core.model.contacts.addresses import is_group
from core.model.content import Button, Content, Feature
from core.model.question import AnswerKind, Question
from core.sentence import say
from couriers.sending.content.content_for_channel import Presented, with_lines

LINK_PLACE = "0" * LINK_LENGTH
"""Stands for the token of a link."""
_MOST_LINKS = 5
"""Options that have a link each."""


class AnswerWays(NamedTuple):
    """The ways in which an address may answer beside buttons. `url`: of the page, without the token of a link, "" if
    there is none. `numbers`: of the options in a text that comes back, none if no text does. `quotes`: a text can quote
    the message. `presses`: a press comes from the address to which the message goes.
    """

    url: str = ""
    numbers: Sequence[int] = ()
    quotes: bool = True
    presses: bool = True


def ways_of(usual: AnswerWays, channel: str, address: str) -> AnswerWays:
    """Return how an address may answer, where a private one answers in the `usual` ways."""
    if not is_group(channel, address):
        return usual
    has_id = not address.startswith("@")  # a press has the id of its chat, not the name
    return usual._replace(url="", quotes=False, presses=has_id)  # with a link, anybody could answer for the recipient


class Asked(NamedTuple):
    """A question as a channel asks it. `by`: press, number or link, "" if it cannot ask. `was_cut`: the text had to be
    cut.
    """

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
    ways: AnswerWays,
) -> Asked:
    if ways.presses and (asked := asking(content, question, shows, as_text)):
        return Asked(PRESS, text, asked)
    is_written = not question.has_options and question.kind is not AnswerKind.FILE
    if is_written and ways.quotes and Feature.ANSWER in shows:
        return _in_text(TEXT, text, content, _reply_line(question))
    if ways.numbers and question.kind is not AnswerKind.FILE and not question.is_anonymous:
        return _in_text(NUMBER, text, content, _numbered(question, ways.numbers))
    if not ways.url:
        return Asked("", text, content)
    content, url = content or Content(), f"{ways.url}{LINK_PLACE}"
    for rows in _linked_buttons(question, url):
        linked = replace(content, inline=[*content.inline, *rows])
        if Feature.INLINE in shows and Feature.INLINE not in as_text(linked):
            return Asked(LINK, text, linked)
    return _in_text(LINK, text, content, f"{say('ask_by_link', question.locale)}: {url}")


def _in_text(by: str, text: str, content: Content | None, line: str) -> Asked:
    content = content or Content()
    text, was_cut = with_lines(text, content.parse_mode, [line])
    return Asked(by, text, None if content == Content() else content, was_cut)


def _numbered(question: Question, numbers: Sequence[int]) -> str:
    """Return the line with the numbers. In English it has only characters of which an SMS has 160."""
    locale = question.locale
    if not question.has_options:
        return say(f"ask_number_and_{question.kind}", locale, number=numbers[0])
    numbered = zip(numbers, question.options, strict=True)
    options = ", ".join(say("ask_option", locale, number=n, text=one.text) for n, one in numbered)
    return say("ask_with_numbers", locale, options=options)


def _reply_line(question: Question) -> str:
    return say(f"ask_in_reply_{question.kind}", question.locale)


def with_link(text: str, content: Content | None, token: str) -> tuple[str, Content | None]:
    """Return the text and content with the link of one recipient."""
    if content and content.inline:
        rows = [[replace(one, url=one.url.replace(LINK_PLACE, token)) for one in row] for row in content.inline]
        content = replace(content, inline=rows)
    return text.replace(LINK_PLACE, token), content


def first_numbers(question: Question) -> Sequence[int]:
    """Return the numbers that an address has for its only question."""
    return range(1, max(1, len(question.options)) + 1)


def widest_numbers(question: Question) -> Sequence[int]:
    """Return numbers that are as long as any: the text with them has as many parts as a text can have."""
    return [MOST_CHOICES] * max(1, len(question.options))


def _linked_buttons(question: Question, url: str) -> Iterator[Sequence[Sequence[Button]]]:
    """Emit the rows to try: a link for each option, which the page then shows as chosen, or one for all."""
    if 0 < len(question.options) <= _MOST_LINKS:
        yield [[Button(one.text, url=f"{url}?o={number}")] for number, one in enumerate(question.options, 1)]
    yield [[Button(say("ask_by_link", question.locale), url=url)]]
