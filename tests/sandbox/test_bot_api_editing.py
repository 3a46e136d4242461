"""The Bot API sandbox: editing, deleting, answers to buttons, chats and members. Through aiogram."""

from collections.abc import Awaitable
from typing import Any

import pytest

from sandbox.bot_api import BotApiServer
from sandbox.state import SandboxState
from tests.sandbox.bot_api_clients import ANNA, BORIS, GROUP, BotApi, bot_api, refusal
from tests.support.whole_aiogram import types

__all__ = ["bot_api"]


def keyboard(*texts: str) -> types.InlineKeyboardMarkup:
    return types.InlineKeyboardMarkup(
        inline_keyboard=[[types.InlineKeyboardButton(text=text, callback_data=text)] for text in texts]
    )


async def test_an_edited_message_is_shown_in_its_new_state(bot_api: BotApi) -> None:
    sent = await bot_api.bot.send_message(ANNA, "1 из 2", reply_markup=keyboard("дальше"))
    edited = await bot_api.bot.edit_message_text("2 из 2", chat_id=ANNA, message_id=sent.message_id)
    assert not isinstance(edited, bool)
    assert (edited.message_id, edited.text, edited.reply_markup) == (sent.message_id, "2 из 2", None)
    (shown,) = bot_api.server.people.shown(ANNA)["messages"]
    assert (shown["text"], shown["edited"], shown["buttons"]) == ("2 из 2", True, [])
    assert bot_api.texts(ANNA) == ["1 из 2"]


async def test_a_keyboard_is_edited_alone(bot_api: BotApi) -> None:
    sent = await bot_api.bot.send_message(ANNA, "?", reply_markup=keyboard("да"))
    await bot_api.bot.edit_message_reply_markup(
        chat_id=ANNA, message_id=sent.message_id, reply_markup=keyboard("да", "нет")
    )
    (shown,) = bot_api.server.people.shown(ANNA)["messages"]
    assert (shown["text"], [row[0]["text"] for row in shown["buttons"]]) == ("?", ["да", "нет"])


@pytest.mark.parametrize("markup", [None, keyboard("да")])
async def test_an_edit_that_changes_nothing_is_refused(
    bot_api: BotApi, markup: types.InlineKeyboardMarkup | None
) -> None:
    sent = await bot_api.bot.send_message(ANNA, "?", reply_markup=markup)
    names: dict[str, Any] = {"chat_id": ANNA, "message_id": sent.message_id, "reply_markup": markup}
    assert "message is not modified" in await refusal(bot_api.bot.edit_message_text("?", **names))
    assert "message is not modified" in await refusal(bot_api.bot.edit_message_reply_markup(**names))
    await bot_api.bot.edit_message_text("!", **names)
    assert "message is not modified" in await refusal(bot_api.bot.edit_message_text("!", **names))


async def test_only_text_messages_of_the_bot_can_get_another_text(bot_api: BotApi) -> None:
    photo = await bot_api.bot.send_photo(ANNA, types.BufferedInputFile(b"x", "a.jpg"), caption="old")
    theirs = bot_api.server.people.write(ANNA, "mine")

    def edit(message: int) -> Awaitable[object]:
        return bot_api.bot.edit_message_text("x", chat_id=ANNA, message_id=message)

    assert "no text in the message" in await refusal(edit(photo.message_id))
    assert "can't be edited" in await refusal(edit(theirs))
    assert "message to edit not found" in await refusal(edit(99))
    await bot_api.bot.edit_message_caption(chat_id=ANNA, message_id=photo.message_id, caption="new")
    assert bot_api.server.people.messages(ANNA)[0]["caption"] == "new"


async def test_the_file_of_a_message_is_exchanged_as_telegram_does_it(bot_api: BotApi) -> None:
    bot, photo = bot_api.bot, types.BufferedInputFile(b"x", "a.jpg")
    album = (
        await bot.send_media_group(ANNA, [types.InputMediaPhoto(media=photo), types.InputMediaPhoto(media=photo)])
    )[0]
    voice = await bot.send_voice(ANNA, types.BufferedInputFile(b"x", "a.ogg"))
    text = await bot.send_message(ANNA, "old")

    def edit(message: int, media: types.InputMediaUnion) -> Awaitable[object]:
        return bot.edit_message_media(media, chat_id=ANNA, message_id=message)

    document, animation = types.InputMediaDocument(media=photo), types.InputMediaAnimation(media=photo)
    assert "can't change media type in the album" in await refusal(edit(album.message_id, document))
    assert "content type can't be used in an album" in await refusal(edit(album.message_id, animation))
    assert "no media in the message to edit" in await refusal(edit(voice.message_id, document))
    assert "there is no" in await refusal(edit(text.message_id, types.InputMediaDocument(media="")))
    assert "message to edit not found" in await refusal(edit(99, document))
    await edit(text.message_id, types.InputMediaDocument(media=photo, caption="new"))
    shown = bot_api.server.people.messages(ANNA)[-1]
    assert (shown["caption"], shown["document"]["file_name"], "text" in shown) == ("new", "a.jpg", False)
    same = types.InputMediaDocument(media=shown["document"]["file_id"], caption="new")
    assert "message is not modified" in await refusal(edit(text.message_id, same))


