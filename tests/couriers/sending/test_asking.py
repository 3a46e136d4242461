"""How a channel asks a question: buttons, numbers, links; and what the preview says of it."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast
from zoneinfo import ZoneInfo

import pytest
from aiohttp import ClientSession
from msgspec.structs import replace

from core.model.clock import to_ms
from core.model.contacts.addresses import is_group
from core.model.content import Display, KeyboardLimits, Limits
from core.model.question import AnswerKind, AnswerVisibility, Option, Question
from couriers.email.channel import CHANNEL as MAIL
from couriers.sending import Content, Feature, ParseMode, plain_text
from couriers.sending.presentation import LINK_PLACE, AnswerWays, ask, with_link
from couriers.sending.shown import Shown, display_of, shown_in
from couriers.sms.courier import Settings, Sms

URL = "https://ada.example/a/"
TOKEN = "Ab0" * 15
BUTTONS = frozenset({Feature.INLINE, Feature.ANSWER})
SMALL = KeyboardLimits(2, 2, 0, 0, 2, 40, 200)


def question(*options: str, locale: str = "ru") -> Question:
    kind = AnswerKind.CONFIRM if len(options) == 1 else AnswerKind.CHOICE
    return Question(kind, [Option(f"o{n}", text) for n, text in enumerate(options)], locale)


COMING = question("Приду", "Не приду")
CHOICE = AnswerKind.CHOICE
LONG_RU, LONG_EN = "Ответить можно до 01.12.2026, 18:00.", "Answers are taken until 1 December 2026, 18:00."


def sms(sender: str, inbound: str = "secret") -> Display:
    """How SMS asks if this is the sender."""
    settings = Settings("http://127.0.0.1/cgi-bin/sendsms", "ada", "sandbox", sender, inbound=inbound)
    return display_of(Sms(settings, cast("ClientSession", None)), URL)


def seen(display: Display, asked: Question = COMING, text: str = "Придёте?", content: Content | None = None) -> Shown:
    return shown_in(display, text, content, asked)


def test_a_sender_that_is_a_name_has_a_link_and_a_number_has_digits() -> None:
    for name in (sms("Ada"), sms("+79000000000", inbound="")):
        shown = seen(name)
        assert (shown.answer_by, shown.messages[0].text) == ("link", f"Придёте?\nОтветить: {URL}…")
    for number in (sms("+79000000000"), sms("79000000000")):
        shown = seen(number)
        assert (shown.answer_by, shown.messages[0].text) == ("number", "Придёте?\nОтветьте 1 – Приду, 2 – Не приду")
    assert seen(Display(BUTTONS, answer_url=URL)).answer_by == "press"
    silent = seen(Display())
    assert (silent.answer_by, silent.not_shown) == ("", ("answer",))


UNTIL = datetime(2026, 12, 1, 15, 0, tzinfo=UTC)
MOSCOW = ZoneInfo("Europe/Moscow")


LINKING = Display(frozenset({Feature.INLINE}), frozenset({Feature.REPLY}), Limits(keyboard=MAIL.keyboard), URL, True)


@pytest.mark.parametrize(
    ("display", "kind", "by", "lines"),
    [
        (Display(BUTTONS), CHOICE, "press", {"ru": [LONG_RU], "en": [LONG_EN]}),
        (Display(BUTTONS), AnswerKind.NUMBER, "text",
         {"ru": ["Ответьте на это сообщение: числом.", LONG_RU],
          "en": ["Reply to this message with a number.", LONG_EN]}),
        (LINKING, CHOICE, "link", {"ru": ["Или ответьте на это письмо: в первой строке один из этих ответов.", LONG_RU],
          "en": ["Or reply to this mail, with one of these answers in the first line.", LONG_EN]}),
        (sms("+79000000000"), CHOICE, "number",
         {"ru": ["Ответьте 1 – A, 2 – B", "До 01.12 18:00"], "en": ["Reply 1 - A, 2 - B", "Until 1 Dec 18:00"]}),
        (sms("Ada"), CHOICE, "link",
         {"ru": [f"Ответить: {URL}…", "До 01.12 18:00"], "en": [f"Answer: {URL}…", "Until 1 Dec 18:00"]}),
        (Display(), CHOICE, "", {"ru": [], "en": []}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("locale", ["ru", "en"])
def test_who_can_answer_reads_until_when(
    display: Display, kind: AnswerKind, by: str, lines: Mapping[str, Sequence[str]], locale: str
) -> None:
    """The sender alone knew it."""
    options = [Option("a", "A"), Option("b", "B")] if kind is CHOICE else []
    asked = Question(kind, options, locale, until=to_ms(UNTIL))
    shown = shown_in(display, "text", None, asked, zone=MOSCOW)
    assert (shown.answer_by, shown.messages[0].text) == (by, "\n".join(["text", *lines[locale]]))
    without = shown_in(display, "text", None, replace(asked, until=0), zone=MOSCOW)
    assert without.messages[0].text == "\n".join(["text", *(one for one in lines[locale] if "18:00" not in one)])


def test_until_when_counts_in_the_parts_of_an_sms() -> None:
    asked = replace(question("I come", "I do not", locale="en"), until=to_ms(UNTIL))
    line = "\nReply 11 - I come, 12 - I do not\nUntil 1 Dec 15:00"
    assert [seen(sms("+79000000000"), asked, "x" * (160 - len(line) + n)).parts for n in (0, 1)] == [1, 2]


def test_the_parts_of_an_sms_are_counted_with_two_digits() -> None:
    line = "\nReply 1 - I come, 2 - I do not"
    asked = question("I come", "I do not", locale="en")
    assert seen(sms("+79000000000"), asked, "x" * (160 - len(line) - 2)).parts == 1
    assert seen(sms("+79000000000"), asked, "x" * (160 - len(line))).parts == 2


@pytest.mark.parametrize(
    ("options", "buttons"),
    [(2, [f"{URL}…?o=1", f"{URL}…?o=2"]), (5, [f"{URL}…?o={n}" for n in range(1, 6)]), (6, [f"{URL}…"])],
)
def test_a_mail_has_a_button_with_a_link_for_each_of_few_options(options: int, buttons: list[str]) -> None:
    mail = Display(frozenset({Feature.INLINE}), frozenset({Feature.REPLY}), Limits(keyboard=MAIL.keyboard), URL)
    shown = seen(mail, question(*(f"o{n}" for n in range(options))))
    assert [one.url for row in shown.buttons for one in row] == buttons
    assert (shown.answer_by, shown.not_shown, shown.messages[0].text) == ("link", (), "Придёте?")


@pytest.mark.parametrize(
    ("asked", "line"),
    [
        (COMING, "\nИли ответьте на это письмо: в первой строке один из этих ответов."),
        (Question(AnswerKind.NUMBER, [], "ru"), "\nОтветьте на это сообщение: числом."),
        (Question(AnswerKind.FILE, [], "ru"), ""),
        (replace(COMING, visible=AnswerVisibility.ANONYMOUS), ""),
    ],
)
def test_a_mail_whose_replies_are_read_says_that_one_may_reply(asked: Question, line: str) -> None:
    mail = Display(frozenset({Feature.INLINE}), frozenset({Feature.REPLY}), Limits(keyboard=MAIL.keyboard), URL, True)
    shown = seen(mail, asked)
    assert (shown.answer_by, shown.messages[0].text) == ("link", f"Придёте?{line}")


def test_a_keyboard_without_room_for_the_options_has_a_button_with_the_link() -> None:
    small = Display(BUTTONS, frozenset(), Limits(keyboard=SMALL), URL)
    shown = seen(small, question("a", "b", "c"))
    assert ([one.text for row in shown.buttons for one in row], shown.answer_by) == (["Ответить"], "link")


@pytest.mark.parametrize("mode", list(ParseMode))
def test_the_link_of_each_recipient_takes_its_place_in_every_kind_of_text(mode: ParseMode) -> None:
    asked = ask(COMING, "x", Content(mode), {Feature.PARSE_MODE}, lambda _: (), AnswerWays(URL))
    text, content = with_link(asked.text, asked.content, TOKEN)
    assert plain_text(text, mode) == f"x\nОтветить: {URL}{TOKEN}"
    assert content == (Content(mode) if mode else None)
    assert LINK_PLACE not in text


@pytest.mark.parametrize(
    ("channel", "groups", "people"),
    [
        ("telegram", ["-100123"], ["+79990000001", "2100000000", "@anna"]),
        ("telegram-bot", ["-100123", "@school"], ["2100000000"]),
        ("vk", ["-5", "2000000001"], ["200001"]),
        ("max", ["-70001"], ["300001"]),
        ("sms", [], ["+79990000001"]),
        ("email", [], ["a@example.org"]),
    ],
)
def test_the_addresses_of_groups_are_known_in_each_channel(channel: str, groups: list[str], people: list[str]) -> None:
    """A personal link in a group would let anybody answer for the recipient."""
    assert [one for one in (*groups, *people) if is_group(channel, one)] == groups


@pytest.mark.parametrize(
    ("channel", "group", "shows", "by"),
    [
        ("telegram-bot", "-100123", BUTTONS, "press"),
        ("telegram-bot", "@school", BUTTONS, ""),
        ("vk", "2000000001", BUTTONS, "press"),
        ("max", "-70001", BUTTONS, "press"),
        ("telegram", "-100123", frozenset(), ""),
        ("apprise", "mattermost", frozenset(), ""),
    ],
)
def test_the_preview_of_a_group_chat_offers_no_link_and_no_reply(
    channel: str, group: str, shows: frozenset[Feature], by: str
) -> None:
    """A link in a group would let anybody answer for the recipient, so couriers put none there."""
    display = Display(shows, answer_url=URL)
    shown = shown_in(display, "Придёте?", None, COMING, channel, group)
    assert (shown.answer_by, shown.not_shown) == (by, () if by else ("answer",))
    written = shown_in(display, "Сколько вас?", None, Question(AnswerKind.NUMBER, (), "ru"), channel, group)
    assert (written.answer_by, written.not_shown) == ("", ("answer",))


def test_a_text_that_is_cut_for_a_link_says_so() -> None:
    long: Any = seen(Display(answer_url=URL), text="я" * 4096)
    assert long.not_shown == ("text_end",)
    assert long.messages[0].text.endswith(f"...\nОтветить: {URL}…")
