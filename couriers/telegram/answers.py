"""Telegram's answers over MTProto, each with what it means for the message. The whole table is here.

Telethon gives the errors it knows classes of their own, which forget the name that came over the wire; those it does
not know arrive as their base class (PRIVACY_PREMIUM_REQUIRED as a plain AuthKeyError, ALLOW_PAYMENT_REQUIRED_5 as a
plain ForbiddenError). So the name is found first and decides; the number only serves what has no name here.
Telegram remembers a random id without end, so whatever may have arrived is `Unknown`: to repeat it is always safe.
Source: core.telegram.org/api/errors, core.telegram.org/method/messages.sendMessage.
"""

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

from telethon import errors
from telethon.errors.rpcerrorlist import rpc_errors_dict, rpc_errors_re

from core.courier import Deferred, Halted, Outcome, Reason, Rejected, Scope, Unknown

PEER_INVALID = "PEER_ID_INVALID"
OUTAGE = timedelta(seconds=5)  # between two attempts to connect; named, so that a long outage uses up nobody's attempts

# n in a name stands for the number at its end.
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
}
STOPPED = frozenset(
    {
        "PEER_FLOOD",  # reported for spam: may not write to strangers, and every try makes it worse
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
WAITS = {
    "FLOOD_WAIT_n": Scope.METHOD,
    "FLOOD_PREMIUM_WAIT_n": Scope.METHOD,
    "FLOOD_TEST_PHONE_WAIT_n": Scope.METHOD,
    "SLOWMODE_WAIT_n": Scope.CHAT,
}
AMBIGUOUS = frozenset({"CONNECTION_NOT_INITED", "CONNECTION_LAYER_INVALID", "MSG_WAIT_FAILED", "MSG_WAIT_TIMEOUT"})

_NAMES = {kind: name for name, kind in rpc_errors_dict.items()}
_NAMES |= {kind: pattern.replace(r"(\d+)", "n") for pattern, kind in rpc_errors_re}


def name_of(error: errors.RPCError) -> str:
    """Telegram's name of the error, with n for a number at its end."""
    return _NAMES.get(type(error)) or re.sub(r"\d+$", "n", str(error.message))


def sending(error: Exception) -> Outcome:
    """What became of a message whose sending ended in this error."""
    if isinstance(error, errors.AuthKeyNotFound):
        return Halted("Telegram does not know the session's key any more; remove the session file and sign in again")
    return _refused(error, name_of(error)) if isinstance(error, errors.RPCError) else Unknown(type(error).__name__)


def _refused(error: Any, name: str) -> Outcome:
    if name in FINAL:
        return Rejected(FINAL[name], name)
    if name in STOPPED:
        return Halted(f"Telegram answers {name}")
    if name in WAITS:
        return Deferred(Reason.THROTTLED, timedelta(seconds=error.seconds), WAITS[name], name)
    return Unknown(name) if name in AMBIGUOUS else _by_number(abs(error.code or 0), name)


def _by_number(code: int, name: str) -> Outcome:
    """What has no name here: 401 concerns the account, 420 is a wait without a time, other 4xx the recipient."""
    match code:
        case 401:
            return Halted(f"Telegram answers {name}")
        case 420:
            return Deferred(Reason.THROTTLED, None, Scope.METHOD, name)
        case _ if 400 <= code < 500:
            return Rejected(Reason.RECIPIENT_UNREACHABLE, name)
    return Unknown(name)


def looking_up(error: Exception) -> Outcome:
    """What it means for the message when finding its recipient ended in this error: nothing was sent yet.

    A flood wait of the search holds up this recipient alone: the others, whose addresses are known, need no search.
    """
    outcome = sending(error)
    if isinstance(outcome, Unknown):
        return Deferred(Reason.PROVIDER_DOWN, None, Scope.RECIPIENT, outcome.detail)
    return replace(outcome, scope=Scope.RECIPIENT) if isinstance(outcome, Deferred) else outcome


def connecting(error: Exception) -> Outcome:
    """What it means for the message that Telegram could not be reached: everybody waits, nobody loses an attempt."""
    outcome = sending(error)
    if isinstance(outcome, Halted):
        return outcome
    if isinstance(outcome, Deferred) and outcome.after is not None:
        return replace(outcome, scope=Scope.ACCOUNT)
    return Deferred(Reason.PROVIDER_DOWN, OUTAGE, Scope.ACCOUNT, type(error).__name__)


def number_in(answer: Any, random_id: int) -> str:
    """The number of the message in the answer to messages.sendMessage; "" where there is none.

    A private chat is answered with updateShortSentMessage, a group or channel with updates that name the random id.
    """
    if (number := getattr(answer, "id", None)) is not None:
        return str(number)
    for update in getattr(answer, "updates", ()):
        if getattr(update, "random_id", None) == random_id:
            return str(update.id)
    return ""
