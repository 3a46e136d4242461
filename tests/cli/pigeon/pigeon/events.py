"""Makes an event of an arrived pigeon."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from core.updates.events import Arrival


def read_arrival(update: Mapping[str, Any], now: datetime) -> Arrival:
    person = {"user_id": update["from"], "is_bot": False, "chat_id": update["from"], "chat_type": "private"}
    text = {"event_text": update["text"], "event_date": now.isoformat(), "attachments": []}
    return Arrival({"id": str(update["id"]), "channel": "pigeon", "kind": "text", **person, **text})
