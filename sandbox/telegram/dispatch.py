"""From a request to its reply: the wrappers come off, then the method is looked up in one table.

Before: connection.py. After: the method's own module.
"""

import logging
from collections.abc import Callable
from typing import Any

from telethon.tl import functions as f

from sandbox.telegram import config, faults, signing_in
from sandbox.telegram import contact_methods as people
from sandbox.telegram import updates as news
from sandbox.telegram.hub import Call, Client, Platform
from sandbox.telegram.replies import Refusal, Reply

_log = logging.getLogger(__name__)

METHODS: dict[type, Callable[[Call], Reply]] = {
    f.account.UpdateStatusRequest: config.agreed,
    f.auth.ImportBotAuthorizationRequest: signing_in.import_bot_authorization,
    f.auth.LogOutRequest: signing_in.log_out,
    f.auth.SendCodeRequest: signing_in.send_code,
    f.auth.SignInRequest: signing_in.sign_in,
    f.channels.GetChannelsRequest: people.get_channels,
    f.contacts.GetContactsRequest: people.get_contacts,
    f.contacts.ImportContactsRequest: people.import_contacts,
    f.contacts.ResolvePhoneRequest: people.resolve_phone,
    f.contacts.ResolveUsernameRequest: people.resolve_username,
    f.help.GetConfigRequest: config.get_config,
    f.help.GetNearestDcRequest: config.get_nearest_dc,
    f.messages.ReadHistoryRequest: config.read,
    f.messages.SendMessageRequest: faults.send_message,
    f.messages.SetTypingRequest: config.agreed,
    f.updates.GetChannelDifferenceRequest: news.get_channel_difference,
    f.updates.GetDifferenceRequest: news.get_difference,
    f.updates.GetStateRequest: news.get_state,
    f.users.GetFullUserRequest: people.get_full_user,
    f.users.GetUsersRequest: people.get_users,
}
# Those that need no account: the rest of `auth` finds out by itself.
_OPEN = frozenset(
    {
        f.auth.ImportBotAuthorizationRequest,
        f.auth.SendCodeRequest,
        f.auth.SignInRequest,
        f.help.GetConfigRequest,
        f.help.GetNearestDcRequest,
    }
)
_WRAPPERS = (
    f.InitConnectionRequest,
    f.InvokeAfterMsgRequest,  # requests of a connection are served in their order anyway
    f.InvokeAfterMsgsRequest,
    f.InvokeWithLayerRequest,
    f.InvokeWithoutUpdatesRequest,
)


def replied(platform: Platform, client: Client, request: Any) -> Reply:
    """Return the reply to a client's request; never raises."""
    request, quietly = _unwrapped(request)
    call = Call(platform, client, request, method_name(type(request)))
    client.wants_updates |= not quietly
    platform.world.count("telegram", call.method)
    try:
        return _refused(call) or METHODS[type(request)](call)
    except Exception:  # noqa: BLE001 - the attempt: one client's odd request must not end the connection of the others
        _log.exception("%s could not be served", call.method)
        return Refusal(500, "INTERNAL_SERVER_ERROR")


def _unwrapped(request: Any) -> tuple[Any, bool]:
    """Return the innermost request, and whether the client asked not to be sent updates for it."""
    quietly = False
    while isinstance(request, _WRAPPERS):
        quietly |= isinstance(request, f.InvokeWithoutUpdatesRequest)
        request = request.query
    return request, quietly


def method_name(kind: type) -> str:
    """Return Telegram's name of a method without its namespace: SendMessageRequest is `sendMessage`."""
    name = kind.__name__.removesuffix("Request")
    return name[:1].lower() + name[1:]


def _refused(call: Call) -> Refusal | None:
    kind = type(call.request)
    if kind not in METHODS:
        return Refusal(400, "METHOD_INVALID")
    if kind not in _OPEN and call.client.key.account is None:
        return Refusal(401, "AUTH_KEY_UNREGISTERED")
    return _flooded(call) if call.method in people.FLOODED_METHODS else None


def _flooded(call: Call) -> Refusal | None:
    """Play a flood wait that was ordered for finding people; magic recipients are for sendMessage only."""
    fault = call.platform.world.fault("telegram", "", call.method, frozenset({"flood_wait"}))
    if fault is not None:
        call.account.waits[call.method] = call.platform.clock() + (fault.value or 30)
    seconds = call.account.remaining(call.method, call.platform.clock())
    return Refusal(420, f"FLOOD_WAIT_{seconds}") if seconds else None
