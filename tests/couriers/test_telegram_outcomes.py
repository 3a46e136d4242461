"""Telegram's answers, each built by Telethon from a received rpc_error."""

from datetime import timedelta
from typing import Any

import pytest
from telethon import errors
from telethon.tl import types
from telethon.tl.functions.messages import SendMessageRequest

from core.sentence import sentence
from couriers.sending import Deferred, Halted, Outcome, Reason, Rejected, Scope, Unknown
from couriers.telegram import outcomes

REQUEST = SendMessageRequest(types.InputPeerUser(1, 0), "hello", random_id=1)


def rpc_error(code: int, name: str) -> Any:
    """Return the error as Telethon builds it from an rpc_error."""
    return errors.rpc_message_to_error(types.RpcError(code, name), REQUEST)


def throttled(seconds: int | None, scope: Scope, name: str) -> Deferred:
    return Deferred(Reason.THROTTLED, None if seconds is None else timedelta(seconds=seconds), scope, name)


def halted(name: str) -> Halted:
    return Halted(sentence("halt_answers", provider="Telegram", answer=name))


OUTCOMES: list[tuple[int, str, Outcome]] = [
    (420, "FLOOD_WAIT_7200", throttled(7200, Scope.METHOD, "FLOOD_WAIT_n")),
    (420, "FLOOD_PREMIUM_WAIT_5", throttled(5, Scope.METHOD, "FLOOD_PREMIUM_WAIT_n")),
    (420, "FLOOD_TEST_PHONE_WAIT_5", throttled(5, Scope.METHOD, "FLOOD_TEST_PHONE_WAIT_n")),
    (420, "SLOWMODE_WAIT_30", throttled(30, Scope.CHAT, "SLOWMODE_WAIT_n")),
    (420, "A_WAIT_WITHOUT_TIME", throttled(None, Scope.METHOD, "A_WAIT_WITHOUT_TIME")),
    (403, "USER_PRIVACY_RESTRICTED", Rejected(Reason.PRIVACY, "USER_PRIVACY_RESTRICTED")),
    (406, "PRIVACY_PREMIUM_REQUIRED", Rejected(Reason.PRIVACY, "PRIVACY_PREMIUM_REQUIRED")),
    (403, "ALLOW_PAYMENT_REQUIRED_5", Rejected(Reason.PRIVACY, "ALLOW_PAYMENT_REQUIRED_n")),
    (400, "USER_IS_BLOCKED", Rejected(Reason.BLOCKED, "USER_IS_BLOCKED")),
    (400, "YOU_BLOCKED_USER", Rejected(Reason.BLOCKED, "YOU_BLOCKED_USER")),
    (400, "USER_BANNED_IN_CHANNEL", Rejected(Reason.BLOCKED, "USER_BANNED_IN_CHANNEL")),
    (400, "INPUT_USER_DEACTIVATED", Rejected(Reason.RECIPIENT_UNREACHABLE, "INPUT_USER_DEACTIVATED")),
    (400, "PEER_ID_INVALID", Rejected(Reason.RECIPIENT_UNREACHABLE, "PEER_ID_INVALID")),
    (403, "CHAT_WRITE_FORBIDDEN", Rejected(Reason.RECIPIENT_UNREACHABLE, "CHAT_WRITE_FORBIDDEN")),
    (400, "USERNAME_NOT_OCCUPIED", Rejected(Reason.RECIPIENT_UNREACHABLE, "USERNAME_NOT_OCCUPIED")),
    (400, "MESSAGE_TOO_LONG", Rejected(Reason.CONTENT_REFUSED, "MESSAGE_TOO_LONG")),
    (400, "MESSAGE_EMPTY", Rejected(Reason.CONTENT_REFUSED, "MESSAGE_EMPTY")),
    (400, "NEW_IN_LAYER_999", Rejected(Reason.RECIPIENT_UNREACHABLE, "NEW_IN_LAYER_n")),
    (403, "NEW_PROHIBITION", Rejected(Reason.RECIPIENT_UNREACHABLE, "NEW_PROHIBITION")),
    (400, "PEER_FLOOD", halted("PEER_FLOOD")),
    (420, "FROZEN_METHOD_INVALID", halted("FROZEN_METHOD_INVALID")),
    (401, "AUTH_KEY_UNREGISTERED", halted("AUTH_KEY_UNREGISTERED")),
    (401, "SESSION_REVOKED", halted("SESSION_REVOKED")),
    (401, "SESSION_EXPIRED", halted("SESSION_EXPIRED")),
    (401, "USER_DEACTIVATED_BAN", halted("USER_DEACTIVATED_BAN")),
    (401, "USER_DEACTIVATED", halted("USER_DEACTIVATED")),
    (401, "NEW_REASON_TO_SIGN_IN", halted("NEW_REASON_TO_SIGN_IN")),
    (406, "AUTH_KEY_DUPLICATED", halted("AUTH_KEY_DUPLICATED")),
    (400, "CONNECTION_NOT_INITED", Unknown("CONNECTION_NOT_INITED")),
    (500, "INTERNAL_SERVER_ERROR", Unknown("INTERNAL_SERVER_ERROR")),
    (500, "RANDOM_ID_DUPLICATE", Unknown("RANDOM_ID_DUPLICATE")),
    (-500, "No workers running", Unknown("No workers running")),
    (-503, "Timeout", Unknown("Timeout")),
    (303, "USER_MIGRATE_5", Unknown("USER_MIGRATE_n")),
]


