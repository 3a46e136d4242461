"""The names of all fields that an event can have, of whatever channel; docs/events.md says what they mean. Pure."""

PERSON = ("user_id", "username", "first_name", "last_name")

EVENT_FIELDS = frozenset(
    {
        *("id", "channel", "kind", "source", "origin", "key_scopes"),
        *(*PERSON, "language_code", "is_bot", "is_forward"),
        *("chat_id", "chat_type", "chat_title", "chat_username"),
        *("message_id", "event_text", "event_date", "attachments"),
        *("callback_id", "callback_data"),
        *("reply_message_id", "reply_message_text", *(f"reply_{name}" for name in PERSON)),
        *(f"joined_{name}" for name in (*PERSON, "is_bot")),
        *("joined_user_ids", "joined_usernames", "joined_first_names", "joined_last_names", "joined_is_bots"),
        *(f"initiator_{name}" for name in (*PERSON, "language_code")),
        *("invite_link", "invite_link_creates_join_request"),
        *(f"invite_link_creator_{name}" for name in ("id", "username", "first_name")),
    }
)
"""Of a single event many of them are missing."""
