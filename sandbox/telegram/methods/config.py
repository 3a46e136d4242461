"""The methods of `help`, and others without an effect here."""

from typing import Any

from telethon.tl import types

from sandbox.telegram.methods.replies import Reply
from sandbox.telegram.state.hub import Call, now

DC = 2  # the only data centre; client_trust.py sets it in the client's session
_DAY = 86_400


def get_config(call: Call) -> Reply:
    """Handle help.getConfig: the only data centre is this server, at the address that the client connected to."""
    return types.Config(date=now(), expires=now() + _DAY, dc_options=[_option(call)], **_LIMITS)


def _option(call: Call) -> Any:
    host, port = call.client.address
    return types.DcOption(DC, host, port, static=True, ipv6=":" in host or None)


def get_nearest_dc(call: Call) -> Reply:
    """Handle help.getNearestDc."""
    return types.NearestDc("RU", this_dc=DC, nearest_dc=DC)


def accept(call: Call) -> Reply:
    """Return boolTrue for methods without an effect here (typing, online status)."""
    return True


def read_history(call: Call) -> Reply:
    """Handle messages.readHistory: it has no effect."""
    return types.messages.AffectedMessages(pts=call.account.last_message_id, pts_count=0)


_LIMITS: dict[str, Any] = {
    "test_mode": True,
    "this_dc": DC,
    "dc_txt_domain_name": "localhost",
    "chat_size_max": 200,
    "megagroup_size_max": 200_000,
    "forwarded_count_max": 100,
    "online_update_period_ms": 210_000,
    "offline_blur_timeout_ms": 5_000,
    "offline_idle_timeout_ms": 30_000,
    "online_cloud_timeout_ms": 300_000,
    "notify_cloud_delay_ms": 30_000,
    "notify_default_delay_ms": 1_500,
    "push_chat_period_ms": 60_000,
    "push_chat_limit": 2,
    "edit_time_limit": 172_800,
    "revoke_time_limit": 2_147_483_647,
    "revoke_pm_time_limit": 2_147_483_647,
    "rating_e_decay": 2_419_200,
    "stickers_recent_limit": 200,
    "channels_read_media_period": 604_800,
    "call_receive_timeout_ms": 20_000,
    "call_ring_timeout_ms": 90_000,
    "call_connect_timeout_ms": 30_000,
    "call_packet_timeout_ms": 10_000,
    "me_url_prefix": "https://t.me/",
    "caption_length_max": 1_024,
    "message_length_max": 4_096,
    "webfile_dc_id": DC,
}
