"""The data of a button holds only for the tenant, channel, person and content for which it was signed."""

import pytest

from bots.button_data import MAX_CONTENT, ButtonData
from bots.dialog_event import DialogEvent
from tests.support.stack import Stack

CONTENT = "d.cancel.0.1763712000000000000"


def press(data: str, channel: str = "telegram-bot", address: str = "100001") -> DialogEvent:
    return DialogEvent("1", channel, address, button=data)


async def test_every_process_accepts_what_another_has_shown(stack: Stack) -> None:
    one, other = [await ButtonData.open(stack.store, "university") for _ in range(2)]
    assert other.read(press(one.sign("telegram-bot", "100001", CONTENT))) == CONTENT


async def test_the_longest_content_fits_into_the_data_of_a_button(stack: Stack) -> None:
    data = (await ButtonData.open(stack.store, "university")).sign("telegram-bot", "100001", MAX_CONTENT * "x")
    assert len(data.encode()) == 64


async def test_a_button_of_another_tenant_is_refused(stack: Stack) -> None:
    """The same person may use the bots of two tenants of one installation."""
    ours, theirs = [await ButtonData.open(stack.store, tenant) for tenant in ("university", "school")]
    assert theirs.read(press(ours.sign("telegram-bot", "100001", CONTENT))) is None


@pytest.mark.parametrize("changed", [{"channel": "vk"}, {"address": "100002"}])
async def test_a_button_of_another_person_or_channel_is_refused(stack: Stack, changed: dict[str, str]) -> None:
    buttons = await ButtonData.open(stack.store, "university")
    assert buttons.read(press(buttons.sign("telegram-bot", "100001", CONTENT), **changed)) is None


@pytest.mark.parametrize("made", ["", ".", CONTENT, f"{CONTENT}.", f"{CONTENT}.ы", f"{CONTENT}.AAAAAAAAAAAA"])
async def test_what_was_never_signed_is_refused(stack: Stack, made: str) -> None:
    assert (await ButtonData.open(stack.store, "university")).read(press(made)) is None
