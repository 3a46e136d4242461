"""Previews a delivery as a person will see it in a channel, by the functions that couriers use. Pure.

Called by `delivery.api.deliveries.preview` and by the action `order`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, tzinfo
from functools import cache

from msgspec import Struct

from core.answers import NUMBER, PRESS
from core.answers.buttons import with_tokens
from core.model.contacts.addresses import is_group
from core.model.content import BEGINNING, Attachment, Button, Content, Display, Feature, Limits
from core.model.delivery import Recipient
from core.model.question import Question
from core.model.text.text_marks import Span, cut_text, plain_text, spans
from core.model.text.text_parts import beginning_of, sms_parts, split_text, utf16_length
from core.model.user_files import safe_name
from core.orders.preview import Preview
from couriers.sending.files import File, media_groups, name_of
from couriers.sending.interface import Courier, HasLimits, UsesSubscriptions, WritesAsText
from couriers.sending.presentation import (
    LINK_PLACE,
    NOTHING,
    AnswerWays,
    Presented,
    first_numbers,
    present_asking,
    ways_of,
    widest_numbers,
    with_link,
)

_ANY_LINK = "…"


class ShownText(Struct, frozen=True):
    """One message. `spans`: its marked ranges, in UTF-16 code units of the text."""

    text: str
    spans: Sequence[Span] = ()


class Shown(Struct, frozen=True):
    """The view of one person in one channel. `messages`: in their order, the first with the files. `parts`: SMS of all
    messages, 0 where texts are not sent in parts. `is_empty`: nothing can be sent there. `subject`: of a mail.
    `answer_by`: press, text, number or link, "" if a question cannot be answered there.
    """

    messages: Sequence[ShownText]
    buttons: Sequence[Sequence[Button]] = ()
    keyboard: Sequence[Sequence[str]] = ()
    files: Sequence[Attachment] = ()
    choices: int = 0
    not_shown: Sequence[str] = ()
    parts: int = 0
    is_empty: bool = False
    subject: str = ""
    answer_by: str = ""


def display_of(courier: Courier, answer_url: str = "", *, is_mailed: bool = False) -> Display:
    """Return how the channel of a courier shows deliveries."""
    as_text = courier.as_text(NOTHING) if isinstance(courier, WritesAsText) else ()
    limits = courier.limits if isinstance(courier, HasLimits) else Limits()
    taken = (courier.subscribe_key, courier.push_service) if isinstance(courier, UsesSubscriptions) else ()
    return Display(courier.shows, frozenset(as_text), limits, answer_url, is_mailed, *taken)


def shown_in(
    display: Display,
    text: str,
    content: Content | None,
    question: Question | None = None,
    channel: str = "",
    address: str = "",
    zone: tzinfo = UTC,
) -> Shown:
    """Return what a person sees of a delivery in a channel. `address`: the one that answers a question; "" for a
    private one. `zone`: in which it reads times.
    """

    def presented_with(numbers: Callable[[Question], Sequence[int]]) -> Presented:
        ways = ways_of(_usual_ways(display, question, numbers), channel, address)._replace(zone=zone)
        return present_asking(question, text, content, display.shows, display.written_as_text, ways)

    presented = presented_with(first_numbers)
    longest = presented
    if presented.answer_by == NUMBER:
        longest = presented_with(widest_numbers)
    left = presented.content or NOTHING
    if question and presented.answer_by == PRESS:
        left = with_tokens(left, question, [one.key for one in question.options])
    texts, was_cut = _texts(presented, display.limits)
    left = with_link("", left, _ANY_LINK)[1] or NOTHING
    return Shown(
        [] if presented.is_empty else [_marked(one.replace(LINK_PLACE, _ANY_LINK), left) for one in texts],
        left.inline,
        left.reply or (),
        left.attachments,
        len(presented.choices),
        (*presented.not_shown, *((Feature.TEXT_END,) if was_cut else ()), *_lost(presented, display.limits)),
        sum(map(sms_parts, _texts(longest, display.limits)[0])) if display.limits.in_sms else 0,
        presented.is_empty,
        _subject(presented, display.limits),
        presented.answer_by,
    )


def _usual_ways(
    display: Display, question: Question | None, numbers: Callable[[Question], Sequence[int]]
) -> AnswerWays:
    """Return how private addresses answer. `numbers`: returns those of the options, where people can answer by them."""
    found = numbers(question) if question and display.limits.numbers else ()
    return AnswerWays(display.answer_url, found, is_mailed=display.is_mailed, is_short=display.limits.in_sms)


def people_who_cannot_answer(preview: Preview, displays: Mapping[str, Display]) -> int:
    """Return how many people get the question of a delivery only where they cannot answer it; 0 without a question."""
    message, question = preview.message_of(0), preview.delivery.question
    if question is None:
        return 0

    @cache
    def asks(channel: str, group: str) -> bool:
        return bool(shown_in(displays.get(channel, Display()), *message, question, channel, group).answer_by)

    def asked(person: Recipient) -> Iterator[bool]:
        for channel in preview.channels_of(person):
            yield from (asks(channel, one if is_group(channel, one) else "") for one in person.contacts[channel])

    return sum(1 for one in preview.delivery.recipients if preview.channels_of(one) and not any(asked(one)))


def _lost(presented: Presented, limits: Limits) -> Iterator[Feature]:
    """Emit the keyboard that no message can have: that of a group of files without a text."""
    text, content = presented.text, presented.content
    if content and not text.strip() and _is_behind_files(content, limits):
        yield Feature.INLINE if content.inline else Feature.REPLY


def _subject(presented: Presented, limits: Limits) -> str:
    """Return the subject of a mail: it has the beginning of the text, or the name of the first file."""
    content = presented.content or NOTHING
    beginning = beginning_of(plain_text(presented.text, content.parse_mode))
    names = (safe_name(name_of(one)) for one in content.attachments)
    return limits.subject.replace(BEGINNING, beginning or next(names, ""))


def _texts(presented: Presented, limits: Limits) -> tuple[Sequence[str], bool]:
    """Return the texts of the messages, and whether the text was cut."""
    text, content = presented.text, presented.content or NOTHING
    if limits.splits_content or (presented.content is None and limits.splits):
        plain = spans(text, content.parse_mode)[0]
        fits = not limits.text or utf16_length(plain) <= limits.text
        return ((text,) if fits else split_text(plain, limits.text)), False
    is_caption = content.attachments and not _is_behind_files(content, limits)
    longest = limits.caption if is_caption else limits.text
    cut = cut_text(text, content.parse_mode, longest) if longest else text
    return (cut,), cut != text


def _is_behind_files(content: Content, limits: Limits) -> bool:
    """Return whether the text follows the files with its keyboard, which a group of files cannot have."""
    if not limits.follows_group or not (content.inline or content.reply is not None):
        return False
    groups = media_groups([File(number, one) for number, one in enumerate(content.attachments)])
    return bool(groups) and len(groups[0]) > 1


def _marked(text: str, content: Content) -> ShownText:
    return ShownText(*spans(text, content.parse_mode))
