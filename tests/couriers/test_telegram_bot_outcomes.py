"""The table of the Bot API's answers."""

from datetime import timedelta
from typing import Any

import pytest
from aiogram.exceptions import (
    ClientDecodeError,
    RestartingTelegram,
    TelegramAPIError,
    TelegramBadRequest,
    TelegramConflictError,
    TelegramEntityTooLarge,
    TelegramForbiddenError,
    TelegramNetworkError,
    TelegramNotFound,
    TelegramRetryAfter,
    TelegramServerError,
    TelegramUnauthorizedError,
)
from aiogram.methods import SendMessage
from aiohttp import ClientConnectionError, ClientConnectorError, ConnectionTimeoutError, ServerDisconnectedError
from aiohttp.client_reqrep import ConnectionKey

from core.courier import Deferred, Halted, Reason, Rejected, Scope, Unknown
from couriers.telegram_bot import outcomes
from providers.telegram_bot.errors import TOKEN_REFUSED

METHOD = SendMessage(chat_id=1, text="x")
KEY = ConnectionKey("host", 1, False, True, None, None, None)


def network_error(cause: Exception) -> TelegramNetworkError:
    error = TelegramNetworkError(METHOD, "a text with the URL")
    error.__cause__ = cause
    return error


@pytest.mark.row("D-22")
@pytest.mark.parametrize(
    ("chat", "is_first_part", "scope"),
    [("5", True, Scope.ACCOUNT), ("5", False, Scope.CHAT), ("-5", True, Scope.CHAT), ("@group", True, Scope.CHAT)],
)
def test_a_wait_applies_to_the_bot_or_to_a_chat_with_a_limit_of_its_own(
    chat: str, is_first_part: bool, scope: Scope
) -> None:
    error = TelegramRetryAfter(METHOD, "Too Many Requests: retry after 7200", 7200)
    outcome = outcomes.outcome_of(error, chat, is_first_part=is_first_part)
    assert outcome == Deferred(Reason.THROTTLED, timedelta(hours=2), scope, "429")


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (TelegramForbiddenError(METHOD, "Forbidden: bot was blocked by the user"), Reason.BLOCKED),
        (TelegramForbiddenError(METHOD, "Forbidden: bot was kicked from the supergroup chat"), Reason.BLOCKED),
        (TelegramForbiddenError(METHOD, "Forbidden: user is deactivated"), Reason.RECIPIENT_UNREACHABLE),
        (TelegramForbiddenError(METHOD, "Forbidden: bot can't initiate conversation with a user"), Reason.PRIVACY),
        (TelegramForbiddenError(METHOD, "Forbidden: something new"), Reason.RECIPIENT_UNREACHABLE),
        (TelegramBadRequest(METHOD, "Bad Request: chat not found"), Reason.RECIPIENT_UNREACHABLE),
        (TelegramBadRequest(METHOD, "Bad Request: message is too long"), Reason.CONTENT_REFUSED),
        (TelegramBadRequest(METHOD, "Bad Request: something new"), Reason.RECIPIENT_UNREACHABLE),
        (TelegramEntityTooLarge(METHOD, "Request Entity Too Large"), Reason.CONTENT_REFUSED),
    ],
)
def test_a_refusal_is_final_with_its_reason(error: Exception, outcome: Reason) -> None:
    rejected = outcomes.outcome_of(error, "5")
    assert isinstance(rejected, Rejected)
    assert rejected.reason == outcome


@pytest.mark.parametrize(
    "error", [TelegramUnauthorizedError(METHOD, "Unauthorized"), TelegramNotFound(METHOD, "Not Found")]
)
def test_a_refused_token_halts(error: Exception) -> None:
    assert outcomes.outcome_of(error, "5") == Halted(TOKEN_REFUSED)


@pytest.mark.row("D-38")
@pytest.mark.parametrize(
    "error",
    [
        network_error(TimeoutError()),
        network_error(ServerDisconnectedError()),
        network_error(ClientConnectionError()),
        TelegramServerError(METHOD, "Internal Server Error"),
        RestartingTelegram(METHOD, "restart"),
        TelegramConflictError(METHOD, "Conflict"),
        ClientDecodeError("Failed to decode object", ValueError("x"), "<html>"),
        TelegramAPIError(METHOD, "something new"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "x"),
        TypeError("argument of type 'NoneType' is not iterable"),
    ],
)
def test_what_may_have_been_sent_is_unknown(error: Exception) -> None:
    assert isinstance(outcomes.outcome_of(error, "5"), Unknown)


@pytest.mark.parametrize(
    "cause", [ClientConnectorError(KEY, OSError(111, "refused")), ConnectionTimeoutError("no connection")]
)
def test_a_connection_that_was_never_made_is_repeated(cause: Exception) -> None:
    outcome: Any = outcomes.outcome_of(network_error(cause), "5")
    assert (outcome.reason, outcome.scope, outcome.after) == (
        Reason.PROVIDER_DOWN, Scope.ACCOUNT, outcomes.RECONNECT_AFTER,
    )  # fmt: skip


def test_a_throttle_without_a_time_is_left_to_the_back_off() -> None:
    outcome = outcomes.outcome_of(TelegramAPIError(METHOD, "Too Many Requests: flood"), "5")
    assert outcome == Deferred(Reason.THROTTLED, None, Scope.ACCOUNT, "429")


def test_no_text_of_a_network_error_is_shown() -> None:
    for cause in (TimeoutError(), ClientConnectorError(KEY, OSError(111, "refused"))):
        assert "URL" not in str(outcomes.outcome_of(network_error(cause), "5"))
