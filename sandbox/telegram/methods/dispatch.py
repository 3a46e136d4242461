"""Finds the method of a request in one table and returns its reply. Wrappers around a request are removed first."""

import logging
from collections.abc import Callable
from typing import Any

from telethon.tl import functions as f

from sandbox.telegram.methods import config, contact_methods, editing, faults, media, sign_in, updates
from sandbox.telegram.methods.replies import Refusal, Reply
from sandbox.telegram.state.hub import Call, Client, Hub

_log = logging.getLogger(__name__)

METHODS: dict[type, Callable[[Call], Reply]] = {
    f.account.UpdateStatusRequest: config.accept,
    f.auth.ImportBotAuthorizationRequest: sign_in.import_bot_authorization,
    f.auth.LogOutRequest: sign_in.log_out,
    f.auth.SendCodeRequest: sign_in.send_code,
    f.auth.SignInRequest: sign_in.sign_in,
    f.channels.GetChannelsRequest: contact_methods.get_channels,
    f.contacts.GetContactsRequest: contact_methods.get_contacts,
    f.contacts.ImportContactsRequest: contact_methods.import_contacts,
    f.contacts.ResolvePhoneRequest: contact_methods.resolve_phone,
    f.contacts.ResolveUsernameRequest: contact_methods.resolve_username,
    f.help.GetConfigRequest: config.get_config,
    f.help.GetNearestDcRequest: config.get_nearest_dc,
    f.channels.DeleteMessagesRequest: editing.delete_channel_messages,
    f.messages.DeleteMessagesRequest: editing.delete_messages,
    f.messages.EditMessageRequest: editing.edit_message,
    f.messages.GetMessagesRequest: updates.get_messages,
    f.messages.ReadHistoryRequest: config.read_history,
    f.messages.SendMediaRequest: media.send_media,
    f.messages.SendMultiMediaRequest: media.send_multi_media,
    f.messages.UploadMediaRequest: media.upload_media,
    f.upload.GetFileRequest: media.get_file,
    f.upload.SaveBigFilePartRequest: media.save_part,
    f.upload.SaveFilePartRequest: media.save_part,
    f.messages.SendMessageRequest: faults.send_message,
    f.messages.SetBotCallbackAnswerRequest: updates.answer_press,
    f.messages.SetTypingRequest: config.accept,
    f.updates.GetChannelDifferenceRequest: updates.get_channel_difference,
    f.updates.GetDifferenceRequest: updates.get_difference,
    f.updates.GetStateRequest: updates.get_state,
    f.users.GetFullUserRequest: contact_methods.get_full_user,
    f.users.GetUsersRequest: contact_methods.get_users,
}
# Methods that work without an account.
_WITHOUT_ACCOUNT = frozenset(
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
    f.InvokeAfterMsgRequest,  # requests of a connection are processed in order anyway
    f.InvokeAfterMsgsRequest,
    f.InvokeWithLayerRequest,
    f.InvokeWithoutUpdatesRequest,
)


def reply_to(hub: Hub, client: Client, request: Any) -> Reply:
    """Return the reply to a client's request. Never raises."""
    request, without_updates = _unwrap(request)
    call = Call(hub, client, request, method_name(type(request)))
    client.wants_updates |= not without_updates
    hub.state.count("telegram", call.method)
    try:
        return _refusal(call) or METHODS[type(request)](call)
    except Exception:  # noqa: BLE001 - an unexpected request must not end the connection
        _log.exception("%s failed", call.method)
        return Refusal(500, "INTERNAL_SERVER_ERROR")


def _unwrap(request: Any) -> tuple[Any, bool]:
    """Return the innermost request, and whether it came with invokeWithoutUpdates."""
    without_updates = False
    while isinstance(request, _WRAPPERS):
        without_updates |= isinstance(request, f.InvokeWithoutUpdatesRequest)
        request = request.query
    return request, without_updates


def method_name(kind: type) -> str:
    """Return Telegram's name of a method without the namespace: `sendMessage` for SendMessageRequest."""
    name = kind.__name__.removesuffix("Request")
    return name[:1].lower() + name[1:]


def _refusal(call: Call) -> Refusal | None:
    kind = type(call.request)
    if kind not in METHODS:
        return Refusal(400, "METHOD_INVALID")
    if kind not in _WITHOUT_ACCOUNT and call.client.key.account is None:
        return Refusal(401, "AUTH_KEY_UNREGISTERED")
    return _flood_wait(call) if call.method in contact_methods.LOOKUP_METHODS else None


def _flood_wait(call: Call) -> Refusal | None:
    """Apply a rule's flood wait to the lookup methods. Magic recipients apply to sendMessage only."""
    fault = call.hub.state.fault("telegram", "", call.method, frozenset({"flood_wait"}))
    if fault is not None:
        call.account.throttled_until[call.method] = call.hub.clock() + (fault.value or 30)
    seconds = call.account.throttle_seconds(call.method, call.hub.clock())
    return Refusal(420, f"FLOOD_WAIT_{seconds}") if seconds else None
