"""The Bot API sandbox: every fault, and calls that are not of aiogram."""

import asyncio
from typing import Any

import pytest
from aiohttp import ClientSession, FormData
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sandbox.faults import FAULTS
from sandbox.magic_recipients import MAGIC_RECIPIENTS
from tests.sandbox.bot_api_clients import ANNA, BORIS, BotApi, bot_api
from tests.support.whole_aiogram import exceptions

__all__ = ["bot_api"]

MAGIC_ADDRESSES = {fault.name: address for address, fault in MAGIC_RECIPIENTS["telegram-bot"].items()}
ERRORS: list[tuple[str, type[Exception], str, int]] = [
    ("flood_wait", exceptions.TelegramRetryAfter, "retry after 2", 0),
    ("blocked", exceptions.TelegramForbiddenError, "bot was blocked by the user", 0),
    ("deactivated", exceptions.TelegramForbiddenError, "user is deactivated", 0),
    ("cannot_initiate", exceptions.TelegramForbiddenError, "can't initiate conversation", 0),
    ("kicked", exceptions.TelegramForbiddenError, "was kicked", 0),
    ("chat_not_found", exceptions.TelegramBadRequest, "chat not found", 0),
    ("no_rights", exceptions.TelegramBadRequest, "not enough rights", 0),
    ("migrated", exceptions.TelegramMigrateToChat, "upgraded to a supergroup", 0),
    ("unauthorized", exceptions.TelegramUnauthorizedError, "Unauthorized", 0),
    ("server_error", exceptions.TelegramServerError, "Internal Server Error", 0),
    ("bad_gateway", exceptions.ClientDecodeError, "502 Bad Gateway", 0),
    ("not_json", exceptions.ClientDecodeError, "Technical works", 0),
    ("stored_then_error", exceptions.TelegramServerError, "Internal Server Error", 1),
    ("stored_then_bad_gateway", exceptions.ClientDecodeError, "502 Bad Gateway", 1),
    ("stored_then_not_json", exceptions.ClientDecodeError, "Technical works", 1),
    ("timeout", exceptions.TelegramNetworkError, "timeout", 0),
    ("stored_then_silence", exceptions.TelegramNetworkError, "timeout", 1),
    ("disconnect_before", exceptions.TelegramNetworkError, "Disconnected", 0),
    ("disconnect_after", exceptions.TelegramNetworkError, "Disconnected", 1),
]


@pytest.mark.parametrize(("fault", "error", "text", "copies"), ERRORS)
async def test_a_magic_recipient_always_meets_with_its_fault(
    bot_api: BotApi, fault: str, error: type[Exception], text: str, copies: int
) -> None:
    address = MAGIC_ADDRESSES[fault]
    for number in (1, 2):
        with pytest.raises(error, match=text):
            await bot_api.bot.send_message(address, "hello", request_timeout=2)
        assert len(bot_api.texts(int(address))) == number * copies
    assert (await bot_api.bot.send_message(ANNA, "hello")).message_id


def test_every_fault_has_a_magic_recipient_and_a_test() -> None:
    assert set(MAGIC_ADDRESSES) == set(FAULTS["telegram-bot"])
    assert {fault for fault, *_ in ERRORS} == set(FAULTS["telegram-bot"]) - {"rate_limit"}


async def test_a_migrated_group_names_its_new_id(bot_api: BotApi) -> None:
    with pytest.raises(exceptions.TelegramMigrateToChat) as error:
        await bot_api.bot.send_message(MAGIC_ADDRESSES["migrated"], "hello")
    assert error.value.migrate_to_chat_id == -1_000_000_000_000 - int(MAGIC_ADDRESSES["migrated"])
    assert (await bot_api.bot.send_message(error.value.migrate_to_chat_id, "hello")).message_id


async def test_calls_above_a_rate_are_refused_for_a_second(bot_api: BotApi) -> None:
    for _ in range(30):
        bot_api.inject_fault("rate_limit", 20, method="sendMessage")
    results = await asyncio.gather(*(bot_api.bot.send_message(ANNA, "x") for _ in range(30)), return_exceptions=True)
    refused = [one for one in results if isinstance(one, exceptions.TelegramRetryAfter)]
    assert (len(refused), len(bot_api.texts(ANNA)), refused[0].retry_after) == (10, 20, 1)


