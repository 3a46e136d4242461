"""The Bot API sandbox: what people do becomes updates, by long polling or by webhook. Through aiogram."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from tests.sandbox.bot_api_clients import ANNA, BORIS, GROUP, BotApi, bot_api, refusal
from tests.support.serving import serving_app
from tests.support.waiting import until
from tests.support.whole_aiogram import Bot, Dispatcher, SimpleRequestHandler, types

__all__ = ["bot_api"]

KEYBOARD = types.InlineKeyboardMarkup(inline_keyboard=[[types.InlineKeyboardButton(text="Да", callback_data="yes")]])


# long polling


async def test_a_message_is_an_update_until_its_offset_is_confirmed(bot_api: BotApi) -> None:
    bot_api.server.people.write(ANNA, "/start 5")
    bot_api.server.people.write(BORIS, "привет")
    first = await bot_api.bot.get_updates()
    assert first == await bot_api.bot.get_updates()
    assert [one.message and one.message.text for one in first] == ["/start 5", "привет"]
    assert first[1].update_id == first[0].update_id + 1
    assert first[0].message is not None
    assert [(one.type, one.length) for one in first[0].message.entities or []] == [("bot_command", 6)]
    second = await bot_api.bot.get_updates(offset=first[1].update_id)
    assert second == first[1:]
    assert await bot_api.bot.get_updates(offset=first[1].update_id + 1) == []
    assert await bot_api.bot.get_updates() == []


async def test_limit_and_negative_offsets_select_updates(bot_api: BotApi) -> None:
    for number in range(5):
        bot_api.server.people.write(ANNA, str(number))
    assert len(await bot_api.bot.get_updates(limit=2)) == 2
    last = await bot_api.bot.get_updates(offset=-1)
    assert [one.message and one.message.text for one in last] == ["4"]
    assert len(await bot_api.bot.get_updates()) == 1


async def test_a_long_poll_waits_for_the_next_update_or_its_timeout(bot_api: BotApi) -> None:
    began = time.monotonic()
    assert await bot_api.bot.get_updates(timeout=1) == []
    assert time.monotonic() - began > 0.9
    polling = asyncio.create_task(bot_api.bot.get_updates(timeout=20))
    await until(lambda: bot_api.state.counter("telegram-bot", "getUpdates") == 2)
    bot_api.server.people.write(ANNA, "сейчас")
    assert len(await asyncio.wait_for(polling, 15)) == 1


async def test_a_second_poller_ends_the_first_one_with_409(bot_api: BotApi) -> None:
    other = bot_api.client()
    first = asyncio.create_task(refusal(bot_api.bot.get_updates(timeout=20)))
    await until(lambda: bot_api.state.counter("telegram-bot", "getUpdates") == 1)
    second = asyncio.create_task(other.get_updates(timeout=20))
    assert "terminated by other getUpdates request" in await asyncio.wait_for(first, 15)
    bot_api.server.people.write(ANNA, "x")
    assert len(await asyncio.wait_for(second, 15)) == 1
    await other.session.close()


async def test_a_poller_that_disconnected_is_no_conflict(bot_api: BotApi) -> None:
    other = bot_api.client()
    gone = asyncio.create_task(other.get_updates(timeout=20))
    await until(lambda: bot_api.state.counter("telegram-bot", "getUpdates") == 1)
    gone.cancel()
    await other.session.close()
    assert await bot_api.bot.get_updates(timeout=1) == []


async def test_allowed_updates_apply_until_they_are_changed(bot_api: BotApi) -> None:
    await bot_api.bot.get_updates(allowed_updates=["callback_query"])
    bot_api.server.people.write(ANNA, "not wanted")
    sent = await bot_api.bot.send_message(ANNA, "?", reply_markup=KEYBOARD)
    bot_api.server.people.press(ANNA, sent.message_id, "yes")
    assert [one.event_type for one in await bot_api.bot.get_updates()] == ["callback_query"]
    await bot_api.bot.get_updates(allowed_updates=[])
    bot_api.server.people.write(ANNA, "wanted")
    assert [one.event_type for one in await bot_api.bot.get_updates()] == ["callback_query", "message"]


async def test_an_unmodified_dispatcher_answers_a_message_and_a_button(bot_api: BotApi) -> None:
    dispatcher = Dispatcher()

    @dispatcher.message()
    async def answer(message: types.Message) -> None:
        await message.answer(f"Вы написали: {message.text}", reply_markup=KEYBOARD)

    @dispatcher.callback_query()
    async def pressed(query: types.CallbackQuery) -> None:
        await query.answer("принято", show_alert=True)
        assert isinstance(query.message, types.Message)
        await query.message.edit_text("Готово")

    bot = bot_api.client()
    polling = asyncio.create_task(dispatcher.start_polling(bot, handle_signals=False, polling_timeout=5))
    people = bot_api.server.people
    people.write(ANNA, "привет")
    await until(lambda: bot_api.texts(ANNA) == ["Вы написали: привет"])
    query = people.press(ANNA, 2, "Да")
    await until(lambda: people.messages(ANNA)[-1]["text"] == "Готово")
    assert people.answer(query) == {"text": "принято", "alert": True, "url": ""}
    assert people.shown(ANNA)["messages"][-1]["buttons"] == []
    await dispatcher.stop_polling()
    await polling


# what people do


async def test_a_person_has_the_name_username_and_language_that_were_set(bot_api: BotApi) -> None:
    bot_api.server.people.set_person(ANNA, name="Анна Ким", username="annakim", language="en")
    bot_api.server.people.write(ANNA, "hi")
    (update,) = await bot_api.bot.get_updates()
    assert update.message is not None
    user = update.message.from_user
    assert user is not None
    assert (user.full_name, user.username, user.language_code) == ("Анна Ким", "annakim", "en")


async def test_a_shared_contact_is_the_persons_own(bot_api: BotApi) -> None:
    bot_api.server.people.share_contact(ANNA)
    (update,) = await bot_api.bot.get_updates()
    assert update.message is not None
    contact = update.message.contact
    assert contact is not None
    assert (contact.phone_number, contact.user_id) == ("79990100001", ANNA)


async def test_a_person_writes_in_a_group(bot_api: BotApi) -> None:
    bot_api.server.people.write(ANNA, "/help", GROUP)
    (update,) = await bot_api.bot.get_updates()
    assert update.message is not None
    assert (update.message.chat.id, update.message.chat.type) == (GROUP, "supergroup")


async def test_a_person_who_blocks_the_bot_is_reported_and_no_longer_reached(bot_api: BotApi) -> None:
    bot_api.server.people.block(ANNA)
    (update,) = await bot_api.bot.get_updates()
    assert update.my_chat_member is not None
    assert update.my_chat_member.new_chat_member.status == "kicked"
    assert "blocked by the user" in await refusal(bot_api.bot.send_message(ANNA, "x"))
    bot_api.server.people.write(ANNA, "/start")
    assert (await bot_api.bot.send_message(ANNA, "x")).message_id


async def test_a_button_that_does_not_exist_cannot_be_pressed(bot_api: BotApi) -> None:
    sent = await bot_api.bot.send_message(ANNA, "?", reply_markup=KEYBOARD)
    for message, button in [(99, "yes"), (sent.message_id, "no")]:
        with pytest.raises(LookupError):
            bot_api.server.people.press(ANNA, message, button)
    for nobody in (0, -5, 2**60):
        with pytest.raises(LookupError):
            bot_api.server.people.write(nobody, "x")


# webhook


class WebhookServer:
    """A server with aiogram's own webhook handler. `failures`: how many requests it refuses first."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.refused = self.failures = 0
        self.url = ""

    def dispatcher(self) -> Dispatcher:
        dispatcher = Dispatcher()

        @dispatcher.message()
        async def keep(message: types.Message) -> None:
            self.texts.append(message.text or "")

        return dispatcher

    @web.middleware
    async def refuse(self, request: web.Request, handler: object) -> web.StreamResponse:
        if self.failures:
            self.failures, self.refused = self.failures - 1, self.refused + 1
            return web.Response(status=500)
        response: web.StreamResponse = await handler(request)  # type: ignore[operator]
        return response


