"""Reads events of a VK community, which are the same over its long poll and its callback API. Pure.

Source: dev.vk.com, "Community events".
"""

from collections.abc import Mapping
from typing import Any

from core.updates.updates import Update

CHANNEL = "vk"
SOURCE = "community"
"""The ids of events are unique in the community, however they arrive."""


def update_of(event: Mapping[str, Any]) -> Update | None:
    """The update of an event; None unless a person writes a private message. Never raises, whatever the event is."""
    content = event.get("object") if event.get("type") == "message_new" else None
    message = content.get("message") if isinstance(content, dict) else None
    event_id = event.get("event_id")
    if not isinstance(message, dict) or not isinstance(event_id, str) or not event_id:
        return None
    person, text = message.get("from_id"), message.get("text")
    if not isinstance(person, int) or person <= 0 or message.get("peer_id", person) != person:
        return None
    return Update(event_id[:128], CHANNEL, str(person), text=text if isinstance(text, str) else "")