async def test_a_deleted_message_is_gone(bot_api: BotApi) -> None:
    sent = await bot_api.bot.send_message(ANNA, "x")
    assert await bot_api.bot.delete_message(ANNA, sent.message_id)
    assert bot_api.server.people.messages(ANNA) == []
    assert "message to delete not found" in await refusal(bot_api.bot.delete_message(ANNA, sent.message_id))


# answers to buttons


async def test_a_query_is_answered_once(bot_api: BotApi) -> None:
    sent = await bot_api.bot.send_message(ANNA, "?", reply_markup=keyboard("да"))
    query = bot_api.server.people.press(ANNA, sent.message_id, "да")
    assert bot_api.server.people.answer(query) is None
    assert await bot_api.bot.answer_callback_query(query, text="хорошо")
    assert bot_api.server.people.answer(query) == {"text": "хорошо", "alert": False, "url": ""}
    for unknown in (query, "5"):
        assert "query is too old" in await refusal(bot_api.bot.answer_callback_query(unknown))


async def test_a_query_cannot_be_answered_after_its_lifetime() -> None:
    server = BotApiServer(SandboxState(), query_lifetime=0)
    await server.start()
    opened = BotApi(SandboxState(), server, None)  # type: ignore[arg-type]  # the client needs the started server
    bot = opened.client()
    sent = await bot.send_message(ANNA, "?", reply_markup=keyboard("да"))
    query = server.people.press(ANNA, sent.message_id, "да")
    assert "query is too old" in await refusal(bot.answer_callback_query(query))
    await bot.session.close()
    await server.stop()


# the bot, chats and members


async def test_the_bots_commands_are_kept_by_language(bot_api: BotApi) -> None:
    await bot_api.bot.set_my_commands([types.BotCommand(command="start", description="Начать")], language_code="ru")
    assert [one.description for one in await bot_api.bot.get_my_commands(language_code="ru")] == ["Начать"]
    assert await bot_api.bot.get_my_commands() == []
    await bot_api.bot.delete_my_commands(language_code="ru")
    assert await bot_api.bot.get_my_commands(language_code="ru") == []


async def test_members_are_restricted_removed_and_admitted_again(bot_api: BotApi) -> None:
    bot = bot_api.bot

    async def status(user: int) -> str:
        return str((await bot.get_chat_member(GROUP, user)).status)

    assert (await status(ANNA), await status(bot.id)) == ("member", "administrator")
    await bot.restrict_chat_member(GROUP, ANNA, types.ChatPermissions(can_send_messages=False))
    member = await bot.get_chat_member(GROUP, ANNA)
    assert isinstance(member, types.ChatMemberRestricted)
    assert not member.can_send_messages
    await bot.ban_chat_member(GROUP, ANNA)
    assert (await status(ANNA), await status(BORIS)) == ("kicked", "member")
    await bot.unban_chat_member(GROUP, ANNA)
    assert await status(ANNA) == "left"
    assert "user not found" in await refusal(bot.get_chat_member(GROUP, -1))
    assert "supergroup" in await refusal(bot.ban_chat_member(ANNA, BORIS))


async def test_each_invite_link_is_new(bot_api: BotApi) -> None:
    links = [await bot_api.bot.create_chat_invite_link(GROUP, name="осень", member_limit=5) for _ in range(2)]
    assert links[0].invite_link != links[1].invite_link
    assert (links[0].name, links[0].member_limit) == ("осень", 5)


async def test_the_bot_describes_itself(bot_api: BotApi) -> None:
    me = await bot_api.bot.get_me()
    assert (me.id, me.is_bot, me.username) == (4343, True, "sandbox4343_bot")
