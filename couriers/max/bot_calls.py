"""Shows in MAX that the bot is writing, and changes buttons. A press is answered there only with a new content of its
message: what a person has to know is a message of its own.
"""

import logging
from typing import Any

from core.updates.bot_calls import BotCall, ButtonChange, PressAnswer, TypingMark
from couriers.max.client import MaxClient, MaxRefused, MaxUnavailable
from couriers.max.content import files_of, keyboard
from couriers.sending import Content

log = logging.getLogger(__name__)


class MaxCalls:
    """Makes the calls as one bot."""

    def __init__(self, client: MaxClient) -> None:
        self._client = client

    async def make(self, call: BotCall) -> bool:
        """Make a call. Returns False if MAX was not reached. What MAX refuses is only logged. Raises TokenRefused."""
        try:
            match call:
                case TypingMark():
                    await self._client.call("POST", f"chats/{call.chat_id}/actions", body={"action": "typing_on"})
                case PressAnswer(alert=True):
                    await self._client.call("POST", "messages", {"user_id": str(call.user_id)}, {"text": call.text})
                case ButtonChange():
                    await self._change(call)
        except MaxRefused as refusal:
            log.debug("%s: MAX refused it: %s", call, refusal)
        except MaxUnavailable as fault:
            log.debug("%s is repeated: %s", call, fault)
            return False
        return True

    async def _change(self, call: ButtonChange) -> None:
        """Change the buttons of a message, as the answer to the press if that still waits. The text and the files stay.
        Raises MaxRefused, MaxUnavailable, TokenRefused.
        """
        mid = str(call.message_id)
        found = await self._client.call("GET", "messages", {"message_ids": mid})
        files = [file for message in found.get("messages") or () for file in files_of(message)]
        buttons = keyboard(Content(inline=call.rows))
        body: dict[str, Any] = {"attachments": [*files, buttons] if buttons else files}
        if call.press:
            try:
                await self._client.call("POST", "answers", {"callback_id": call.press}, {"message": body})
                return
            except MaxRefused as refusal:
                log.debug("%s: the press does not wait any more: %s", call, refusal)
        await self._client.call("PUT", "messages", {"message_id": mid}, body)