async def test_a_rule_applies_to_its_method_and_recipient_only(bot_api: BotApi) -> None:
    bot_api.inject_fault("blocked", address=str(ANNA), method="sendMessage")
    assert (await bot_api.bot.send_message(BORIS, "x")).message_id
    assert await bot_api.bot.send_chat_action(ANNA, "typing")
    with pytest.raises(exceptions.TelegramForbiddenError):
        await bot_api.bot.send_message(ANNA, "x")
    assert (await bot_api.bot.send_message(ANNA, "x")).message_id


async def test_another_token_is_refused(bot_api: BotApi) -> None:
    bot = bot_api.client("4343:another")
    with pytest.raises(exceptions.TelegramUnauthorizedError):
        await bot.get_me()
    await bot.session.close()


# calls that are not of aiogram


async def call(bot_api: BotApi, method: str, **request: Any) -> tuple[int, Any]:
    url = f"{bot_api.server.url}/bot{bot_api.server.token}/{method}"
    async with ClientSession() as session, session.post(url, **request) as response:
        return response.status, await response.json()


async def test_parameters_may_be_json_a_form_or_a_query(bot_api: BotApi) -> None:
    values = {"chat_id": str(ANNA), "text": "x"}
    for request in ({"json": {"chat_id": ANNA, "text": "x"}}, {"data": values}, {"params": values}):
        assert (await call(bot_api, "SENDMESSAGE", **request))[0] == 200
    assert bot_api.texts(ANNA) == ["x"] * 3


@pytest.mark.parametrize(
    ("method", "request_body", "status"),
    [
        ("nosuch", {}, 404),
        ("sendMessage", {"data": b"[]", "headers": {"Content-Type": "application/json"}}, 400),
        ("sendMessage", {"data": b"{", "headers": {"Content-Type": "application/json"}}, 400),
        ("sendMessage", {"json": {"chat_id": ANNA, "text": "x", "reply_markup": "{"}}, 400),
        ("sendMessage", {"json": {"chat_id": ANNA, "text": "x", "reply_parameters": [1]}}, 400),
        ("getUpdates", {"json": {"offset": "x"}}, 400),
        ("getUpdates", {"json": {"allowed_updates": 5}}, 400),
        ("sendPhoto", {"data": FormData({"chat_id": str(ANNA)})}, 400),
    ],
)
async def test_a_malformed_call_is_an_error_of_the_api(
    bot_api: BotApi, method: str, request_body: dict[str, Any], status: int
) -> None:
    answer = await call(bot_api, method, **request_body)
    assert (answer[0], answer[1]["ok"], answer[1]["error_code"]) == (status, False, status)


names = st.sampled_from(
    ["chat_id", "text", "parse_mode", "reply_markup", "message_id", "reply_parameters", "entities", "user_id",
     "commands", "permissions", "url", "offset", "limit", "photo", "callback_query_id", "allowed_updates"]
)  # fmt: skip
values = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(max_size=8), st.just(ANNA), st.lists(st.integers(), max_size=2),
    st.dictionaries(st.sampled_from(["inline_keyboard", "keyboard", "message_id", "text"]), st.none() | st.integers()),
    st.just({"inline_keyboard": [[{"text": "a", "callback_data": 5}]]}),
)  # fmt: skip
METHODS = ["sendMessage", "sendPhoto", "editMessageText", "editMessageReplyMarkup", "deleteMessage", "getChatMember",
           "restrictChatMember", "setMyCommands", "setWebhook", "getUpdates", "getFile", "getChat"]  # fmt: skip


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(method=st.sampled_from(METHODS), body=st.dictionaries(names, values, max_size=5))
async def test_no_call_makes_the_sandbox_fail(bot_api: BotApi, method: str, body: dict[str, Any]) -> None:
    assert (await call(bot_api, method, json=body))[0] < 500
