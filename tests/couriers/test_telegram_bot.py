"""The courier of the Bot API, against the sandbox."""

import socket
import traceback
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import ClassVar

import pytest
from aiohttp import ConnectionTimeoutError, web

from couriers.sending import (
    Deferred,
    Reason,
    Scope,
    Sent,
    SetupError,
    Unknown,
)
from couriers.telegram_bot import courier as telegram_bot
from tests.couriers.bot_contract import LOST_ANSWERS, BotContract, BotProvider
from tests.couriers.contract import UNUSUAL_TEXTS, Provider, send_one
from tests.couriers.telegram_bot_provider import (
    GROUP,
    TOKEN,
    BotApiProvider,
    provider,
)
from tests.support.serving import serving_app

__all__ = ["provider"]


class TestTelegramBot(BotContract):
    malformed = ("", "0", "-0", "+79990000001", "ivanov", "@a", "1" * 17, "5; 6", "٣٤")
    refused: ClassVar = {
        "blocked": Reason.BLOCKED,
        "deactivated": Reason.RECIPIENT_UNREACHABLE,
        "cannot_initiate": Reason.PRIVACY,
        "kicked": Reason.BLOCKED,
        "chat_not_found": Reason.RECIPIENT_UNREACHABLE,
        "no_rights": Reason.RECIPIENT_UNREACHABLE,
    }
    longest, scope = 4096, Scope.CHAT
    settings = ("ADA_BOT_TOKEN", "ADA_BOT_API_URL")
    wrong_tokens = ("4343:another", "nonsense", "4343:with space")

    @pytest.mark.parametrize("text", UNUSUAL_TEXTS)
    async def test_unusual_text_is_received_unchanged(self, provider: Provider, text: str) -> None:
        await super().test_unusual_text_is_received_unchanged(provider, text)

    async def test_the_longest_text_is_received_unchanged(self, provider: Provider) -> None:
        await super().test_the_longest_text_is_received_unchanged(provider)

    async def test_what_the_channel_shows_is_sent_and_no_tag_is_seen(self, provider: Provider) -> None:
        await super().test_what_the_channel_shows_is_sent_and_no_tag_is_seen(provider)

    async def test_a_missing_file_is_recorded_and_the_text_is_sent(self, provider: Provider, tmp_path: Path) -> None:
        await super().test_a_missing_file_is_recorded_and_the_text_is_sent(provider, tmp_path)

    @pytest.mark.parametrize(("fault", "copies"), LOST_ANSWERS)
    async def test_a_lost_answer_is_unknown_and_the_request_is_not_repeated(
        self, provider: BotProvider, fault: str, copies: int
    ) -> None:
        await super().test_a_lost_answer_is_unknown_and_the_request_is_not_repeated(provider, fault, copies)

    async def test_a_later_part_that_is_refused_shows_what_arrived(self, provider: BotProvider) -> None:
        await super().test_a_later_part_that_is_refused_shows_what_arrived(provider)


# the message


async def test_a_text_of_more_than_4096_units_is_sent_in_parts_in_order(provider: BotApiProvider) -> None:
    text = "слово 😀 " * 2000
    outcome = await send_one(await provider.open(), provider.address(1), text)
    received = [one.text for one in provider.state.inbox("telegram-bot", provider.address(1))]
    assert "".join(received) == text
    assert max(len(part.encode("utf-16-le")) // 2 for part in received) <= 4096
    assert outcome == Sent(",".join(str(number + 1) for number in range(len(received))))


# the answers


async def test_a_429_defers_the_bot_and_in_a_group_that_chat_for_the_time_named(provider: BotApiProvider) -> None:
    courier = await provider.open()
    for address, scope in [(provider.address(1), Scope.ACCOUNT), (GROUP, Scope.CHAT)]:
        provider.inject_fault("flood_wait", 17)
        outcome = await send_one(courier, address)
        assert outcome == Deferred(Reason.THROTTLED, timedelta(seconds=17), scope, "429")
        assert provider.received(address) == []


async def test_a_connection_that_is_not_made_in_time_is_repeated(provider: BotApiProvider) -> None:
    """Nothing was sent: without a limit of its own this would look like a lost answer."""
    provider.timeout = timedelta(seconds=1.5)
    courier = await provider.open()
    await provider.stop()
    with socket.socket() as full, ExitStack() as waiting:
        full.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        full.bind(("127.0.0.1", provider.port))
        full.listen(0)
        for _ in range(3):  # more than its queue holds
            client = waiting.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(("127.0.0.1", provider.port))
        outcome = await send_one(courier, provider.address(1))
        if isinstance(outcome, Unknown):  # the connection kept from the sign-in was closed
            outcome = await send_one(courier, provider.address(1))
    assert outcome == Deferred(
        Reason.PROVIDER_DOWN, timedelta(seconds=5), Scope.ACCOUNT, ConnectionTimeoutError.__name__
    )


async def test_a_group_that_became_a_supergroup_gets_the_message_there_and_later_ones_at_once(
    provider: BotApiProvider,
) -> None:
    address = provider.magic["migrated"]
    moved = str(-1_000_000_000_000 - int(address))
    assert isinstance(await send_one(await provider.open(), address), Sent)
    assert provider.requests == 2
    restarted = await provider.open()
    assert isinstance(await send_one(restarted, address), Sent)
    assert provider.requests == 3
    assert provider.received(moved) == ["hello"] * 2


async def test_a_file_of_moved_groups_cut_short_by_a_crash_is_read_as_far_as_possible(
    provider: BotApiProvider,
) -> None:
    await send_one(await provider.open(), provider.magic["migrated"])
    with (provider.directory / "migrated-groups").open("a") as file:
        file.write('["5", ')
    await send_one(await provider.open(), provider.magic["migrated"])
    assert provider.requests == 3


# opening


async def test_the_account_is_the_bots_id(provider: BotApiProvider) -> None:
    assert (await provider.open()).account == "4343"


# the token


async def test_an_endless_redirect_does_not_show_the_token(tmp_path: Path) -> None:
    """aiohttp's error for it contains the URL."""

    async def redirect(request: web.Request) -> web.Response:
        return web.Response(status=307, headers={"Location": str(request.url)})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", redirect)
    async with serving_app(app) as url:
        with pytest.raises(SetupError, match="ADA_BOT_API_URL") as error:
            await telegram_bot.open(telegram_bot.Settings(TOKEN, url), tmp_path)
    assert TOKEN not in "".join(traceback.format_exception(error.value))
