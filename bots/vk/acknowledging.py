"""Answers presses of buttons at VK."""

import json
import logging

from core.updates.presses import Press
from providers.vk.client import Client
from providers.vk.errors import VkRefused, VkUnavailable

log = logging.getLogger(__name__)


class Acknowledging:
    """Acknowledges presses as one community."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def acknowledge(self, press: Press) -> bool:
        """Answer the press, which ends the wait that the button shows. Returns False if VK was not reached. A press
        that VK no longer knows is only logged. Raises TokenRefused.
        """
        asked = {"event_id": press.id, "user_id": press.user_id, "peer_id": press.chat_id}
        if press.text:
            asked["event_data"] = json.dumps({"type": "show_snackbar", "text": press.text}, ensure_ascii=False)
        try:
            await self._client.call("messages.sendMessageEventAnswer", **asked)
        except VkRefused as refusal:
            log.debug("the press %s was not acknowledged: %s", press.id, refusal)
        except VkUnavailable as fault:
            log.debug("the press %s is acknowledged later: %s", press.id, fault)
            return False
        return True
