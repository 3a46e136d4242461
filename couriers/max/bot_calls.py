"""Shows in MAX that the bot is writing. A press is answered there only with a new content of its message."""

import logging

from core.updates.bot_calls import BotCall, TypingMark
from couriers.max.client import MaxClient
from couriers.max.errors import MaxRefused, MaxUnavailable

log = logging.getLogger(__name__)


class MaxCalls:
    """Makes the calls as one bot."""

    def __init__(self, client: MaxClient) -> None:
        self._client = client

    async def make(self, call: BotCall) -> bool:
        """Show that the bot is writing. Returns False if MAX was not reached. What MAX refuses is only logged. Raises
        TokenRefused.
        """
        if not isinstance(call, TypingMark):
            return True
        try:
            await self._client.call("POST", f"chats/{call.chat_id}/actions", body={"action": "typing_on"})
        except MaxRefused as refusal:
            log.debug("%s: MAX refused it: %s", call, refusal)
        except MaxUnavailable as fault:
            log.debug("%s is repeated: %s", call, fault)
            return False
        return True