@pytest.mark.parametrize(("code", "name", "outcome"), OUTCOMES, ids=[name for _, name, _ in OUTCOMES])
def test_each_error_has_its_outcome(code: int, name: str, outcome: Outcome) -> None:
    assert outcomes.send_outcome(rpc_error(code, name)) == outcome


def test_a_flood_wait_raised_by_telethon_itself_counts_as_telegrams() -> None:
    """Telethon refuses further calls during a flood wait itself, with the same class."""
    local = errors.FloodWaitError(request=REQUEST, capture=61)
    assert outcomes.send_outcome(local) == throttled(61, Scope.METHOD, "FLOOD_WAIT_n")


@pytest.mark.parametrize("error", [TimeoutError(), ConnectionResetError(), ConnectionError(), ValueError("bare")])
def test_a_lost_answer_is_unknown(error: Exception) -> None:
    assert outcomes.send_outcome(error) == Unknown(type(error).__name__)


def test_a_forgotten_key_halts() -> None:
    assert isinstance(outcomes.send_outcome(errors.AuthKeyNotFound()), Halted)


def test_a_flood_wait_of_a_lookup_defers_only_its_recipient() -> None:
    assert outcomes.lookup_outcome(rpc_error(420, "FLOOD_WAIT_60")) == throttled(60, Scope.RECIPIENT, "FLOOD_WAIT_n")


def test_a_lookup_without_an_answer_has_sent_nothing() -> None:
    assert outcomes.lookup_outcome(TimeoutError()) == Deferred(
        Reason.PROVIDER_DOWN, None, Scope.RECIPIENT, "TimeoutError"
    )
    assert isinstance(outcomes.lookup_outcome(rpc_error(401, "SESSION_REVOKED")), Halted)
    assert isinstance(outcomes.lookup_outcome(rpc_error(400, "USERNAME_INVALID")), Rejected)


def test_a_failed_connect_defers_the_account_without_counting_an_attempt() -> None:
    down = outcomes.connect_outcome(TimeoutError())
    assert down == Deferred(Reason.PROVIDER_DOWN, outcomes.RECONNECT_AFTER, Scope.ACCOUNT, "TimeoutError")
    assert outcomes.connect_outcome(rpc_error(420, "FLOOD_WAIT_60")) == throttled(60, Scope.ACCOUNT, "FLOOD_WAIT_n")
    assert isinstance(outcomes.connect_outcome(rpc_error(401, "AUTH_KEY_UNREGISTERED")), Halted)


def test_the_message_id_is_found_in_each_form_of_the_answer() -> None:
    short = types.UpdateShortSentMessage(7, pts=1, pts_count=1, date=None)
    named = types.Updates([types.UpdateMessageID(8, 5), types.UpdateMessageID(9, 6)], [], [], None, 0)
    assert outcomes.message_id_in(short, 6) == "7"
    assert outcomes.message_id_in(named, 6) == "9"
    assert outcomes.message_id_in(types.UpdatesTooLong(), 6) == ""
