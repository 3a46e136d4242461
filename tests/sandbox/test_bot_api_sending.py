"""The Bot API sandbox: sending texts and files, formatting, keyboards. All calls go through aiogram."""

from io import BytesIO
from typing import Any

import pytest

from sandbox.telegram.state import identities
from tests.sandbox.bot_api_clients import ANNA, BORIS, GROUP, BotApi, bot_api, refusal
from tests.support.whole_aiogram import types

__all__ = ["bot_api"]


async def test_a_text_arrives_with_an_id_of_its_own_in_each_chat(bot_api: BotApi) -> None:
    first = await bot_api.bot.send_message(ANNA, "Моей пары не будет 🙂")
    second = await bot_api.bot.send_message(str(ANNA), "и завтра")
    other = await bot_api.bot.send_message(GROUP, "группе")
    assert (first.message_id, second.message_id, other.message_id) == (1, 2, 1)
    assert (first.text, first.chat.id, first.chat.type) == ("Моей пары не будет 🙂", ANNA, "private")
    assert (other.chat.type, first.from_user and first.from_user.id) == ("supergroup", bot_api.bot.id)
    assert bot_api.texts(ANNA) == ["Моей пары не будет 🙂", "и завтра"]
    assert bot_api.state.inbox("telegram-bot", str(ANNA))[1].reference == "2"


async def test_a_person_is_the_same_as_in_the_telegram_sandbox(bot_api: BotApi) -> None:
    chat = await bot_api.bot.get_chat(ANNA)
    assert ((chat.first_name, chat.last_name), chat.username) == (identities.name_of(ANNA), "user100001")


@pytest.mark.parametrize(
    ("chat", "text", "reason"),
    [
        (ANNA, "", "message text is empty"),
        (ANNA, " \n", "message text is empty"),
        (ANNA, "я" * 4097, "message is too long"),
        (ANNA, "😀" * 2049, "message is too long"),
        ("@nobody", "hello", "chat not found"),
        (2**52, "hello", "chat not found"),
        (0, "hello", "chat"),
    ],
)
async def test_what_telegram_refuses_is_refused(bot_api: BotApi, chat: int | str, text: str, reason: str) -> None:
    assert reason in await refusal(bot_api.bot.send_message(chat, text))
    assert bot_api.state.inbox() == []


async def test_the_limit_of_4096_applies_after_parsing(bot_api: BotApi) -> None:
    sent = await bot_api.bot.send_message(ANNA, "<b>" + "&lt;" * 4096 + "</b>", parse_mode="HTML")
    assert sent.text == "<" * 4096


@pytest.mark.parametrize(
    ("text", "mode", "plain", "kinds"),
    [
        ("<b>a</b> <i>b <u>c</u></i> &amp; d", "HTML", "a b c & d", ["bold", "italic", "underline"]),
        ('<a href="https://example.org/?a=1&amp;b">x</a><pre>y</pre>', "HTML", "xy", ["text_link", "pre"]),
        ("*a* _b_ __c__ ~d~ ||e|| `f_g` \\.", "MarkdownV2", "a b c d e f_g .",
         ["bold", "italic", "underline", "strikethrough", "spoiler", "code"]),
        ("[имя](tg://user?id=1)", "MarkdownV2", "имя", ["text_link"]),
        (r"[a](http://x.y/(b\)?c=1)", "MarkdownV2", "a", ["text_link"]),
        ("*a _\r__\rb__\r_\r*", "MarkdownV2", "a b", ["bold", "underline", "italic"]),
        ("```\na*b_\n```", "MarkdownV2", "\na*b_\n", ["pre"]),
        ("*a* 1.5 - (b)", "Markdown", "a 1.5 - (b)", ["bold"]),
        ("<b>not</b> *parsed*", None, "<b>not</b> *parsed*", []),
    ],
)  # fmt: skip
async def test_a_formatted_text_is_parsed(
    bot_api: BotApi, text: str, mode: str | None, plain: str, kinds: list[str]
) -> None:
    sent = await bot_api.bot.send_message(ANNA, text, parse_mode=mode)
    assert sent.text == plain
    assert [entity.type for entity in sent.entities or []] == kinds


async def test_entities_are_counted_in_utf16_units(bot_api: BotApi) -> None:
    sent = await bot_api.bot.send_message(ANNA, "😀<b>жир</b>", parse_mode="HTML")
    assert [(entity.offset, entity.length) for entity in sent.entities or []] == [(2, 3)]


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("<b>a", "HTML"), ("a</b>", "HTML"), ("<b><i>a</b></i>", "HTML"), ("<blink>a</blink>", "HTML"),
        ("1 < 2", "HTML"), ("*a", "MarkdownV2"), ("a.", "MarkdownV2"), ("[a](b", "MarkdownV2"), ("_a", "Markdown"),
    ],
)  # fmt: skip
async def test_a_malformed_text_is_refused(bot_api: BotApi, text: str, mode: str) -> None:
    assert "can't parse entities" in await refusal(bot_api.bot.send_message(ANNA, text, parse_mode=mode))


