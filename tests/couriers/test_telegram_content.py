"""Content over MTProto: marks, keyboards, replies, edits, removals; against the sandbox."""

from dataclasses import replace
from typing import Any

import pytest
from telethon.tl import types

from core.courier import Button, Content, Courier, Deferred, Feature, Outcome, ParseMode, Reason, Rejected, Sent
from sandbox.telegram.dialogs import DialogMessage
from tests.couriers.contract import as_shown, message
from tests.couriers.telegram_provider import TelegramProvider, provider

__all__ = ["provider"]

ANNA = "100002"
GROUP = "-1001234567890"
HTML = ParseMode.HTML
MENU = ((Button("Да", "yes"), Button("Сайт", url="https://example.org")),)


async def deliver(courier: Courier, text: str, *, seed: str = "", address: str = ANNA, **content: Any) -> Sent:
    outcome = await attempt(courier, text, seed=seed, address=address, **content)
    assert isinstance(outcome, Sent)
    return outcome


async def attempt(courier: Courier, text: str, *, seed: str = "", address: str = ANNA, **content: Any) -> Outcome:
    """Without a seed each text is a message of its own."""
    given = replace(message(address, text, seed=seed or text), content=Content(**content))
    (outcome,) = await courier.attempt([given])
    return outcome


def messages(provider: TelegramProvider, address: str = ANNA) -> list[DialogMessage]:
    return provider.server.messages(address)


@pytest.mark.row("C-40")
@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ('😀 <b>Пара</b> в <i>9</i> <a href="https://example.org">тут</a> <pre>x</pre>', HTML),
        ("😀 *Пара* в _9_ [тут](https://example.org) ```\nx```", ParseMode.MARKDOWN_V2),
    ],
)
async def test_marks_become_entities(provider: TelegramProvider, text: str, mode: ParseMode) -> None:
    await deliver(await provider.open(), text, parse_mode=mode)
    (shown,) = messages(provider)
    assert shown.text == "😀 Пара в 9 тут x"
    assert [(type(one), one.offset, one.length) for one in shown.entities] == [
        (types.MessageEntityBold, 3, 4),
        (types.MessageEntityItalic, 10, 1),
        (types.MessageEntityTextUrl, 12, 3),
        (types.MessageEntityPre, 16, 1),
    ]
    assert shown.entities[2].url == "https://example.org"


@pytest.mark.row("C-46", "C-91")
async def test_too_long_a_text_is_cut_with_three_dots(provider: TelegramProvider) -> None:
    sent = await deliver(await provider.open(), f"<b>{'я' * 5000}</b>", parse_mode=HTML)
    assert sent.not_shown == ("text_end",)
    assert messages(provider)[0].text == "я" * 4093 + "..."


@pytest.mark.row("C-41")
async def test_a_bots_messages_have_buttons_and_keyboards(provider: TelegramProvider) -> None:
    courier = await provider.open()
    await deliver(courier, "Идёте?", inline=MENU)
    await deliver(courier, "Кому?", reply=(("ИВТ-21", "ИВТ-22"), ("Назад",)))
    await deliver(courier, "Готово", reply=())
    inline, keys, removed = messages(provider)
    assert inline.buttons == [["Да", "Сайт"]]
    data, url = (button.type for button in inline.markup.rows[0].buttons)
    assert (data.data, url.url) == (b"yes", "https://example.org")
    assert (keys.buttons, type(removed.markup)) == ([["ИВТ-21", "ИВТ-22"], ["Назад"]], types.ReplyKeyboardHide)


@pytest.mark.row("C-91")
async def test_a_persons_account_shows_no_buttons_and_neither_shows_files(provider: TelegramProvider) -> None:
    bot = await provider.open()
    await provider.use_user_account()
    user = await provider.open()
    assert bot.shows - user.shows == {Feature.INLINE, Feature.REPLY}
    assert Feature.PHOTO not in bot.shows
    await user.attempt([as_shown(user, replace(message("+79990000001"), content=Content(HTML, MENU)), "<b>x</b>")])
    shown = [found for number in range(100_000, 100_010) for found in messages(provider, str(number))]
    assert all(found.markup is None for found in shown)


async def test_a_button_that_telegram_refuses_is_the_contents_fault(provider: TelegramProvider) -> None:
    outcome = await attempt(await provider.open(), "x", inline=((Button("a", "я" * 40),),))
    assert outcome == Rejected(Reason.CONTENT_REFUSED, "BUTTON_DATA_INVALID")


@pytest.mark.row("C-43")
async def test_a_message_replies_to_another_and_is_sent_also_if_that_one_is_gone(provider: TelegramProvider) -> None:
    courier = await provider.open()
    provider.server.write(ANNA, "Когда?")
    asked = messages(provider)[0].id
    assert (await deliver(courier, "Завтра", reply_to=str(asked))).not_shown == ()
    assert messages(provider)[1].reply_to == asked
    assert (await deliver(courier, "Послезавтра", reply_to="999")).not_shown == ("reply_to",)
    assert messages(provider)[2].text == "Послезавтра"


@pytest.mark.row("C-43")
@pytest.mark.parametrize("address", [ANNA, GROUP])
async def test_messages_are_removed_before_the_new_one(provider: TelegramProvider, address: str) -> None:
    courier = await provider.open()
    old = [(await deliver(courier, f"старое {n}", address=address)).reference for n in range(3)]
    assert (await deliver(courier, "новое", address=address, remove=f"{old[0]},{old[2]}")).not_shown == ()
    assert [found.text for found in messages(provider, address)] == ["старое 1", "новое"]
    assert (await deliver(courier, "ещё", address=address, remove="no id")).not_shown == ("remove",)


async def test_nothing_is_sent_while_it_is_unclear_whether_a_message_was_removed(provider: TelegramProvider) -> None:
    courier = await provider.open()
    await deliver(courier, "старое")
    await provider.stop()
    assert isinstance(await attempt(courier, "новое", remove="1"), Deferred)
    await provider.start()
    assert "новое" not in provider.received(ANNA)


@pytest.mark.row("C-42")
async def test_an_edit_changes_text_and_buttons_also_if_it_is_repeated(provider: TelegramProvider) -> None:
    courier = await provider.open()
    old = (await deliver(courier, "Идёте?", inline=MENU)).reference
    for _ in range(2):
        sent = await deliver(courier, "<b>Ждём</b>", parse_mode=HTML, edit=old)
        assert (sent.reference, sent.not_shown) == (old, ())
    (shown,) = messages(provider)
    assert (shown.text, shown.buttons, shown.is_edited) == ("Ждём", [], True)
    await deliver(courier, "", inline=MENU, edit=old)
    assert (messages(provider)[0].text, messages(provider)[0].buttons) == ("Ждём", [["Да", "Сайт"]])


@pytest.mark.row("C-42")
@pytest.mark.parametrize("edit", ["999", "the person's", "nonsense"])
async def test_an_edit_that_is_refused_becomes_a_new_message(provider: TelegramProvider, edit: str) -> None:
    courier = await provider.open()
    provider.server.write(ANNA, "сообщение человека")
    asked = messages(provider)[0].id
    sent = await deliver(courier, "новое", edit=str(asked) if edit == "the person's" else edit)
    assert [found.text for found in messages(provider)] == ["сообщение человека", "новое"]
    assert sent.reference == str(messages(provider)[1].id)
