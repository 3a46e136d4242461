"""Every answer of Telegram over MTProto, with the outcome it means for the message.

Telethon converts the errors it knows into classes that do not keep the name received. An error it does not know arrives
as a base class (PRIVACY_PREMIUM_REQUIRED as AuthKeyError, ALLOW_PAYMENT_REQUIRED_5 as ForbiddenError). So the name is
recovered first and decides; the code decides only for names that are not listed here.
Telegram remembers a random id without end, so a message that may have arrived is `Unknown`: a repeat is always safe.
Source: core.telegram.org/api/errors, core.telegram.org/method/messages.sendMessage.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

from telethon import errors
from telethon.errors.rpcerrorlist import rpc_errors_dict, rpc_errors_re

from couriers.sending import AnswerRow, Deferred, Halted, Outcome, Reason, Rejected, Scope, Unknown, sentence

PEER_INVALID = "PEER_ID_INVALID"
RECONNECT_AFTER = timedelta(seconds=5)  # given explicitly, so that an outage does not use up the attempts

# `n` in a name stands for the number at its end.
FINAL = {
    "USER_PRIVACY_RESTRICTED": Reason.PRIVACY,
    "PRIVACY_PREMIUM_REQUIRED": Reason.PRIVACY,
    "ALLOW_PAYMENT_REQUIRED": Reason.PRIVACY,
    "ALLOW_PAYMENT_REQUIRED_n": Reason.PRIVACY,
    "USER_IS_BLOCKED": Reason.BLOCKED,
    "YOU_BLOCKED_USER": Reason.BLOCKED,
    "USER_BLOCKED": Reason.BLOCKED,
    "USER_BANNED_IN_CHANNEL": Reason.BLOCKED,
    "INPUT_USER_DEACTIVATED": Reason.RECIPIENT_UNREACHABLE,
    PEER_INVALID: Reason.RECIPIENT_UNREACHABLE,
    "USERNAME_NOT_OCCUPIED": Reason.RECIPIENT_UNREACHABLE,
    "USERNAME_INVALID": Reason.RECIPIENT_UNREACHABLE,
    "CHAT_WRITE_FORBIDDEN": Reason.RECIPIENT_UNREACHABLE,
    "MESSAGE_TOO_LONG": Reason.CONTENT_REFUSED,
    "MESSAGE_EMPTY": Reason.CONTENT_REFUSED,
    "ENTITY_BOUNDS_INVALID": Reason.CONTENT_REFUSED,
    "MEDIA_CAPTION_TOO_LONG": Reason.CONTENT_REFUSED,
    "MEDIA_EMPTY": Reason.CONTENT_REFUSED,
    "MEDIA_INVALID": Reason.CONTENT_REFUSED,
    "FILE_PARTS_INVALID": Reason.CONTENT_REFUSED,
    "FILE_PART_n_MISSING": Reason.CONTENT_REFUSED,
    "PHOTO_INVALID_DIMENSIONS": Reason.CONTENT_REFUSED,
    "IMAGE_PROCESS_FAILED": Reason.CONTENT_REFUSED,
    "WEBPAGE_CURL_FAILED": Reason.CONTENT_REFUSED,
    "WEBPAGE_MEDIA_EMPTY": Reason.CONTENT_REFUSED,
    "EXTERNAL_URL_INVALID": Reason.CONTENT_REFUSED,
    "VOICE_MESSAGES_FORBIDDEN": Reason.PRIVACY,
    "BUTTON_DATA_INVALID": Reason.CONTENT_REFUSED,
    "BUTTON_URL_INVALID": Reason.CONTENT_REFUSED,
    "REPLY_MARKUP_INVALID": Reason.CONTENT_REFUSED,
    "REPLY_MARKUP_TOO_LONG": Reason.CONTENT_REFUSED,
}
NO_MESSAGE_TO_REPLY_TO = frozenset({"REPLY_MESSAGE_ID_INVALID", "MSG_ID_INVALID"})
ACCOUNT_UNUSABLE = frozenset(
    {
        "PEER_FLOOD",  # reported for spam: may not write to strangers; each attempt makes it worse
        "FROZEN_METHOD_INVALID",
        "FROZEN_PARTICIPANT_MISSING",
        "AUTH_KEY_UNREGISTERED",
        "AUTH_KEY_DUPLICATED",
        "AUTH_KEY_INVALID",
        "AUTH_KEY_PERM_EMPTY",
        "SESSION_REVOKED",
        "SESSION_EXPIRED",
        "USER_DEACTIVATED",
        "USER_DEACTIVATED_BAN",
        "USER_RESTRICTED",
        "ACCESS_TOKEN_EXPIRED",
        "ACCESS_TOKEN_INVALID",
        "API_ID_INVALID",
    }
)
THROTTLES = {
    "FLOOD_WAIT_n": Scope.METHOD,
    "FLOOD_PREMIUM_WAIT_n": Scope.METHOD,
    "FLOOD_TEST_PHONE_WAIT_n": Scope.METHOD,
    "SLOWMODE_WAIT_n": Scope.CHAT,
}
AMBIGUOUS = frozenset({"CONNECTION_NOT_INITED", "CONNECTION_LAYER_INVALID", "MSG_WAIT_FAILED", "MSG_WAIT_TIMEOUT"})

_NAMES = {kind: name for name, kind in rpc_errors_dict.items()}
_NAMES |= {kind: pattern.replace(r"(\d+)", "n") for pattern, kind in rpc_errors_re}


def name_of(error: errors.RPCError) -> str:
    """Return Telegram's name of the error, with `n` for a number at its end."""
    return _NAMES.get(type(error)) or re.sub(r"\d+$", "n", str(error.message))


