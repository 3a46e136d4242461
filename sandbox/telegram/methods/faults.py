"""messages.sendMessage and the faults that can be injected into it.

The names are those of sandbox/faults.py. A fault that stores the message stores it before it fails, so a repeat with
the same random id returns the first answer. Source of the errors: core.telegram.org/method/messages.sendMessage.
"""

import logging
from collections.abc import Callable

from sandbox.magic_recipients import MAGIC_RECIPIENTS
from sandbox.state import Fault
from sandbox.telegram.methods.replies import DelayedReply, Disconnect, NoReply, Refusal, Reply
from sandbox.telegram.methods.sending import (
    STILL_PROCESSED,
    SendRequest,
    chat_key,
    prepare,
    remember_random_id,
    repeated_reply,
    store,
)
from sandbox.telegram.state.dialogs import StoredFile
from sandbox.telegram.state.hub import Call

_log = logging.getLogger(__name__)

_DEFAULT_WAIT, _DEFAULT_STARS = 30, 10

Action = Callable[[SendRequest, int | None], Reply]

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


def send_message(call: Call, file: StoredFile | None = None) -> Reply:
    """Handle messages.sendMessage, and messages.sendMedia with a file."""
    sending = prepare(call, file)
    if isinstance(sending, Refusal):
        return sending
    return _refused_repeat(sending) or repeated_reply(sending) or _send(sending)


def _refused_repeat(sending: SendRequest) -> Refusal | None:
    """Return the only fault that applies to a known random id: the recipient may block the account meanwhile."""
    is_refused = sending.is_known and sending.fault(frozenset({"stored_then_refused"}))
    return REFUSALS["blocked"] if is_refused else None


def _send(sending: SendRequest) -> Reply:
    fault = sending.fault(NAMES)
    return store(sending) if fault is None else _inject(sending, fault)


def _inject(sending: SendRequest, fault: Fault) -> Reply:
    _log.debug("%s for %s", fault, sending.address)
    return REFUSALS.get(fault.name) or ACTIONS[fault.name](sending, fault.value)


def _or_default(value: int | None, default: int) -> int:
    return default if value is None else value


def flood_wait(sending: SendRequest, seconds: int | None) -> Reply:
    """Refuse with FLOOD_WAIT_n: until it ends, calls of the method by this account are refused with the remaining
    seconds.
    """
    sending.throttle(sending.call.method, _or_default(seconds, _DEFAULT_WAIT))
    return Refusal(420, f"FLOOD_WAIT_{_or_default(seconds, _DEFAULT_WAIT)}")


def rate_limit(sending: SendRequest, messages_per_second: int | None) -> Reply:
    """Refuse with FLOOD_WAIT_1 beyond the rate."""
    if sending.is_within_rate(_or_default(messages_per_second, 1)):
        return store(sending)
    sending.call.hub.state.count("telegram", "refused")
    return flood_wait(sending, 1)


def slow_mode(sending: SendRequest, seconds: int | None) -> Reply:
    """Refuse with SLOWMODE_WAIT_n: as `flood_wait`, for this chat only."""
    sending.throttle(chat_key(sending), _or_default(seconds, _DEFAULT_WAIT))
    return Refusal(420, f"SLOWMODE_WAIT_{_or_default(seconds, _DEFAULT_WAIT)}")


def payment_required(sending: SendRequest, stars: int | None) -> Reply:
    """Refuse with ALLOW_PAYMENT_REQUIRED_n: the recipient charges n stars for a message."""
    return Refusal(403, f"ALLOW_PAYMENT_REQUIRED_{_or_default(stars, _DEFAULT_STARS)}")


def random_id_duplicate(sending: SendRequest, repeats: int | None) -> Reply:
    """Refuse as a repeat: an earlier call has stored the message and is still being processed, for this call and
    `repeats` - 1 more.
    """
    store(sending)
    remember_random_id(sending).duplicates = _or_default(repeats, 1) - 1
    return STILL_PROCESSED


def stored_then_error(sending: SendRequest, code: int | None) -> Reply:
    """Store the message and return a server error."""
    store(sending)
    return server_error(sending, code)


def server_error(sending: SendRequest, code: int | None) -> Reply:
    """Store nothing and return a server error: 500, or -503 with Telegram's text for it."""
    return Refusal(code or 500, "Timeout" if code and abs(code) == 503 else "INTERNAL_SERVER_ERROR")


def timeout(sending: SendRequest, _: int | None) -> Reply:
    """Store nothing and send no answer."""
    return NoReply()


def stored_then_silence(sending: SendRequest, _: int | None) -> Reply:
    """Store the message and send no answer."""
    store(sending)
    return NoReply()


def disconnect_before(sending: SendRequest, _: int | None) -> Reply:
    """Close the connection and store nothing.

    A client repeats the message when it has reconnected. With a magic recipient, which fails every time, this would
    never end; so for a magic recipient the fault applies once per message.
    """
    if sending.key in sending.account.disconnected_messages and sending.address in MAGIC_RECIPIENTS["telegram"]:
        return store(sending)
    sending.account.disconnected_messages.add(sending.key)
    return Disconnect()


def disconnect_after(sending: SendRequest, _: int | None) -> Reply:
    """Store the message and close the connection instead of an answer."""
    store(sending)
    return Disconnect()


def stored_then_refused(sending: SendRequest, code: int | None) -> Reply:
    """Store the message and return a server error; `_refused_repeat` refuses the repeat."""
    return stored_then_error(sending, code)


def second_refused(sending: SendRequest, _: int | None) -> Reply:
    """Store the first message to this address, and refuse each later one."""
    return REFUSALS["blocked"] if sending.address in sending.account.newest_message_to else store(sending)


def slow(sending: SendRequest, seconds: int | None) -> Reply:
    """Store the message and answer late. Until then its random id counts as being processed."""
    remember_random_id(sending)
    return DelayedReply(_or_default(seconds, 1), lambda: store(sending))


ACTIONS: dict[str, Action] = {
    action.__name__: action
    for action in (
        flood_wait,
        rate_limit,
        slow_mode,
        payment_required,
        random_id_duplicate,
        stored_then_error,
        server_error,
        timeout,
        stored_then_silence,
        disconnect_before,
        disconnect_after,
        stored_then_refused,
        second_refused,
        slow,
    )
}
NAMES = frozenset(REFUSALS) | frozenset(ACTIONS)
