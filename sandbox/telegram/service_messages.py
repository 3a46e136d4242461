"""MTProto's service messages (core.telegram.org/mtproto/service_messages)."""

from collections.abc import Callable
from typing import Any

from telethon.tl import functions, types

from sandbox.telegram.protocol import messages
from sandbox.telegram.protocol.key_store import AuthKey
from sandbox.telegram.state.hub import now

_TEN_YEARS = 10 * 365 * 86_400  # seconds


def _ping(key: AuthKey, message: int, request: Any) -> bytes:
    return bytes(types.Pong(message, request.ping_id))


def _salts(key: AuthKey, message: int, request: Any) -> bytes:
    salt = types.FutureSalt(now(), min(now() + _TEN_YEARS, 2**31 - 1), key.salt)
    return bytes(types.FutureSalts(message, now(), [salt]))


def _states(key: AuthKey, message: int, request: Any) -> bytes:
    # 4: received. The field is bytes; a string of characters below 128 is encoded the same.
    return bytes(types.MsgsStateInfo(message, chr(4) * len(request.msg_ids)))


def _destroyed_session(key: AuthKey, message: int, request: Any) -> bytes:
    return bytes(types.DestroySessionNone(request.session_id))


def _dropped(key: AuthKey, message: int, request: Any) -> bytes:
    return messages.result(message, bytes(types.RpcAnswerUnknown()))


def _nothing(key: AuthKey, message: int, request: Any) -> None:
    """Do nothing: acknowledgements and notices have no answer."""


HANDLERS: dict[type, Callable[[AuthKey, int, Any], bytes | None]] = {
    functions.DestroySessionRequest: _destroyed_session,
    functions.GetFutureSaltsRequest: _salts,
    functions.PingDelayDisconnectRequest: _ping,
    functions.PingRequest: _ping,
    functions.RpcDropAnswerRequest: _dropped,
    types.HttpWait: _nothing,
    types.MsgResendReq: _nothing,
    types.MsgsAck: _nothing,
    types.MsgsAllInfo: _nothing,
    types.MsgsStateInfo: _nothing,
    types.MsgsStateReq: _states,
}
