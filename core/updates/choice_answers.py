"""An answer by number: a text that is the number of a choice becomes the press of that button.

The person has no button to press: in an SMS, and in VK where a message has more buttons than a keyboard can have.
"""

from collections.abc import Mapping
from typing import Any

from core.deliveries.choice_store import Choices


async def answered(event: Mapping[str, Any], choices: Choices, tenant: str) -> dict[str, Any]:
    """Return the event as it is, or the press that its text means: then it has no `message_id`, as no message can be
    edited. A choice without data is a text that the button writes. Raises StoreError.
    """
    text, chat = str(event.get("event_text") or ""), str(event.get("chat_id") or event["user_id"])
    channel, is_text = str(event["channel"]), event.get("kind") == "text"
    button = await choices.button_of(tenant, channel, chat, text) if is_text else None
    if button is None:
        return dict(event)
    if not button.data:
        return {**event, "event_text": button.text}
    kept = {name: value for name, value in event.items() if name != "message_id"}
    return {**kept, "kind": "callback", "callback_data": button.data}