# keyboards


def inline(**button: Any) -> types.InlineKeyboardMarkup:
    return types.InlineKeyboardMarkup(inline_keyboard=[[types.InlineKeyboardButton(text="Да", **button)]])


async def test_an_inline_keyboard_belongs_to_its_message(bot_api: BotApi) -> None:
    sent = await bot_api.bot.send_message(ANNA, "?", reply_markup=inline(callback_data="yes"))
    assert sent.reply_markup is not None
    assert sent.reply_markup.inline_keyboard[0][0].callback_data == "yes"
    (shown,) = bot_api.server.people.shown(ANNA)["messages"]
    assert shown["buttons"] == [[{"text": "Да", "data": "yes", "url": ""}]]


@pytest.mark.parametrize("button", [{}, {"callback_data": "я" * 33}, {"callback_data": "a", "url": "https://x.org"}])
async def test_a_wrong_inline_button_is_refused(bot_api: BotApi, button: dict[str, str]) -> None:
    assert await refusal(bot_api.bot.send_message(ANNA, "?", reply_markup=inline(**button)))
    assert bot_api.texts(ANNA) == []


async def test_a_reply_keyboard_stays_until_it_is_replaced_or_removed(bot_api: BotApi) -> None:
    rows = [
        [types.KeyboardButton(text="Группа 1"), types.KeyboardButton(text="Группа 2")],
        [types.KeyboardButton(text="Назад")],
    ]
    await bot_api.bot.send_message(ANNA, "Кому?", reply_markup=types.ReplyKeyboardMarkup(keyboard=rows))
    await bot_api.bot.send_message(ANNA, "Выберите")
    assert bot_api.server.people.keyboard(ANNA) == [["Группа 1", "Группа 2"], ["Назад"]]
    await bot_api.bot.send_message(ANNA, "Готово", reply_markup=types.ReplyKeyboardRemove())
    assert bot_api.server.people.keyboard(ANNA) == []


async def test_a_reply_shows_the_message_that_it_replies_to(bot_api: BotApi) -> None:
    number = bot_api.server.people.write(ANNA, "вопрос")
    sent = await bot_api.bot.send_message(ANNA, "ответ", reply_parameters=types.ReplyParameters(message_id=number))
    assert isinstance(sent.reply_to_message, types.Message)
    assert sent.reply_to_message.text == "вопрос"
    missing = types.ReplyParameters(message_id=99)
    assert "replied not found" in await refusal(bot_api.bot.send_message(ANNA, "x", reply_parameters=missing))
    allowed = types.ReplyParameters(message_id=99, allow_sending_without_reply=True)
    assert (await bot_api.bot.send_message(ANNA, "x", reply_parameters=allowed)).reply_to_message is None


# files


async def test_a_document_is_sent_downloaded_and_sent_again_by_its_id(bot_api: BotApi) -> None:
    content = bytes(range(256)) * 100
    sent = await bot_api.bot.send_document(ANNA, types.BufferedInputFile(content, "отчёт.pdf"), caption="<b>x</b>",
                                           parse_mode="HTML")  # fmt: skip
    assert sent.document is not None
    assert (sent.document.file_name, sent.document.file_size, sent.caption) == ("отчёт.pdf", 25_600, "x")
    file = await bot_api.bot.download(sent.document.file_id)
    assert isinstance(file, BytesIO)
    assert file.read() == content
    again = await bot_api.bot.send_document(BORIS, sent.document.file_id)
    assert again.document is not None
    assert again.document.file_unique_id == sent.document.file_unique_id
    assert bot_api.texts(BORIS) == ["[document] отчёт.pdf"]


async def test_photos_and_voices_are_sent(bot_api: BotApi) -> None:
    photo = await bot_api.bot.send_photo(ANNA, types.BufferedInputFile(b"photo", "a.jpg"), caption="снимок")
    voice = await bot_api.bot.send_voice(ANNA, types.BufferedInputFile(b"voice", "a.ogg"), duration=3)
    linked = await bot_api.bot.send_photo(ANNA, "https://example.org/a.jpg")
    assert photo.photo is not None
    assert voice.voice is not None
    assert linked.photo is not None
    assert (photo.photo[0].file_size, voice.voice.duration) == (5, 3)
    assert bot_api.texts(ANNA) == ["снимок", "[voice] a.ogg", "[photo] a.jpg"]


async def test_a_wrong_file_is_refused(bot_api: BotApi) -> None:
    assert "wrong file identifier" in await refusal(bot_api.bot.send_document(ANNA, "nosuch"))
    assert "non-empty" in await refusal(bot_api.bot.send_document(ANNA, types.BufferedInputFile(b"", "a")))
    assert "too long" in await refusal(
        bot_api.bot.send_document(ANNA, types.BufferedInputFile(b"a", "a"), caption="x" * 1025)
    )
    assert "invalid file_id" in await refusal(bot_api.bot.get_file("nosuch"))
    assert bot_api.texts(ANNA) == []
