"""Acknowledges presses of buttons at VK."""

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
        """End the wait that a pressed button shows. Returns False if VK was not reached. A press that VK no longer
        knows is only logged. Raises TokenRefused.
        """
        try:
            await self._client.call(
                "messages.sendMessageEventAnswer", event_id=press.id, user_id=press.user_id, peer_id=press.chat_id
            )
        except VkRefused as refusal:
            log.debug("the press %s was not acknowledged: %s", press.id, refusal)
        except VkUnavailable as fault:
            log.debug("the press %s is acknowledged later: %s", press.id, fault)
            return False
        return True
