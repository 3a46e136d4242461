"""The form of a delivery in a channel: its content as far as the channel shows it, and its question. Pure.

What a courier declares as text is written behind the text: buttons as numbered choices, files as links. The rest is
recorded as not shown (C-91). A question is asked in the first way that the channel can show:

    buttons that count a press, or a reply ─▶ numbers in the text ─▶ buttons with links ─▶ a link in the text ─▶ not
    at all

The link of each recipient is put in last, by `with_link`.
"""

import html
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import UTC, tzinfo
from pathlib import PurePath
from typing import Any, NamedTuple

from msgspec.structs import replace

from core.answers import LINK, NUMBER, PRESS, TEXT
from core.answers.buttons import LINK_LENGTH, asking
from core.deliveries.received import MOST_CHOICES, choice_lines, choices_of
from core.model.clock import from_ms
from core.model.contacts.addresses import is_group
from core.model.content import Button, Content, Feature, ParseMode
from core.model.question import AnswerKind, Question
from core.model.text.characters import nfc
from core.model.text.text_marks import cut_text, has_marks, plain_text
from core.model.text.text_parts import utf16_length
from core.model.user_files import safe_name
from core.sentence import say

NOTHING = Content()

LONGEST_TEXT = 4096
"""UTF-16 code units, of a text with its lines."""

LINK_PLACE = "0" * LINK_LENGTH
"""Stands for the token of a link."""
_MOST_LINKS = 5
"""Options that have a link each."""

_MARKDOWN_MARKS = re.compile(r"([_*\[\]()~`>#+\-=|{}.!\\])")


class Presented(NamedTuple):
    """`content`: None if nothing but the text is left. `not_shown`: the features that the delivery uses and the channel
    does not have. `choices`: the buttons that the text shows with numbers. `answer_by`: how a question is answered, ""
    if it cannot be.
    """

    text: str
    content: Content | None = None
    not_shown: tuple[str, ...] = ()
    choices: Sequence[Button] = ()
    answer_by: str = ""

    @property
    def is_empty(self) -> bool:
        """Return whether nothing can be sent: the delivery has only what the channel cannot show."""
        content = self.content or NOTHING
        return bool(self.not_shown) and not (self.text.strip() or content.attachments or content.edit)


def present(
    text: str,
    content: Content | None,
    shows: Collection[Feature],
    as_text: Collection[Feature] = (),
) -> Presented:
    """Return what a courier with these features gets. Without PARSE_MODE the text is the plain text."""
    if content is None:
        return Presented(text)
    asks = bool(content.request_contact)
    if asks and (Feature.REQUEST_CONTACT not in shows or Feature.REPLY in as_text):
        content = without_contact_buttons(content)
    lost = (Feature.REQUEST_CONTACT,) if asks and not content.request_contact else ()
    content, lines, choices = text_form(content, as_text)
    missing = (*lost, *dict.fromkeys(feature for feature in _used(text, content) if feature not in shows))
    if content.inline and content.reply is not None and not {Feature.INLINE, Feature.REPLY} & {*missing}:
        missing = (*missing, Feature.REPLY)  # a message has one keyboard
    if Feature.PARSE_MODE not in shows:
        text, content = plain_text(text, content.parse_mode), replace(content, parse_mode=ParseMode.PLAIN)
    text, was_cut = with_lines(text, content.parse_mode, lines)
    content = replace(content, **dict(_changes(content, missing)))
    not_shown = (*missing, *_changed_names(content), *((Feature.TEXT_END,) if was_cut else ()))
    return Presented(text, None if content == NOTHING else content, not_shown, choices)


def _changed_names(content: Content) -> Iterator[str]:
    """Emit the names of the files that arrive under another name, as names in headers and forms must be safe."""
    names = (one.name or PurePath(one.path).name for one in content.attachments)
    yield from (f"file_name {name}" for name in names if name and safe_name(name) != nfc(name))


def without_contact_buttons(content: Content) -> Content:
    """Return the content for where no button can ask for a contact. Such a button would only write its text."""
    rows = [[label for label in row if label not in content.request_contact] for row in content.reply or ()]
    return replace(content, reply=[row for row in rows if row] or None, request_contact=())


def _used(text: str, content: Content) -> Iterator[Feature]:
    """Emit the features that a delivery uses; those of the attachments more than once."""
    if has_marks(text, content.parse_mode):
        yield Feature.PARSE_MODE
    for feature in (Feature.INLINE, Feature.REPLY_TO, Feature.EDIT, Feature.REMOVE):
        if getattr(content, feature):
            yield feature
    if content.reply is not None:
        yield Feature.REPLY
    for attachment in content.attachments:
        yield Feature(attachment.type)


def _changes(content: Content, missing: Collection[Feature]) -> Iterator[tuple[str, Any]]:
    """Emit the fields of the content without the missing features."""
    for feature in missing:
        if feature in (Feature.INLINE, Feature.REPLY_TO, Feature.EDIT, Feature.REMOVE, Feature.REPLY):
            yield str(feature), getattr(NOTHING, feature)
    if content.attachments:
        yield "attachments", tuple(one for one in content.attachments if Feature(one.type) not in missing)


