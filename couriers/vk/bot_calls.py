"""Answers presses of buttons at VK, and shows that the bot is writing."""

import json
import logging

from core.updates.bot_calls import BotCall, TypingMark
from couriers.vk.client import VkClient
from couriers.vk.errors import VkRefused, VkUnavailable

log = logging.getLogger(__name__)


class VkCalls:
    """Makes the calls as one community."""

    def __init__(self, client: VkClient) -> None:
        self._client = client

    async def make(self, call: BotCall) -> bool:
        """Answer a press, which ends the wait that the button shows, or show that the bot is writing. Returns False if
        VK was not reached. What VK refuses is only logged. Raises TokenRefused.
        """
        method, parameters = _request(call)
        try:
            await self._client.call(method, **parameters)
        except VkRefused as refusal:
            log.debug("%s: VK refused it: %s", call, refusal)
        except VkUnavailable as fault:
            log.debug("%s is repeated: %s", call, fault)
            return False
        return True


def _request(call: BotCall) -> tuple[str, dict[str, str | int]]:
    """Return the method and its parameters."""
    if isinstance(call, TypingMark):
        return "messages.setActivity", {"peer_id": call.chat_id, "type": "typing"}
    answer = {"event_id": call.id, "user_id": call.user_id, "peer_id": call.chat_id}
    if call.text:
        answer["event_data"] = json.dumps({"type": "show_snackbar", "text": call.text}, ensure_ascii=False)
    return "messages.sendMessageEventAnswer", answer
