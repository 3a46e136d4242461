"""Buttons arrive as they were given, or the text shows them as numbered choices; the preview knows which (D-52)."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.model.content import EVERY_FEATURE, Button, Content, Display, Limits
from couriers.max import content as max_keyboard
from couriers.sending.presentation import NOTHING, present
from couriers.sending.shown import shown_in
from couriers.telegram.channel import KEYBOARD
from couriers.telegram_bot import requests
from couriers.telegram_bot.library import types
from couriers.vk import content as vk_keyboard
from couriers.vk.channel import KEYBOARD as VK_KEYBOARD

letters = st.characters(blacklist_categories=("Cs", "Cc"))
buttons = st.builds(
    Button,
    st.text(letters, min_size=1, max_size=140).filter(str.strip),
    st.text(letters, min_size=1, max_size=256),
)
LIMITS = {"telegram-bot": KEYBOARD, "vk": VK_KEYBOARD, "max": max_keyboard.LIMITS}


def written_by(channel: str, content: Content) -> list[tuple[str, str]]:
    """The label and the data of each button in the request to the provider."""
    match channel:
        case "telegram-bot":
            found = requests.keyboard(content)
            assert isinstance(found, types.InlineKeyboardMarkup)
            return [(one.text, one.callback_data or "") for row in found.inline_keyboard for one in row]
        case "vk":
            rows = json.loads(vk_keyboard.keyboard(content))["buttons"]
            return [_of_vk(one["action"]) for row in rows for one in row]
    attachment = max_keyboard.keyboard(content)
    assert attachment
    return [(one["text"], one["payload"]) for row in attachment["payload"]["buttons"] for one in row]


def _of_vk(action: Mapping[str, Any]) -> tuple[str, str]:
    assert len(action["payload"]) <= 255
    return action["label"], json.loads(action["payload"])["data"]


@pytest.mark.parametrize("channel", LIMITS)
@given(rows=st.lists(st.lists(buttons, min_size=1, max_size=9), min_size=1, max_size=12))
@example(rows=[[Button("Да", "ж" * 33)]])
@example(rows=[[Button("Л" * 41, "a")]])
@example(rows=[[Button("Л" * 129, "a")]])
def test_a_button_arrives_as_given_or_as_a_numbered_choice(channel: str, rows: list[list[Button]]) -> None:
    display, content = Display(EVERY_FEATURE, limits=Limits(keyboard=LIMITS[channel])), Content(inline=rows)
    shown = shown_in(display, "text", content)
    every = [(one.text, one.data) for row in rows for one in row]
    sent = present("text", content, EVERY_FEATURE, display.written_as_text(content))
    if shown.buttons:
        assert written_by(channel, sent.content or NOTHING) == every
        assert [(one.text, one.data) for row in shown.buttons for one in row] == every
        assert channel != "telegram-bot" or all(len(data.encode()) <= 64 for _, data in every)
    else:
        assert (shown.choices, len(sent.choices)) == (len(every), len(every))
        lines = shown.messages[0].text
        assert all(label in lines for label, _ in every) or "text_end" in shown.not_shown
