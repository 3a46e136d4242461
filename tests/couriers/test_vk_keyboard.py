"""Buttons as keyboards of VK: VK accepts every keyboard that the courier makes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from couriers.sending import Button, Content
from couriers.vk.channel import KEYBOARD
from couriers.vk.content import keyboard
from sandbox.vk.keyboards import read_keyboard

buttons = st.builds(
    Button,
    text=st.text(max_size=60),
    data=st.text(max_size=300),
    url=st.sampled_from(["", "", "", "https://x.org", "tg://x"]),
)
contents = st.builds(
    Content,
    inline=st.lists(st.lists(buttons, max_size=8), max_size=7),
    reply=st.none() | st.lists(st.lists(st.text(max_size=45), max_size=8), max_size=12),
)


@given(contents)
def test_vk_accepts_each_keyboard_that_can_be_shown(content: Content) -> None:
    if KEYBOARD.fits(content):
        read_keyboard(keyboard(content))


def wide(*widths: int) -> Content:
    return Content(inline=[[Button("x", str(number)) for number in range(width)] for width in widths])


@pytest.mark.parametrize(("widths", "shown"), [((5, 5), [5, 5]), ((8, 1), [5, 3, 1]), ((1,) * 6, [1] * 6)])
def test_a_wide_row_is_continued_in_the_next_one(widths: tuple[int, ...], shown: list[int]) -> None:
    content = wide(*widths)
    assert KEYBOARD.fits(content)
    assert [len(row) for row in json.loads(keyboard(content))["buttons"]] == shown


@pytest.mark.parametrize(
    "content",
    [
        wide(5, 5, 1),
        wide(*[1] * 7),
        Content(inline=[[Button("x", "y" * 250)]]),
        Content(inline=[[Button("", "y")]]),
        Content(inline=[[Button("x", url="tg://resolve?domain=x")]]),
        Content(reply=[["x" * 41]]),
        Content(reply=[["x"]] * 11),
    ],
)
def test_buttons_that_no_keyboard_can_have_are_not_shown_as_one(content: Content) -> None:
    assert not KEYBOARD.fits(content)


def test_data_is_in_the_payload_and_an_address_is_a_link() -> None:
    made = json.loads(keyboard(Content(inline=[[Button("Да", "yes"), Button("Сайт", url="https://x.org")]])))
    first, second = (button["action"] for button in made["buttons"][0])
    assert (made["inline"], first["type"], json.loads(first["payload"])) == (True, "callback", {"data": "yes"})
    assert first["label"] == "Да"
    assert not KEYBOARD.fits(Content(inline=[[Button("Л" * 41, "yes")]]))
    assert second == {"type": "open_link", "label": "Сайт", "link": "https://x.org"}


def test_an_empty_reply_keyboard_removes_the_one_that_is_shown() -> None:
    assert json.loads(keyboard(Content(reply=[]))) == {"inline": False, "one_time": False, "buttons": []}
    assert keyboard(Content()) == ""
