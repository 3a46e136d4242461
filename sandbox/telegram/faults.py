"""The failures of messages.sendMessage, each played as Telegram plays it.

The names are those of sandbox/faults.py. What stores the message does it before it fails, so a repeat with the same
random id finds the first answer. Source of the errors: core.telegram.org/method/messages.sendMessage.
"""

import logging
from collections.abc import Callable

from sandbox.magic_recipients import MAGIC
from sandbox.state import Fault
from sandbox.telegram.hub import Call
from sandbox.telegram.replies import Cut, Late, Refusal, Reply, Silence
from sandbox.telegram.sending import STILL_RUNNING, Sending, begun, chat, prepared, repeated, stored

_log = logging.getLogger(__name__)

_WAIT, _STARS = 30, 10  # where a rule does not say

Player = Callable[[Sending, int | None], Reply]

REFUSALS = {
    "privacy": Refusal(403, "USER_PRIVACY_RESTRICTED"),
    "premium_required": Refusal(406, "PRIVACY_PREMIUM_REQUIRED"),
    "blocked": Refusal(400, "USER_IS_BLOCKED"),
    "deactivated": Refusal(400, "INPUT_USER_DEACTIVATED"),
    "peer_invalid": Refusal(400, "PEER_ID_INVALID"),
    "write_forbidden": Refusal(403, "CHAT_WRITE_FORBIDDEN"),
    "peer_flood": Refusal(400, "PEER_FLOOD"),
    "frozen": Refusal(420, "FROZEN_METHOD_INVALID"),
    "auth_key_unregistered": Refusal(401, "AUTH_KEY_UNREGISTERED"),
    "session_revoked": Refusal(401, "SESSION_REVOKED"),
    "deactivated_ban": Refusal(401, "USER_DEACTIVATED_BAN"),
    "auth_key_duplicated": Refusal(406, "AUTH_KEY_DUPLICATED"),
    "message_too_long": Refusal(400, "MESSAGE_TOO_LONG"),
    "message_empty": Refusal(400, "MESSAGE_EMPTY"),
}


def send_message(call: Call) -> Reply:
    """messages.sendMessage, from the checks to the answer."""
    sending = prepared(call)
    if isinstance(sending, Refusal):
        return sending
    return repeated(sending) or _attempted(sending)


def _attempted(sending: Sending) -> Reply:
    fault = sending.fault(NAMES)
    return stored(sending) if fault is None else _played(sending, fault)


def _played(sending: Sending, fault: Fault) -> Reply:
    _log.debug("%s for %s", fault, sending.address)
    return REFUSALS.get(fault.name) or PLAYERS[fault.name](sending, fault.value)


def _or(value: int | None, otherwise: int) -> int:
    return otherwise if value is None else value


def flood_wait(sending: Sending, seconds: int | None) -> Reply:
    """FLOOD_WAIT_n: until it ends, this account's calls of the method are refused with the seconds that remain."""
    sending.wait(sending.call.method, _or(seconds, _WAIT))
    return Refusal(420, f"FLOOD_WAIT_{_or(seconds, _WAIT)}")


def slow_mode(sending: Sending, seconds: int | None) -> Reply:
    """SLOWMODE_WAIT_n: the same for this chat only."""
    sending.wait(chat(sending), _or(seconds, _WAIT))
    return Refusal(420, f"SLOWMODE_WAIT_{_or(seconds, _WAIT)}")


def payment_required(sending: Sending, stars: int | None) -> Reply:
    """ALLOW_PAYMENT_REQUIRED_n: the person asks n stars for a message."""
    return Refusal(403, f"ALLOW_PAYMENT_REQUIRED_{_or(stars, _STARS)}")


def random_id_duplicate(sending: Sending, repeats: int | None) -> Reply:
    """The message is there by an earlier call that counts as still running, for this call and `repeats` - 1 more."""
    stored(sending)
    begun(sending).duplicates = _or(repeats, 1) - 1
    return STILL_RUNNING


def stored_then_error(sending: Sending, code: int | None) -> Reply:
    """The message arrives, the answer is an error of the server."""
    stored(sending)
    return server_error(sending, code)


def server_error(sending: Sending, code: int | None) -> Reply:
    """Nothing arrives, the answer is an error of the server: 500, or -503 with Telegram's text for it."""
    return Refusal(code or 500, "Timeout" if code and abs(code) == 503 else "INTERNAL_SERVER_ERROR")


def timeout(sending: Sending, _: int | None) -> Reply:
    """Nothing arrives, nothing is answered."""
    return Silence()


def stored_then_silence(sending: Sending, _: int | None) -> Reply:
    """The message arrives, nothing is answered."""
    stored(sending)
    return Silence()


def disconnect_before(sending: Sending, _: int | None) -> Reply:
    """The connection is cut, nothing arrives.

    A client repeats the message as soon as it is connected again. With a magic recipient, which fails every time, it
    would never do anything else; so there the cut strikes once per message.
    """
    if sending.key in sending.account.cut and sending.address in MAGIC["telegram"]:
        return stored(sending)
    sending.account.cut.add(sending.key)
    return Cut()


def disconnect_after(sending: Sending, _: int | None) -> Reply:
    """The message arrives, the connection is cut instead of an answer."""
    stored(sending)
    return Cut()


def slow(sending: Sending, seconds: int | None) -> Reply:
    """The message arrives and is answered late; meanwhile its random id counts as still running."""
    begun(sending)
    return Late(_or(seconds, 1), lambda: stored(sending))


PLAYERS: dict[str, Player] = {
    player.__name__: player
    for player in (
        flood_wait,
        slow_mode,
        payment_required,
        random_id_duplicate,
        stored_then_error,
        server_error,
        timeout,
        stored_then_silence,
        disconnect_before,
        disconnect_after,
        slow,
    )
}
NAMES = frozenset(REFUSALS) | frozenset(PLAYERS)