class TextForm(NamedTuple):
    """`rest`: the content that is not written as lines. `choices`: what the numbers of the lines mean."""

    rest: Content
    lines: list[str]
    choices: list[Button]


def text_form(content: Content, as_text: Collection[Feature]) -> TextForm:
    """Write these features of a content as lines. A file without an address stays in the rest."""
    is_inline, is_reply = Feature.INLINE in as_text, Feature.REPLY in as_text
    written = Content(inline=content.inline if is_inline else (), reply=content.reply if is_reply else None)
    links = [one for one in content.attachments if one.url and Feature(one.type) in as_text]
    rest = replace(
        content,
        inline=() if is_inline else content.inline,
        reply=None if is_reply else content.reply,
        attachments=[one for one in content.attachments if one not in links] if links else content.attachments,
    )
    return TextForm(rest, [*choice_lines(written), *(one.url for one in links)], choices_of(written))


def with_lines(text: str, mode: ParseMode, lines: Collection[str]) -> tuple[str, bool]:
    """Return the text with the lines behind it, and whether the text had to be cut for them."""
    if not lines:
        return text, False
    behind = "\n".join(_escaped(line, mode) for line in lines)
    if not text.strip():
        return behind, False
    kept = cut_text(text, mode, LONGEST_TEXT - utf16_length(behind) - 1)
    return f"{kept}\n{behind}", kept != text


def _escaped(line: str, mode: ParseMode) -> str:
    match mode:
        case ParseMode.HTML:
            return html.escape(line, quote=False)
        case ParseMode.MARKDOWN_V2:
            return _MARKDOWN_MARKS.sub(r"\\\1", line)
    return line


class AnswerWays(NamedTuple):
    """The ways in which an address may answer beside buttons. `url`: of the page, without the token of a link, "" if
    there is none. `numbers`: of the options in a text that comes back, none if no text does. `quotes`: a text can quote
    the message. `presses`: a press comes from the address to which the message goes. `is_mailed`: a reply to the mail
    answers, too. `zone`: in which people read until when they can answer; `is_short`: in few characters: each is paid.
    """

    url: str = ""
    numbers: Sequence[int] = ()
    quotes: bool = True
    presses: bool = True
    is_mailed: bool = False
    zone: tzinfo = UTC
    is_short: bool = False


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


def present_asking(
    question: Question | None,
    text: str,
    content: Content | None,
    shows: Collection[Feature],
    as_text: Callable[[Content], Collection[Feature]],
    ways: AnswerWays,
) -> Presented:
    """Return what a courier with these features gets of a delivery; what answers its question has no tokens yet."""
    asked = ask(question, text, content, shows, as_text, ways) if question else None
    if asked:
        text, content = asked.text, asked.content
    presented = present(text, content, shows, as_text(content) if content else ())
    return asked.presented(presented) if asked else presented


def ask(
    question: Question,
    text: str,
    content: Content | None,
    shows: Collection[Feature],
    as_text: Callable[[Content], Collection[Feature]],
    ways: AnswerWays,
) -> Asked:
    ends = _end(question, ways)
    if ways.presses and (asked := asking(content, question, shows, as_text)):
        return _in_text(PRESS, text, asked, *ends)
    is_written = not question.has_options and question.kind is not AnswerKind.FILE
    if is_written and ways.quotes and Feature.ANSWER in shows:
        return _in_text(TEXT, text, content, _reply_line(question), *ends)
    if ways.numbers and question.kind is not AnswerKind.FILE and not question.is_anonymous:
        return _in_text(NUMBER, text, content, _numbered(question, ways.numbers), *ends)
    if not ways.url:
        return Asked("", text, content)
    content, url = content or Content(), f"{ways.url}{LINK_PLACE}"
    by_reply = [*(_by_reply(question) if ways.is_mailed else ()), *ends]
    for rows in _linked_buttons(question, url):
        linked = replace(content, inline=[*content.inline, *rows])
        if Feature.INLINE in shows and Feature.INLINE not in as_text(linked):
            return _in_text(LINK, text, linked, *by_reply)
    return _in_text(LINK, text, content, f"{say('ask_by_link', question.locale)}: {url}", *by_reply)


def _by_reply(question: Question) -> Sequence[str]:
    """Return the line that a reply to the mail answers; none for a question that it cannot answer."""
    if question.is_anonymous or question.kind is AnswerKind.FILE:
        return []
    return [say("ask_by_mail_option" if question.has_options else f"ask_in_reply_{question.kind}", question.locale)]


def _end(question: Question, ways: AnswerWays) -> Sequence[str]:
    """Return the line that says until when the question can be answered; none if it closes at no time."""
    if not question.until:
        return []
    at, locale = from_ms(question.until).astimezone(ways.zone), question.locale
    if ways.is_short:
        day = f"{at:%d.%m}" if locale == "ru" else f"{at.day} {at:%b}"
        return [say("ask_until_short", locale, time=f"{day} {at:%H:%M}")]
    day = f"{at:%d.%m.%Y}" if locale == "ru" else f"{at.day} {at:%B %Y}"
    return [say("ask_until", locale, time=f"{day}, {at:%H:%M}")]


def _in_text(by: str, text: str, content: Content | None, *lines: str) -> Asked:
    content = content or Content()
    text, was_cut = with_lines(text, content.parse_mode, lines)
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
