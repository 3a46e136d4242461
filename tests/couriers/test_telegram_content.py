"""Content over MTProto: marks, keyboards, files, replies, edits, removals; against the sandbox."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from telethon.tl import types

from couriers.sending import (
    Attachment,
    AttachmentType,
    Button,
    Content,
    Courier,
    Deferred,
    Feature,
    Outcome,
    ParseMode,
    Partly,
    Reason,
    Rejected,
    Sent,
)
from sandbox.telegram.state.dialogs import DialogMessage
from tests.couriers.contract import as_shown, files, message
from tests.couriers.telegram_provider import SHORT_TIMEOUT, TelegramProvider, provider

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


async def test_too_long_a_text_is_cut_with_three_dots(provider: TelegramProvider) -> None:
    sent = await deliver(await provider.open(), f"<b>{'я' * 5000}</b>", parse_mode=HTML)
    assert sent.not_shown == ("text_end",)
    assert messages(provider)[0].text == "я" * 4093 + "..."


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


async def test_a_button_of_a_bot_asks_for_the_contact(provider: TelegramProvider) -> None:
    await deliver(await provider.open(), "Phone?", reply=(("Share", "No"),), request_contact=("Share",))
    kinds = [type(one.type) for one in messages(provider)[0].markup.rows[0].buttons]
    assert kinds == [types.ButtonTypeRequestPhone, types.ButtonTypeDefault]


async def test_a_persons_account_shows_no_buttons(provider: TelegramProvider) -> None:
    bot = await provider.open()
    await provider.use_user_account()
    user = await provider.open()
    assert bot.shows - user.shows == {Feature.INLINE, Feature.REPLY, Feature.REQUEST_CONTACT, Feature.ANSWER}
    await user.attempt([as_shown(user, replace(message("+79990000001"), content=Content(HTML, MENU)), "<b>x</b>")])
    shown = [found for number in range(100_000, 100_010) for found in messages(provider, str(number))]
    assert all(found.markup is None for found in shown)


async def test_a_button_that_telegram_refuses_is_the_contents_fault(provider: TelegramProvider) -> None:
    outcome = await attempt(await provider.open(), "x", inline=((Button("a", "я" * 40),),))
    assert outcome == Rejected(Reason.CONTENT_REFUSED, "BUTTON_DATA_INVALID")


# files


def kinds(provider: TelegramProvider) -> list[str]:
    """What each message has: a type of file, or text."""
    return [found.file.kind if found.file else "text" for found in messages(provider)]


@pytest.mark.parametrize("kind", AttachmentType)
async def test_a_file_of_each_type_is_sent_with_the_text_as_its_caption(
    provider: TelegramProvider, tmp_path: Path, kind: AttachmentType
) -> None:
    sent = files(tmp_path, f"{kind}1.bin")
    await deliver(await provider.open(), "<b>Вот</b>", parse_mode=HTML, attachments=sent, inline=MENU)
    (shown,) = messages(provider)
    assert shown.file is not None
    assert (shown.file.kind, shown.file.name, shown.file.content) == (kind, f"{kind}1.bin", f"{kind}1.bin".encode())
    assert (shown.text, type(shown.entities[0]), shown.buttons) == ("Вот", types.MessageEntityBold, [["Да", "Сайт"]])


async def test_photos_go_in_groups_documents_in_groups_and_others_alone(
    provider: TelegramProvider, tmp_path: Path
) -> None:
    courier = await provider.open()
    names = ["audio1.mp3", "document1.pdf", *(f"photo{n}.png" for n in range(11)), "video1.mp4", "document2.pdf"]
    sent = await deliver(courier, "Всё", attachments=files(tmp_path, *names))
    assert kinds(provider) == [*["photo"] * 11, "video", "document", "document", "audio"]
    assert [found.text for found in messages(provider)] == ["Всё", *[""] * 14]
    assert sent.reference == ",".join(str(found.id) for found in messages(provider))
    assert provider.state.counter("telegram", "sendMultiMedia") == 3


async def test_a_repeat_after_a_lost_answer_sends_no_file_twice(provider: TelegramProvider, tmp_path: Path) -> None:
    provider.timeout = SHORT_TIMEOUT
    courier = await provider.open()
    sent = files(tmp_path, "photo1.png", "photo2.png", "audio1.mp3")
    provider.inject_fault("stored_then_silence", method="sendMedia")
    assert isinstance(await attempt(courier, "x", attachments=sent), Partly)
    (tmp_path / "photo1.png").unlink()
    repeated = await deliver(courier, "x", attachments=sent)
    assert repeated.not_shown == ("photo photo1.png",)
    assert sorted(kinds(provider)) == ["audio", "photo", "photo"]


async def test_a_file_of_many_parts_arrives_whole(provider: TelegramProvider, tmp_path: Path) -> None:
    content = bytes(range(256)) * 50_000  # 12.8 MB, beyond the limit of small files
    (tmp_path / "big.bin").write_bytes(content)
    big = Attachment(AttachmentType.DOCUMENT, str(tmp_path / "big.bin"))
    await deliver(await provider.open(), "", attachments=[big])
    (shown,) = messages(provider)
    assert shown.file is not None
    assert shown.file.content == content


async def test_what_cannot_be_sent_is_skipped_and_recorded(provider: TelegramProvider, tmp_path: Path) -> None:
    courier = await provider.open()
    gone = Attachment(AttachmentType.PHOTO, str(tmp_path / "gone.png"))
    of_another = Attachment(AttachmentType.VOICE, provider_id="AwAC")
    linked = Attachment(AttachmentType.PHOTO, url="https://example.org/menu.png")
    sent = await deliver(courier, "x", attachments=[gone, of_another, linked])
    assert sent.not_shown == ("photo gone.png", "voice")
    assert kinds(provider) == ["photo"]
    refused = await attempt(courier, "", attachments=[gone])
    assert refused == Rejected(Reason.CONTENT_REFUSED, "nothing is left without photo gone.png")


async def test_the_buttons_of_a_group_follow_with_the_text(provider: TelegramProvider, tmp_path: Path) -> None:
    courier = await provider.open()
    photos = files(tmp_path, "photo1.png", "photo2.png")
    await deliver(courier, "Выберите", attachments=photos, inline=MENU)
    assert kinds(provider) == ["photo", "photo", "text"]
    assert messages(provider)[2].buttons == [["Да", "Сайт"]]
    assert (await deliver(courier, "", attachments=photos, inline=MENU)).not_shown == ("inline",)


async def test_a_caption_is_cut_at_1024(provider: TelegramProvider, tmp_path: Path) -> None:
    sent = await deliver(await provider.open(), "я" * 2000, attachments=files(tmp_path, "photo1.png"))
    assert (sent.not_shown, messages(provider)[0].text) == (("text_end",), "я" * 1021 + "...")


# replies, removals, edits


async def test_a_message_replies_to_another_and_is_sent_also_if_that_one_is_gone(provider: TelegramProvider) -> None:
    courier = await provider.open()
    provider.server.write(ANNA, "Когда?")
    asked = messages(provider)[0].id
    assert (await deliver(courier, "Завтра", reply_to=str(asked))).not_shown == ()
    assert messages(provider)[1].reply_to == asked
    assert (await deliver(courier, "Послезавтра", reply_to="999")).not_shown == ("reply_to",)
    assert messages(provider)[2].text == "Послезавтра"


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


@pytest.mark.parametrize("edit", ["999", "the person's", "nonsense"])
async def test_an_edit_that_is_refused_becomes_a_new_message(provider: TelegramProvider, edit: str) -> None:
    courier = await provider.open()
    provider.server.write(ANNA, "сообщение человека")
    asked = messages(provider)[0].id
    sent = await deliver(courier, "новое", edit=str(asked) if edit == "the person's" else edit)
    assert [found.text for found in messages(provider)] == ["сообщение человека", "новое"]
    assert sent.reference == str(messages(provider)[1].id)
