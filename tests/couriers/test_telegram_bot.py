"""The courier of the Bot API, against the sandbox."""

import logging
import socket
import traceback
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import pytest
from aiohttp import ConnectionTimeoutError, web

from core.courier import (
    Deferred,
    Halted,
    Partly,
    Reason,
    Rejected,
    Scope,
    Sent,
    SetupError,
    Unknown,
)
from couriers import telegram_bot
from sandbox.state import Fault, Rule
from tests.couriers.contract import UNUSUAL_TEXTS, OutageContract, Provider
from tests.couriers.telegram_bot_provider import (
    GROUP,
    MAGIC_ADDRESSES,
    TOKEN,
    BotApiProvider,
    provider,
    send_one,
)

__all__ = ["provider"]


class TestTelegramBot(OutageContract):
    @pytest.mark.row("D-25")
    @pytest.mark.parametrize("text", UNUSUAL_TEXTS)
    async def test_unusual_text_is_received_unchanged(self, provider: Provider, text: str) -> None:
        await super().test_unusual_text_is_received_unchanged(provider, text)

    @pytest.mark.row("D-25", "D-26")
    async def test_the_longest_text_is_received_unchanged(self, provider: Provider) -> None:
        await super().test_the_longest_text_is_received_unchanged(provider)

    @pytest.mark.row("C-40", "C-41", "C-91")
    async def test_what_the_channel_shows_is_sent_and_no_tag_is_seen(self, provider: Provider) -> None:
        await super().test_what_the_channel_shows_is_sent_and_no_tag_is_seen(provider)

    @pytest.mark.row("C-44", "C-91")
    async def test_a_missing_file_is_recorded_and_the_text_is_sent(self, provider: Provider, tmp_path: Path) -> None:
        await super().test_a_missing_file_is_recorded_and_the_text_is_sent(provider, tmp_path)


# the message


@pytest.mark.row("D-26")
async def test_a_text_of_more_than_4096_units_is_sent_in_parts_in_order(provider: BotApiProvider) -> None:
    text = "слово 😀 " * 2000
    outcome = await send_one(await provider.open(), provider.address(1), text)
    received = [one.text for one in provider.state.inbox("telegram-bot", provider.address(1))]
    assert "".join(received) == text
    assert max(len(part.encode("utf-16-le")) // 2 for part in received) <= 4096
    assert outcome == Sent(",".join(str(number + 1) for number in range(len(received))))


@pytest.mark.parametrize("address", ["", "0", "-0", "+79990000001", "ivanov", "@a", "1" * 17, "5; 6", "٣٤"])
async def test_what_is_no_address_is_refused_without_a_request(provider: BotApiProvider, address: str) -> None:
    outcome = await send_one(await provider.open(), address)
    assert isinstance(outcome, Rejected)
    assert outcome.reason == Reason.RECIPIENT_UNREACHABLE
    assert provider.requests == 0


# the answers


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("blocked", Reason.BLOCKED),
        ("deactivated", Reason.RECIPIENT_UNREACHABLE),
        ("cannot_initiate", Reason.PRIVACY),
        ("kicked", Reason.BLOCKED),
        ("chat_not_found", Reason.RECIPIENT_UNREACHABLE),
        ("no_rights", Reason.RECIPIENT_UNREACHABLE),
    ],
)
async def test_a_refused_recipient_is_final_and_the_others_get_the_message(
    provider: BotApiProvider, fault: str, reason: Reason
) -> None:
    courier = await provider.open()
    outcome = await send_one(courier, MAGIC_ADDRESSES[fault])
    assert isinstance(outcome, Rejected)
    assert outcome.reason == reason
    assert isinstance(await send_one(courier, provider.address(1)), Sent)


@pytest.mark.row("D-22")
async def test_a_429_defers_the_bot_and_in_a_group_that_chat_for_the_time_named(provider: BotApiProvider) -> None:
    courier = await provider.open()
    for address, scope in [(provider.address(1), Scope.ACCOUNT), (GROUP, Scope.CHAT)]:
        provider.inject_fault("flood_wait", 17)
        outcome = await send_one(courier, address)
        assert outcome == Deferred(Reason.THROTTLED, timedelta(seconds=17), scope, "429")
        assert provider.received(address) == []