def full_name(error: errors.RPCError) -> str:
    """Return Telegram's name of the error with its number: FLOOD_WAIT_30."""
    name = name_of(error)
    number = getattr(error, "seconds", None)
    return f"{name[:-1]}{number}" if name.endswith("_n") and number is not None else name


def send_outcome(error: Exception) -> Outcome:
    """Return the outcome of a message whose request raised this error."""
    if isinstance(error, errors.AuthKeyNotFound):
        return Halted(sentence("halt_session"))
    return (
        _error_outcome(error, name_of(error)) if isinstance(error, errors.RPCError) else Unknown(type(error).__name__)
    )


def _error_outcome(error: Any, name: str) -> Outcome:
    if name in FINAL:
        return Rejected(FINAL[name], name)
    if name in ACCOUNT_UNUSABLE:
        return Halted(sentence("halt_answers", provider="Telegram", answer=name))
    if name in THROTTLES:
        return Deferred(Reason.THROTTLED, timedelta(seconds=error.seconds), THROTTLES[name], name)
    return Unknown(name) if name in AMBIGUOUS else _outcome_by_code(abs(error.code or 0), name)


def _outcome_by_code(code: int, name: str) -> Outcome:
    """Decide for a name that is not listed: 401 concerns the account, 420 is a throttle, other 4xx the recipient."""
    match code:
        case 401:
            return Halted(sentence("halt_answers", provider="Telegram", answer=name))
        case 420:
            return Deferred(Reason.THROTTLED, None, Scope.METHOD, name)
        case _ if 400 <= code < 500:
            return Rejected(Reason.RECIPIENT_UNREACHABLE, name)
    return Unknown(name)


def lookup_outcome(error: Exception) -> Outcome:
    """Return the outcome of a message whose recipient could not be looked up: nothing was sent yet.

    A flood wait of a lookup defers this recipient alone: recipients that are known need no lookup.
    """
    outcome = send_outcome(error)
    if isinstance(outcome, Unknown):
        return Deferred(Reason.PROVIDER_DOWN, None, Scope.RECIPIENT, outcome.detail)
    return replace(outcome, scope=Scope.RECIPIENT) if isinstance(outcome, Deferred) else outcome


def connect_outcome(error: Exception) -> Outcome:
    """Return the outcome of a message for which the connection failed: the account waits and no attempt is counted."""
    outcome = send_outcome(error)
    if isinstance(outcome, Halted):
        return outcome
    if isinstance(outcome, Deferred) and outcome.after is not None:
        return replace(outcome, scope=Scope.ACCOUNT)
    return Deferred(Reason.PROVIDER_DOWN, RECONNECT_AFTER, Scope.ACCOUNT, type(error).__name__)


def message_id_in(answer: Any, random_id: int) -> str:
    """Return the message id from the answer to messages.sendMessage, "" if there is none.

    The answer for a private chat is updateShortSentMessage; for a group or channel, updates that name the random id.
    """
    if (message_id := getattr(answer, "id", None)) is not None:
        return str(message_id)
    for update in getattr(answer, "updates", ()):
        if getattr(update, "random_id", None) == random_id:
            return str(update.id)
    return ""


def answer_tables() -> dict[str, Iterable[AnswerRow]]:
    """Return what the page of answers shows: title → rows."""
    return {"Telegram (MTProto)": _rows()}


def _rows() -> Iterator[AnswerRow]:
    yield "connect", "cut, silence", connect_outcome(ConnectionError())
    yield "look-up", "cut, silence", lookup_outcome(ConnectionError())
    yield "send", "cut, silence, 500", send_outcome(ConnectionError())
    for name, scope in THROTTLES.items():
        yield "send", name.replace("_n", "_1"), Deferred(Reason.THROTTLED, timedelta(seconds=1), scope)
    for name in sorted(FINAL | dict.fromkeys(ACCOUNT_UNUSABLE)):
        if kind := rpc_errors_dict.get(name):
            yield "send", name, send_outcome(kind(request=None))
