"""Reads SMS that a gateway has received: mappings with `id`, `number` (E.164) and `text`. Pure."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from core.updates.events import Arrival
from couriers.sms import CHANNEL


def read_arrival(sms: Mapping[str, Any], now: datetime) -> Arrival:
    """Return the event. Gateways write the time in many ways, so its time is `now`."""
    person = {"user_id": sms["number"], "is_bot": False, "chat_id": sms["number"], "chat_type": "private"}
    text = {"event_text": sms["text"], "event_date": now.isoformat(), "attachments": []}
    return Arrival({"id": sms["id"], "channel": CHANNEL, "kind": "text", **person, **text})
