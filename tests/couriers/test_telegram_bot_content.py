"""Content through the Bot API: marks, keyboards, files, replies, edits, removals; against the sandbox."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession

from couriers.sending import (
    Attachment,
    AttachmentType,
    Button,
    Content,
    Courier,
    Deferred,
    Outcome,
    ParseMode,
    Partly,
    Reason,
    Rejected,
    Scope,
    Sent,
)
from couriers.telegram_bot.requests import send_requests
from sandbox.state import Fault, Rule
from tests.couriers.contract import files, message
from tests.couriers.telegram_bot_provider import BotApiProvider, provider

__all__ = ["provider"]

ANNA = 100_002
HTML = ParseMode.HTML
MENU = ((Button("Да", "yes"), Button("Сайт", url="https://example.org")),)
Json = dict[str, Any]


async def deliver(courier: Courier, text: str, **content: Any) -> Outcome:
    (outcome,) = await courier.attempt([replace(message(str(ANNA), text), content=Content(**content))])
    return outcome


def messages(provider: BotApiProvider) -> list[Json]:
    found: list[Json] = provider.server.people.messages(ANNA)
    return found


def kinds(provider: BotApiProvider) -> list[str]:
    """What each message has: a type of file, or text."""
    return [next(one for one in (*AttachmentType, "text") if one in found) for found in messages(provider)]


# the text


@pytest.mark.parametrize(
    ("text", "mode"), [("<b>Пара</b> в <i>9</i> &lt;утра&gt;", HTML), ("*Пара* в _9_ <утра\\>", ParseMode.MARKDOWN_V2)]
)
async def test_marks_become_entities(provider: BotApiProvider, text: str, mode: ParseMode) -> None:
    assert await deliver(await provider.open(), text, parse_mode=mode) == Sent("1")
    (shown,) = messages(provider)
    assert (shown["text"], [one["type"] for one in shown["entities"]]) == ("Пара в 9 <утра>", ["bold", "italic"])


async def test_a_text_without_a_parse_mode_arrives_letter_for_letter(provider: BotApiProvider) -> None:
    await deliver(await provider.open(), "<b>x</b> *y*", inline=MENU)
    assert messages(provider)[0]["text"] == "<b>x</b> *y*"


async def test_marks_that_telegram_does_not_accept_are_refused_with_its_reason(provider: BotApiProvider) -> None:
    outcome = await deliver(await provider.open(), "<b>never closed", parse_mode=HTML)
    assert isinstance(outcome, Rejected)
    assert outcome.reason == Reason.CONTENT_REFUSED
    assert "can't parse entities" in outcome.detail


async def test_too_long_a_text_is_cut_with_three_dots_within_its_marks(provider: BotApiProvider) -> None:
    outcome = await deliver(await provider.open(), f"<b>{'я' * 5000}</b>", parse_mode=HTML)
    assert outcome == Sent("1", not_shown=("text_end",))
    (shown,) = messages(provider)
    assert shown["text"] == "я" * 4093 + "..."
    assert shown["entities"] == [{"type": "bold", "offset": 0, "length": 4096}]


async def test_a_caption_is_cut_at_1024(provider: BotApiProvider, tmp_path: Path) -> None:
    photo = files(tmp_path, "photo1.png")
    outcome = await deliver(await provider.open(), f"<i>{'я' * 2000}</i>", parse_mode=HTML, attachments=photo)
    assert outcome == Sent("1", not_shown=("text_end",))
    assert messages(provider)[0]["caption"] == "я" * 1021 + "..."


# keyboards


async def test_buttons_below_a_message_can_be_pressed(provider: BotApiProvider) -> None:
    await deliver(await provider.open(), "Идёте?", inline=MENU)
    assert messages(provider)[0]["reply_markup"]["inline_keyboard"] == [
        [{"text": "Да", "callback_data": "yes"}, {"text": "Сайт", "url": "https://example.org"}]
    ]
    assert provider.server.people.press(ANNA, 1, "Да")


async def test_a_reply_keyboard_is_shown_until_an_empty_one_removes_it(provider: BotApiProvider) -> None:
    courier = await provider.open()
    await deliver(courier, "Кому?", reply=(("ИВТ-21", "ИВТ-22"), ("Назад",)))
    assert provider.server.people.keyboard(ANNA) == [["ИВТ-21", "ИВТ-22"], ["Назад"]]
    await deliver(courier, "Готово", reply=())
    assert provider.server.people.keyboard(ANNA) == []


async def test_a_button_asks_for_the_contact_in_private_chats_only(provider: BotApiProvider) -> None:
    courier, keys = await provider.open(), (("Share", "No"), ("Share too",))
    assert await deliver(courier, "Phone?", reply=keys, request_contact=("Share", "Share too")) == Sent("1")
    shown = provider.server.people.shown(ANNA)
    assert (shown["keyboard"], shown["contact_buttons"]) == ([list(row) for row in keys], ["Share", "Share too"])
    content = Content(reply=keys, request_contact=("Share", "Share too"))
    requests = send_requests(replace(message("-1001"), content=content))
    assert requests.not_shown == ("request_contact",)
    (request,) = requests.requests
    ((key,),) = request.model_dump(exclude_none=True)["reply_markup"]["keyboard"]
    assert key == {"text": "No"}


async def test_of_two_keyboards_the_inline_one_is_shown_and_the_other_recorded(provider: BotApiProvider) -> None:
    outcome = await deliver(await provider.open(), "x", inline=MENU, reply=(("a",),))
    assert outcome == Sent("1", not_shown=("reply",))


async def test_a_button_that_telegram_refuses_is_the_contents_fault(provider: BotApiProvider) -> None:
    outcome = await deliver(await provider.open(), "x", inline=((Button("a", "я" * 40),),))
    assert outcome == Rejected(Reason.CONTENT_REFUSED, "Bad Request: BUTTON_DATA_INVALID")


# files


@pytest.mark.parametrize("kind", AttachmentType)
async def test_a_file_of_each_type_is_sent_with_the_text_as_its_caption(
    provider: BotApiProvider, tmp_path: Path, kind: AttachmentType
) -> None:
    sent = files(tmp_path, f"{kind}1.bin")
    outcome = await deliver(await provider.open(), "<b>Вот</b>", parse_mode=HTML, attachments=sent, inline=MENU)
    assert outcome == Sent("1")
    (shown,) = messages(provider)
    assert (shown["caption"], kinds(provider), "reply_markup" in shown) == ("Вот", [kind], True)
    assert shown["caption_entities"][0]["type"] == "bold"


async def test_photos_and_videos_go_in_groups_of_ten_documents_in_groups_and_others_alone(
    provider: BotApiProvider, tmp_path: Path
) -> None:
    names = ["audio1.mp3", "document1.pdf", *(f"photo{n}.png" for n in range(11)), "video1.mp4", "document2.pdf"]
    outcome = await deliver(await provider.open(), "Всё", attachments=files(tmp_path, *names, "animation1.gif"))
    assert isinstance(outcome, Sent)
    assert outcome.reference == ",".join(str(number) for number in range(1, 17))
    assert kinds(provider) == [*["photo"] * 11, "video", "document", "document", "audio", "animation"]
    groups = [found.get("media_group_id") for found in messages(provider)]
    assert [len({*groups[:10]}), len({*groups[10:12]}), len({*groups[12:14]}), groups[14:]] == [1, 1, 1, [None, None]]
    assert [found.get("caption") for found in messages(provider)] == ["Всё", *[None] * 15]
    uploaded = await download(provider, messages(provider)[12]["document"]["file_id"])
    assert uploaded == b"document1.pdf"


async def download(provider: BotApiProvider, file_id: str) -> bytes:
    url = f"http://127.0.0.1:{provider.port}/file/bot{provider.token}/files/{file_id}"
    async with ClientSession() as session, session.get(url) as response:
        return await response.read()


async def test_a_missing_file_is_skipped_and_recorded(provider: BotApiProvider, tmp_path: Path) -> None:
    courier = await provider.open()
    sent = [*files(tmp_path, "photo1.png"), Attachment(AttachmentType.PHOTO, str(tmp_path / "gone.png"))]
    assert await deliver(courier, "Вот", attachments=sent) == Sent("1", not_shown=("photo gone.png",))
    assert await deliver(courier, "Вот", attachments=sent[1:]) == Sent("2", not_shown=("photo gone.png",))
    assert messages(provider)[1]["text"] == "Вот"
    refused = await deliver(courier, "", attachments=sent[1:])
    assert refused == Rejected(Reason.CONTENT_REFUSED, "nothing is left without photo gone.png")


async def test_a_file_that_is_too_large_to_upload_is_skipped(provider: BotApiProvider, tmp_path: Path) -> None:
    with (tmp_path / "film.mp4").open("wb") as large:
        large.truncate(2 * 2**30)
    film = Attachment(AttachmentType.VIDEO, str(tmp_path / "film.mp4"))
    assert await deliver(await provider.open(), "x", attachments=[film]) == Sent("1", not_shown=("video film.mp4",))


async def test_a_file_is_sent_by_url_and_again_by_telegrams_id(provider: BotApiProvider) -> None:
    courier = await provider.open()
    await deliver(courier, "", attachments=[Attachment(AttachmentType.PHOTO, url="https://example.org/a.png")])
    known = messages(provider)[0]["photo"][0]["file_id"]
    outcome = await deliver(courier, "", attachments=[Attachment(AttachmentType.PHOTO, provider_id=known)])
    assert outcome == Sent("2")
    assert messages(provider)[1]["photo"][0]["file_id"] == known


async def test_an_unknown_file_id_is_the_contents_fault(provider: BotApiProvider) -> None:
    sent = [Attachment(AttachmentType.PHOTO, provider_id="nosuch")]
    outcome = await deliver(await provider.open(), "x", attachments=sent)
    assert isinstance(outcome, Rejected)
    assert outcome.reason == Reason.CONTENT_REFUSED


async def test_the_buttons_of_a_group_follow_with_the_text(provider: BotApiProvider, tmp_path: Path) -> None:
    courier = await provider.open()
    photos = files(tmp_path, "photo1.png", "photo2.png")
    assert await deliver(courier, "Выберите", attachments=photos, inline=MENU) == Sent("1,2,3")
    assert kinds(provider) == ["photo", "photo", "text"]
    assert "reply_markup" in messages(provider)[2]
    assert await deliver(courier, "", attachments=photos, inline=MENU) == Sent("4,5", not_shown=("inline",))


async def test_a_later_group_that_is_refused_shows_what_arrived(provider: BotApiProvider, tmp_path: Path) -> None:
    sent = files(tmp_path, "photo1.png", "photo2.png", "audio1.mp3")
    provider.state.add_rule(Rule("telegram-bot", Fault("flood_wait", 9), str(ANNA), "sendAudio", times=1))
    outcome = await deliver(await provider.open(), "x", attachments=sent)
    assert outcome == Partly(Deferred(Reason.THROTTLED, timedelta(seconds=9), Scope.CHAT, "429"), "1,2")


# replies, removals, edits


async def test_a_message_replies_to_another_and_is_sent_also_if_that_one_is_gone(provider: BotApiProvider) -> None:
    courier = await provider.open()
    asked = provider.server.people.write(ANNA, "Когда?")
    assert await deliver(courier, "Завтра", reply_to=str(asked)) == Sent("2")
    assert messages(provider)[1]["reply_to_message"]["text"] == "Когда?"
    assert await deliver(courier, "Завтра", reply_to="99") == Sent("3", not_shown=("reply_to",))


async def test_messages_are_removed_before_the_new_one(provider: BotApiProvider) -> None:
    courier = await provider.open()
    for _ in range(3):
        await deliver(courier, "старое")
    assert await deliver(courier, "новое", remove="1,3") == Sent("4")
    assert [found["message_id"] for found in messages(provider)] == [2, 4]
    assert await deliver(courier, "новое", remove="1") == Sent("5")
    assert await deliver(courier, "новое", remove="not an id") == Sent("6", not_shown=("remove",))


async def test_nothing_is_sent_while_it_is_unclear_whether_a_message_was_removed(provider: BotApiProvider) -> None:
    courier = await provider.open()
    provider.state.add_rule(Rule("telegram-bot", Fault("server_error"), str(ANNA), "deleteMessages", times=1))
    outcome = await deliver(courier, "новое", remove="1")
    assert isinstance(outcome, Deferred)
    assert messages(provider) == []


async def test_an_edit_changes_text_and_buttons_of_the_message(provider: BotApiProvider) -> None:
    courier = await provider.open()
    await deliver(courier, "Идёте?", inline=MENU)
    assert await deliver(courier, "<b>Ждём</b>", parse_mode=HTML, edit="1") == Sent("1")
    (shown,) = messages(provider)
    assert (shown["text"], "reply_markup" in shown) == ("Ждём", False)
    assert await deliver(courier, "", inline=MENU, edit="1") == Sent("1")
    assert "reply_markup" in messages(provider)[0]


async def test_an_edit_of_a_message_with_a_file_changes_its_caption(provider: BotApiProvider, tmp_path: Path) -> None:
    courier = await provider.open()
    await deliver(courier, "было", attachments=files(tmp_path, "photo1.png"))
    assert await deliver(courier, "я" * 1025, edit="1") == Sent("1", not_shown=("text_end",))
    assert messages(provider)[0]["caption"] == "я" * 1021 + "..."


async def test_an_edit_that_changes_nothing_is_done(provider: BotApiProvider) -> None:
    courier = await provider.open()
    await deliver(courier, "x", inline=MENU)
    assert await deliver(courier, "x", inline=MENU, edit="1") == Sent("1")
    assert len(messages(provider)) == 1


@pytest.mark.parametrize("edit", ["99", "2", "nonsense"])
async def test_an_edit_that_is_refused_becomes_a_new_message(provider: BotApiProvider, edit: str) -> None:
    courier = await provider.open()
    await deliver(courier, "старое")
    provider.server.people.write(ANNA, "сообщение человека")
    assert await deliver(courier, "новое", edit=edit) == Sent("3")
    assert messages(provider)[0]["text"] == "старое"


@pytest.mark.parametrize("kind", [kind for kind in AttachmentType if kind is not AttachmentType.VOICE])
async def test_an_edit_with_a_file_exchanges_file_caption_and_buttons(
    provider: BotApiProvider, tmp_path: Path, kind: AttachmentType
) -> None:
    courier = await provider.open()
    await deliver(courier, "было", inline=MENU, attachments=files(tmp_path, "photo1.png"))
    new = files(tmp_path, f"{kind}2.bin")
    assert await deliver(courier, "<b>Стало</b>", parse_mode=HTML, edit="1", attachments=new) == Sent("1")
    (shown,) = messages(provider)
    assert (shown["caption"], kinds(provider), "reply_markup" in shown) == ("Стало", [kind], False)
    assert shown["caption_entities"][0]["type"] == "bold"
    file = shown[kind][0] if kind is AttachmentType.PHOTO else shown[kind]
    assert await download(provider, file["file_id"]) == f"{kind}2.bin".encode()
    assert await deliver(courier, "", edit="1", inline=MENU, attachments=new) == Sent("1")
    (shown,) = messages(provider)
    assert ("caption" in shown, "reply_markup" in shown) == (False, True)


async def test_an_edit_adds_a_file_to_a_text_and_cuts_the_caption(provider: BotApiProvider, tmp_path: Path) -> None:
    courier = await provider.open()
    await deliver(courier, "старое")
    photo = files(tmp_path, "photo1.png")
    assert await deliver(courier, "я" * 1025, edit="1", attachments=photo) == Sent("1", not_shown=("text_end",))
    (shown,) = messages(provider)
    assert (shown["caption"], kinds(provider), "text" in shown) == ("я" * 1021 + "...", ["photo"], False)


async def test_an_edit_with_the_file_that_is_there_is_done(provider: BotApiProvider, tmp_path: Path) -> None:
    courier = await provider.open()
    await deliver(courier, "x", attachments=files(tmp_path, "photo1.png"))
    same = [Attachment(AttachmentType.PHOTO, provider_id=messages(provider)[0]["photo"][0]["file_id"])]
    assert await deliver(courier, "x", edit="1", attachments=same) == Sent("1")
    assert len(messages(provider)) == 1


async def test_an_edit_whose_file_is_missing_keeps_the_old_one(provider: BotApiProvider, tmp_path: Path) -> None:
    courier = await provider.open()
    await deliver(courier, "было", attachments=files(tmp_path, "photo1.png"))
    gone = [Attachment(AttachmentType.PHOTO, str(tmp_path / "gone.png"))]
    assert await deliver(courier, "стало", edit="1", attachments=gone) == Sent("1", not_shown=("photo gone.png",))
    assert (messages(provider)[0]["caption"], kinds(provider)) == ("стало", ["photo"])


@pytest.mark.parametrize(
    ("old", "new"), [(["voice1.ogg"], ["photo1.png"]), (["photo1.png", "photo2.png"], ["document1.pdf"])]
)
async def test_an_exchange_that_telegram_refuses_becomes_a_new_message(
    provider: BotApiProvider, tmp_path: Path, old: list[str], new: list[str]
) -> None:
    courier = await provider.open()
    first = await deliver(courier, "старое", attachments=files(tmp_path, *old))
    assert isinstance(first, Sent)
    number = str(len(old) + 1)
    assert await deliver(courier, "x", edit=first.reference, attachments=files(tmp_path, *new)) == Sent(number)
    assert kinds(provider) == [name.partition(".")[0][:-1] for name in (*old, *new)]


async def test_voices_several_files_and_reply_keyboards_need_a_new_message(
    provider: BotApiProvider, tmp_path: Path
) -> None:
    courier = await provider.open()
    await deliver(courier, "старое")
    assert await deliver(courier, "x", edit="1", attachments=files(tmp_path, "voice1.ogg")) == Sent("2")
    photos = files(tmp_path, "photo1.png", "photo2.png")
    assert await deliver(courier, "x", edit="1", attachments=photos) == Sent("3,4")
    assert await deliver(courier, "x", edit="1", reply=(("a",),)) == Sent("5")
    assert provider.state.counter("telegram-bot", "editMessageMedia") == 0


async def test_an_edit_whose_answer_is_lost_is_made_again_and_sends_nothing_new(provider: BotApiProvider) -> None:
    courier = await provider.open()
    await deliver(courier, "старое")
    provider.state.add_rule(Rule("telegram-bot", Fault("stored_then_error"), str(ANNA), "editMessageText", times=1))
    assert isinstance(await deliver(courier, "новое", edit="1"), Deferred)
    assert await deliver(courier, "новое", edit="1") == Sent("1")
    assert [found["text"] for found in messages(provider)] == ["новое"]