@pytest.fixture
async def hook(bot_api: BotApi) -> AsyncIterator[WebhookServer]:
    server = WebhookServer()
    app = web.Application(middlewares=[server.refuse])
    handler = SimpleRequestHandler(server.dispatcher(), bot_api.bot, handle_in_background=False, secret_token="s-1")
    handler.register(app, "/hook")
    async with serving_app(app) as url:
        server.url = f"{url}/hook"
        yield server


async def test_updates_are_posted_to_the_webhook_with_its_secret_in_order(bot_api: BotApi, hook: WebhookServer) -> None:
    bot_api.server.people.write(ANNA, "0")
    assert await bot_api.bot.set_webhook(hook.url, secret_token="s-1")
    for number in range(1, 5):
        bot_api.server.people.write(ANNA, str(number))
    await until(lambda: hook.texts == ["0", "1", "2", "3", "4"])
    info = await bot_api.bot.get_webhook_info()
    await until(lambda: _has_no_pending(bot_api.bot))
    assert info.url == hook.url
    assert "webhook is active" in await refusal(bot_api.bot.get_updates())


async def _has_no_pending(bot: Bot) -> bool:
    return (await bot.get_webhook_info()).pending_update_count == 0


async def test_a_refused_update_is_posted_again_until_it_is_accepted(bot_api: BotApi, hook: WebhookServer) -> None:
    hook.failures = 2
    await bot_api.bot.set_webhook(hook.url, secret_token="s-1")
    bot_api.server.people.write(ANNA, "once")
    await until(lambda: hook.texts == ["once"])
    assert hook.refused == 2
    assert "500" in ((await bot_api.bot.get_webhook_info()).last_error_message or "")