@pytest.mark.row("D-38")
@pytest.mark.parametrize(
    ("fault", "copies"),
    [
        ("server_error", 0),
        ("bad_gateway", 0),
        ("not_json", 0),
        ("stored_then_error", 1),
        ("stored_then_bad_gateway", 1),
        ("stored_then_not_json", 1),
        ("timeout", 0),
        ("stored_then_silence", 1),
        ("disconnect_before", 0),
        ("disconnect_after", 1),
    ],
)
async def test_a_lost_answer_is_unknown_and_the_request_is_not_repeated(
    provider: BotApiProvider, fault: str, copies: int
) -> None:
    provider.timeout = timedelta(seconds=1) if fault in ("timeout", "stored_then_silence") else provider.timeout
    courier = await provider.open()
    assert isinstance(await send_one(courier, MAGIC_ADDRESSES[fault]), Unknown)
    assert provider.requests == 1
    assert len(provider.received(MAGIC_ADDRESSES[fault])) == copies


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
    address = MAGIC_ADDRESSES["migrated"]
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
    await send_one(await provider.open(), MAGIC_ADDRESSES["migrated"])
    with (provider.directory / "migrated-groups").open("a") as file:
        file.write('["5", ')
    await send_one(await provider.open(), MAGIC_ADDRESSES["migrated"])
    assert provider.requests == 3


async def test_a_revoked_token_halts_the_courier(provider: BotApiProvider) -> None:
    outcome = await send_one(await provider.open(), MAGIC_ADDRESSES["unauthorized"])
    assert isinstance(outcome, Halted)
    assert "ADA_BOT_TOKEN" in outcome.detail


@pytest.mark.row("D-26")
async def test_a_later_part_that_is_refused_shows_what_arrived(provider: BotApiProvider) -> None:
    courier = await provider.open()
    text = "x" * 4096 + "y"
    provider.state.add_rule(Rule("telegram-bot", Fault("rate_limit", 1), provider.address(1), "sendMessage", times=2))
    outcome = await send_one(courier, provider.address(1), text)
    wait = Deferred(Reason.THROTTLED, timedelta(seconds=1), Scope.CHAT, "429")
    assert outcome == Partly(wait, "1")


# opening


@pytest.mark.parametrize("token", ["4343:another", "nonsense", "4343:with space"])
async def test_a_refused_token_is_a_setup_error_that_does_not_show_it(provider: BotApiProvider, token: str) -> None:
    provider.token = token
    with pytest.raises(SetupError, match="ADA_BOT_TOKEN") as error:
        await provider.open()
    assert token not in "".join(traceback.format_exception(error.value))


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "nonsense", "http://[/", "ftp://host"])
async def test_a_wrong_url_is_a_setup_error_that_does_not_show_the_token(url: str, tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="ADA_BOT_API_URL") as error:
        await telegram_bot.open(telegram_bot.Settings(TOKEN, url), tmp_path)
    assert TOKEN not in "".join(traceback.format_exception(error.value))


async def test_the_account_is_the_bots_id(provider: BotApiProvider) -> None:
    assert (await provider.open()).account == "4343"


# the token


def test_printed_settings_do_not_show_the_token() -> None:
    assert TOKEN not in repr(telegram_bot.Settings(TOKEN))


async def test_the_token_is_in_no_log_line_and_no_outcome(
    provider: BotApiProvider, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    provider.timeout = timedelta(seconds=1)
    courier = await provider.open()
    shown = [str(await send_one(courier, address)) for address in MAGIC_ADDRESSES.values()]
    await provider.stop()
    shown.append(str(await send_one(courier, provider.address(1))))
    shown += [record.getMessage() + str(record.exc_info) for record in caplog.records]
    assert [line for line in shown if TOKEN in line or "a-secret-token" in line] == []


async def test_an_endless_redirect_does_not_show_the_token(tmp_path: Path) -> None:
    """aiohttp's error for it contains the URL."""

    async def redirect(request: web.Request) -> web.Response:
        return web.Response(status=307, headers={"Location": str(request.url)})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", redirect)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    with pytest.raises(SetupError, match="ADA_BOT_API_URL") as error:
        await telegram_bot.open(telegram_bot.Settings(TOKEN, url), tmp_path)
    assert TOKEN not in "".join(traceback.format_exception(error.value))
    await runner.cleanup()
