"""Buttons as numbered choices and files as links, for channels that have neither."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.deliveries.received import chosen, encode_choices, may_be_answer
from core.model.content import Display, Limits
from couriers.sending import EVERY_FEATURE, Attachment, AttachmentType, Button, Content, Feature, ParseMode, plain_text
from couriers.sending.presentation import present
from couriers.sending.shown import shown_in

BUTTONS = ((Button("Сегодня", "today"), Button("Сайт", url="https://x.org")), (Button("Завтра", "tomorrow"),))
CHOICES = frozenset({Feature.INLINE, Feature.REPLY})


def test_buttons_are_numbered_and_addresses_follow() -> None:
    shown = present("Какой <b>день</b>?", Content(ParseMode.HTML, BUTTONS), (), EVERY_FEATURE)
    assert shown.text == "Какой день?\n1. Сегодня\n2. Завтра\nСайт: https://x.org"
    assert (shown.content, list(shown.choices)) == (None, [BUTTONS[0][0], BUTTONS[1][0]])
    assert shown.not_shown == ("parse_mode",)


def test_a_reply_keyboard_is_numbered_and_its_removal_needs_no_text() -> None:
    assert present("Что?", Content(reply=[["Меню"], ["Назад"]]), (), CHOICES).text == "Что?\n1. Меню\n2. Назад"
    assert present("Что?", Content(reply=[]), (), CHOICES)[:4] == ("Что?", None, (), [])


def test_a_file_with_an_address_is_a_link_and_another_one_is_recorded() -> None:
    photo = AttachmentType.PHOTO
    files = [Attachment(photo, url="https://x.org/1.png"), Attachment(photo, path="/bot/2.png")]
    shown = present("", Content(attachments=files), (), EVERY_FEATURE)
    assert (shown.text, shown.content, shown.not_shown) == ("https://x.org/1.png", None, ("photo",))


@pytest.mark.parametrize("mode", [ParseMode.HTML, ParseMode.MARKDOWN_V2])
@given(label=st.text(st.characters(blacklist_categories=["Cc", "Cs"]), min_size=1, max_size=20))
def test_a_label_adds_no_marks_to_a_marked_text(mode: ParseMode, label: str) -> None:
    shown = present("x", Content(mode, ((Button(label, "data"),),)), {Feature.PARSE_MODE}, CHOICES)
    assert plain_text(shown.text, mode) == f"x\n1. {label}"


def test_a_long_text_is_cut_for_its_choices_and_that_is_recorded() -> None:
    shown = present("я" * 4096, Content(inline=BUTTONS), (), CHOICES)
    assert len(shown.text) == 4096
    assert shown.text.endswith("я...\n1. Сегодня\n2. Завтра\nСайт: https://x.org")
    assert shown.not_shown == ("text_end",)


@pytest.mark.parametrize(
    ("answer", "means"),
    [
        ("1", "today"),
        (" 2. ", "tomorrow"),
        ("2)", "tomorrow"),
        ("3", ""),
        ("0", ""),
        ("12", ""),
        ("2 пары", ""),
        ("", ""),
    ],
)
def test_a_number_means_the_button_with_that_number(answer: str, means: str) -> None:
    button = chosen(encode_choices([Button("Сегодня", "today"), Button("Завтра", "tomorrow")]), answer)
    assert (button.data if button else "") == means
    assert may_be_answer(answer) or not means


@pytest.mark.parametrize("length", [40, 41])
def test_the_preview_cuts_a_text_in_a_channel_that_neither_splits_it_nor_takes_more(length: int) -> None:
    shown = shown_in(Display(limits=Limits(text=40)), "я" * length, None)
    expected, lost = ("я" * 40, ()) if length == 40 else ("я" * 37 + "...", ("text_end",))
    assert ([one.text for one in shown.messages], shown.not_shown) == ([expected], lost)
