"""The table of the Bot API's answers."""

import json
from datetime import timedelta
from typing import Any

import aiohttp
import pytest

from couriers.sending import Deferred, Halted, Reason, Rejected, Scope, Unknown
from couriers.telegram_bot import TOKEN_REFUSED, outcomes
from couriers.telegram_bot.client import BotClient, NoAnswer
from couriers.telegram_bot.library import exceptions, methods


def error_of(status: int, body: Any) -> exceptions.AiogramError:
    """The error of an answer without a result."""
    with pytest.raises(exceptions.AiogramError) as error:
        BotClient("1:x").read(status, json.dumps(body).encode())
    return error.value


def refused(status: int, description: str, **parameters: int) -> exceptions.AiogramError:
    """The error of an answer as the Bot API writes it."""
    hints = {"parameters": parameters} if parameters else {}
    return error_of(status, {"ok": False, "error_code": status, "description": description, **hints})


def broken(fault: Exception) -> NoAnswer:
    return NoAnswer(methods.GetMe(), fault)


@pytest.mark.parametrize(
    ("chat", "is_first_part", "scope"),
    [("5", True, Scope.ACCOUNT), ("5", False, Scope.CHAT), ("-5", True, Scope.CHAT), ("@group", True, Scope.CHAT)],
)
def test_a_wait_applies_to_the_bot_or_to_a_chat_with_a_limit_of_its_own(
    chat: str, is_first_part: bool, scope: Scope
) -> None:
    error = refused(429, "Too Many Requests: retry after 7200", retry_after=7200)
    outcome = outcomes.outcome_of(error, chat, is_first_part=is_first_part)
    assert outcome == Deferred(Reason.THROTTLED, timedelta(hours=2), scope, "429")


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (refused(403, "Forbidden: bot was blocked by the user"), Reason.BLOCKED),
        (refused(403, "Forbidden: bot was kicked from the supergroup chat"), Reason.BLOCKED),
        (refused(403, "Forbidden: user is deactivated"), Reason.RECIPIENT_UNREACHABLE),
        (refused(403, "Forbidden: bot can't initiate conversation with a user"), Reason.PRIVACY),
        (refused(403, "Forbidden: something new"), Reason.RECIPIENT_UNREACHABLE),
        (refused(400, "Bad Request: chat not found"), Reason.RECIPIENT_UNREACHABLE),
        (refused(400, "Bad Request: message is too long"), Reason.CONTENT_REFUSED),
        (refused(400, "Bad Request: something new"), Reason.RECIPIENT_UNREACHABLE),
        (refused(413, "Request Entity Too Large"), Reason.CONTENT_REFUSED),
    ],
)
def test_a_refusal_is_final_with_its_reason(error: Exception, outcome: Reason) -> None:
    rejected = outcomes.outcome_of(error, "5")
    assert isinstance(rejected, Rejected)
    assert rejected.reason == outcome


@pytest.mark.parametrize("error", [refused(401, "Unauthorized"), refused(404, "Not Found")])
def test_a_refused_token_halts(error: Exception) -> None:
    assert outcomes.outcome_of(error, "5") == Halted(TOKEN_REFUSED)


@pytest.mark.parametrize(
    "error",
    [
        broken(TimeoutError()),
        refused(500, "Internal Server Error"),
        refused(502, "restart"),
        refused(409, "Conflict"),
        error_of(200, {"ok": True}),
        error_of(502, "<html>"),
        error_of(500, {"ok": False, "description": None, "parameters": []}),
        refused(418, "something new"),
        OSError("a file cannot be read"),
    ],
)
def test_what_may_have_been_sent_is_unknown(error: Exception) -> None:
    assert isinstance(outcomes.outcome_of(error, "5"), Unknown)


def test_a_connection_that_was_never_made_is_repeated() -> None:
    outcome: Any = outcomes.outcome_of(broken(aiohttp.ConnectionTimeoutError()), "5")
    assert (outcome.reason, outcome.scope, outcome.after) == (
        Reason.PROVIDER_DOWN, Scope.ACCOUNT, outcomes.RECONNECT_AFTER,
    )  # fmt: skip


def test_a_throttle_without_a_time_is_left_to_the_back_off() -> None:
    outcome = outcomes.outcome_of(refused(429, "Too Many Requests: flood"), "5")
    assert outcome == Deferred(Reason.THROTTLED, None, Scope.ACCOUNT, "429")