async def test_a_webhook_without_the_right_secret_gets_nothing_until_it_is_deleted(
    bot_api: BotApi, hook: WebhookServer
) -> None:
    await bot_api.bot.set_webhook(hook.url, secret_token="wrong")
    bot_api.server.people.write(ANNA, "kept")
    await until(lambda: _has_failed(bot_api.bot))
    assert hook.texts == []
    assert await bot_api.bot.delete_webhook()
    assert len(await bot_api.bot.get_updates()) == 1
    await bot_api.bot.delete_webhook(drop_pending_updates=True)
    assert await bot_api.bot.get_updates() == []


async def _has_failed(bot: Bot) -> bool:
    return "401" in ((await bot.get_webhook_info()).last_error_message or "")


@pytest.mark.parametrize(
    ("url", "secret"), [("nonsense", ""), ("ftp://127.0.0.1/x", ""), ("http://[", ""), ("http://127.0.0.1/x", "ö")]
)
async def test_a_wrong_webhook_is_refused(bot_api: BotApi, url: str, secret: str) -> None:
    assert await refusal(bot_api.bot.set_webhook(url, secret_token=secret or None))
    assert (await bot_api.bot.get_webhook_info()).url == ""


async def test_a_webhook_ends_the_poll_that_waits(bot_api: BotApi, hook: WebhookServer) -> None:
    polling = asyncio.create_task(refusal(bot_api.bot.get_updates(timeout=20)))
    await until(lambda: bot_api.state.counter("telegram-bot", "getUpdates") == 1)
    await bot_api.bot.set_webhook(hook.url, secret_token="s-1")
    assert "webhook is active" in await asyncio.wait_for(polling, 15)
