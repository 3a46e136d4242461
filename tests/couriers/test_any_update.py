"""Whatever a provider or somebody in its name sends, reading it gives an event that can be put, or nothing."""

import re
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from core.errors import Invalid
from core.updates.events import checked, decode, encode, lane_of
from couriers.max import events as max_events
from couriers.telegram_bot import events as telegram_events
from couriers.vk import events as vk_events

NOW = datetime(2026, 11, 22, tzinfo=UTC)
NAMES = re.findall(
    r"\w+",
    """
    message callback_query chat_member message_id date chat from text caption photo document voice animation id type
    title username first_name is_bot data new_chat_members old_chat_member new_chat_member status user invite_link
    creator media_group_id reply_to_message forward_origin file_id width height from_id peer_id user_id payload
    attachments fwd_messages action event_id conversation_message_id reply_message
    edited_message edit_date entities offset length url inline_query query chat_join_request bio left_chat_member
    sender_chat sender_user
    body mid seq markup recipient chat_type chat_id callback callback_id timestamp link token vcf_info max_info
    """,
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.sampled_from(["", "x", "member", "photo", "\ud800"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=6),
    max_leaves=20,
)
NEWER = ("edit_date", "entities", "left_chat_member", "sender_chat", "forward_origin", "query", "bio")
ABOUT = st.fixed_dictionaries({"id": VALUES, "type": st.sampled_from(["private", "group"])})
MESSAGE = st.fixed_dictionaries(
    {"message_id": VALUES, "date": VALUES, "chat": ABOUT, "from": ABOUT | VALUES, "text": VALUES},
    optional=dict.fromkeys(
        ("photo", "document", "new_chat_members", "media_group_id", "reply_to_message", *NEWER), VALUES
    ),
)
VK_MESSAGE = st.fixed_dictionaries(
    dict.fromkeys(("from_id", "peer_id", "date", "text"), VALUES),
    optional=dict.fromkeys(("payload", "attachments", "reply_message", "fwd_messages", "id"), VALUES),
)

MAX_USER = st.fixed_dictionaries({"user_id": st.integers(1, 9)}, optional={"name": VALUES, "is_bot": VALUES})
MAX_MESSAGE = st.fixed_dictionaries(
    {
        "sender": MAX_USER | VALUES,
        "recipient": st.fixed_dictionaries({"chat_id": VALUES, "chat_type": st.sampled_from(["dialog", "chat"])}),
        "body": st.fixed_dictionaries(dict.fromkeys(("mid", "text", "attachments", "markup"), VALUES)),
    },
    optional={"link": VALUES},
)
MAX_UPDATE = st.fixed_dictionaries(
    {"timestamp": st.integers(0, 2**42) | VALUES},
    optional={
        "message": MAX_MESSAGE,
        "callback": st.fixed_dictionaries({"user": MAX_USER, "callback_id": VALUES, "payload": VALUES}),
        "user": MAX_USER,
        "chat_id": VALUES,
        "payload": VALUES,
        "user_locale": VALUES,
        "inviter_id": VALUES,
    },
)


def can_be_put(event: Any) -> None:
    try:
        stored = checked({**event, "source": "bot"})
        assert decode(encode(stored)).keys() == stored.keys()
        lane_of(stored)
    except Invalid:
        pass  # a clear complaint


@given(st.sampled_from(telegram_events.ALLOWED), MESSAGE | VALUES)
def test_any_update_of_telegram_can_be_read(kind: str, content: Any) -> None:
    arrival = telegram_events.read_arrival({"update_id": 1, kind: content}, NOW)
    if arrival is None:
        return
    event = arrival.event
    if arrival.gathered_as:
        event = telegram_events.merge(arrival.gathered_as, [event])
    can_be_put(event)


@given(st.sampled_from(["message_new", "message_event"]), VK_MESSAGE | VALUES)
def test_any_event_of_vk_can_be_read(kind: str, content: Any) -> None:
    for wrapped in (content, {"message": content}):
        arrival = vk_events.read_arrival({"type": kind, "event_id": "e", "object": wrapped}, NOW)
        if arrival is not None:
            can_be_put(arrival.event)


@given(st.sampled_from(max_events.TYPES), MAX_UPDATE)
def test_any_update_of_max_can_be_read(kind: str, update: Any) -> None:
    arrival = max_events.read_arrival({**update, "update_type": kind}, NOW)
    if arrival is not None:
        can_be_put(arrival.event)
