"""What people do with the bot, through the sandbox's HTTP API."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from sandbox.sandbox import Sandbox
from tests.sandbox.bot_api_clients import ANNA, session
from tests.sandbox.conftest import WebClient
from tests.support.whole_aiogram import Bot, exceptions, types

KEYBOARD = types.InlineKeyboardMarkup(
    inline_keyboard=[
        [
            types.InlineKeyboardButton(text="Да", callback_data="yes"),
            types.InlineKeyboardButton(text="Сайт", url="http://x.org"),
        ]
    ]
)


@pytest.fixture
async def bot(sandbox: Sandbox) -> AsyncIterator[Bot]:
    """A bot with the token that the sandbox names."""
    assert sandbox.environment["ADA_BOT_API_URL"] == sandbox.bot_api.url
    client = Bot(sandbox.environment["ADA_BOT_TOKEN"], session=session(sandbox.bot_api))
    yield client
    await client.session.close()


async def test_a_person_writes_and_presses_a_button_and_sees_the_edited_message(
    web_client: WebClient, bot: Bot
) -> None:
    person = {"address": ANNA, "text": "/start", "name": "Анна Ким", "language": "en"}
    assert await web_client.call("POST", "write/telegram-bot", person) == (200, {"message": 1})
    await bot.send_message(ANNA, "Отправить?", reply_markup=KEYBOARD)
    press = {"address": ANNA, "message": 2, "button": "Да"}
    status, pressed = await web_client.call("POST", "press/telegram-bot", press)
    first, second = await bot.get_updates()
    assert status == 200
    assert first.message is not None
    assert first.message.from_user is not None
    assert first.message.from_user.full_name == "Анна Ким"
    assert second.callback_query is not None
    assert (second.callback_query.id, second.callback_query.data) == (pressed["query"], "yes")
    await bot.answer_callback_query(pressed["query"], text="принято")
    rows = [[types.KeyboardButton(text="Меню")]]
    await bot.edit_message_text("Отправлено", chat_id=ANNA, message_id=2)
    await bot.send_message(ANNA, "Что ещё?", reply_markup=types.ReplyKeyboardMarkup(keyboard=rows))
    chat = await web_client.get("chat/telegram-bot", address=str(ANNA))
    assert [(one["from"], one["text"], one["buttons"]) for one in chat["messages"]] == [
        ("person", "/start", []),
        ("bot", "Отправлено", []),
        ("bot", "Что ещё?", []),
    ]
    assert chat["keyboard"] == [["Меню"]]
    assert [(one["query"], one["text"]) for one in chat["answers"]] == [(pressed["query"], "принято")]


async def test_a_contact_and_a_block_reach_the_bot(web_client: WebClient, bot: Bot) -> None:
    assert (await web_client.call("POST", "contact/telegram-bot", {"address": ANNA, "phone": "+79991112233"}))[0] == 200
    assert (await web_client.call("POST", "block/telegram-bot", {"address": ANNA}))[0] == 204
    first, second = await bot.get_updates()
    assert first.message is not None
    assert first.message.contact is not None
    assert (first.message.contact.phone_number, second.event_type) == ("79991112233", "my_chat_member")


async def test_an_edit_and_an_inline_query_reach_the_bot_and_its_results_the_person(
    web_client: WebClient, bot: Bot
) -> None:
    await web_client.call("POST", "write/telegram-bot", {"address": ANNA, "text": "draft"})
    edit = {"address": ANNA, "message": 1, "text": "done"}
    assert (await web_client.call("POST", "edit/telegram-bot", edit))[0] == 204
    _, asked = await web_client.call("POST", "inline/telegram-bot", {"address": ANNA, "text": "fish"})
    _, edited, inline = await bot.get_updates()
    assert edited.edited_message is not None
    assert (edited.edited_message.message_id, edited.edited_message.text) == (1, "done")
    assert edited.edited_message.edit_date
    assert inline.inline_query is not None
    assert (inline.inline_query.id, inline.inline_query.query) == (asked["query"], "fish")
    assert await web_client.get("inline/telegram-bot", query=asked["query"]) is None
    content = types.InputTextMessageContent(message_text="<b>salmon</b>", parse_mode="HTML")
    result = types.InlineQueryResultArticle(id="1", title="Fish", input_message_content=content)
    with pytest.raises(exceptions.TelegramBadRequest, match="RESULT_ID_DUPLICATE"):
        await bot.answer_inline_query(asked["query"], [result, result])
    await bot.answer_inline_query(asked["query"], [result])
    (shown,) = (await web_client.get("inline/telegram-bot", query=asked["query"]))["results"]
    assert (shown["title"], shown["text"]) == ("Fish", "salmon")
    with pytest.raises(exceptions.TelegramBadRequest, match="query is too old"):
        await bot.answer_inline_query(asked["query"], [result])


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("edit/telegram-bot", {"address": 5, "message": 99, "text": "x"}, 404),
        ("edit/telegram-bot", {"address": 5, "message": 1, "text": ""}, 422),
        ("inline/telegram-bot", {"text": "x"}, 422),
        ("write/telegram-bot", {"text": "x"}, 422),
        ("write/telegram-bot", {"address": -5, "text": "x"}, 422),
        ("write/telegram-bot", {"address": 2**50, "text": "x"}, 404),
        ("write/telegram-bot", {"address": 5, "text": ""}, 422),
        ("write/telegram-bot", {"address": 5, "text": "x", "chat": 5}, 422),
        ("press/telegram-bot", {"address": 5, "message": 99, "button": "x"}, 404),
        ("press/telegram-bot", {"address": 5, "message": "x", "button": "x"}, 422),
        ("contact/telegram-bot", {"address": 5, "phone": ""}, 422),
        ("block/telegram-bot", {}, 422),
    ],
)
async def test_a_wrong_action_is_a_problem(web_client: WebClient, path: str, body: dict[str, Any], status: int) -> None:
    answer = await web_client.call("POST", path, body)
    assert (answer[0], answer[1]["status"]) == (status, status)


@pytest.mark.parametrize(("query", "status"), [({}, 422), ({"address": "x"}, 422), ({"address": "0"}, 404)])
async def test_the_chat_of_nobody_is_a_problem(web_client: WebClient, query: dict[str, str], status: int) -> None:
    assert (await web_client.call("GET", "chat/telegram-bot", **query))[0] == status


PHOTO = ("room.png", "image/png", b"\x89PNG picture")


async def test_a_person_sends_files_and_replies_with_them(web_client: WebClient, bot: Bot) -> None:
    await bot.send_message(ANNA, "A photo of the room?")
    reply = {"address": ANNA, "text": "Here it is", "reply_to": 1}
    assert await web_client.form("file/telegram-bot", file=PHOTO, **reply) == (200, {"message": 2})
    voice = await web_client.form("file/telegram-bot", address=ANNA, kind="voice", file=("a.ogg", "audio/ogg", b"OggS"))
    plain = await web_client.form("file/telegram-bot", address=ANNA, file=("a.pdf", "application/pdf", b"%PDF" * 10**6))
    photo, sound, paper = (update.message for update in await bot.get_updates())
    assert photo is not None
    assert sound is not None
    assert paper is not None
    assert photo.photo is not None
    assert photo.reply_to_message is not None
    assert (photo.caption, photo.reply_to_message.message_id) == ("Here it is", 1)
    file = await bot.get_file(photo.photo[-1].file_id)
    assert file.file_path is not None
    stored = await bot.download_file(file.file_path)
    assert stored is not None
    assert stored.read() == PHOTO[2]
    assert (voice[0], plain[0], bool(sound.voice)) == (200, 200, True)
    assert paper.document is not None
    assert paper.document.file_name == "a.pdf"


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"address": ANNA}, 422),
        ({"address": ANNA, "file": "no file"}, 422),
        ({"file": PHOTO}, 422),
        ({"address": ANNA, "file": PHOTO, "kind": "sticker"}, 422),
        ({"address": ANNA, "file": PHOTO, "what": "x"}, 422),
        ({"address": ANNA, "file": PHOTO, "reply_to": 99}, 404),
        ({"address": ANNA, "file": ("a.png", "image/png", b"x" * 22 * 2**20)}, 413),
    ],
)
async def test_a_file_that_cannot_be_sent_is_refused(
    web_client: WebClient, fields: dict[str, Any], status: int
) -> None:
    assert (await web_client.form("file/telegram-bot", **fields))[0] == status
