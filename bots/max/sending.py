"""Sends the replies of a dialog through MAX's Bot API, and decides what each of its refusals means."""

import logging
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from bots.dialog_event import DialogEvent
from bots.replies import Buttons, Reply
from core.model.content import ParseMode
from core.model.text.text_marks import cut_text
from core.orders.following import NotSent, SendLater, StatusTask
from couriers.max.client import MaxClient, MaxRefused, MaxTokenRefused, MaxUnavailable
from couriers.max.content import callback_button, keyboard_of

log = logging.getLogger(__name__)

_LONGEST_TEXT = 4000
_FIRST_PAUSE = 1.0

Json = dict[str, Any]


class Replies:
    """Sends as one bot."""

    def __init__(self, client: MaxClient) -> None:
        self._client = client

    async def send(self, event: DialogEvent, reply: Reply) -> None:
        """Send one reply. MAX has no notice over the chat: it is a message. Raises SendLater, NotSent: then nothing was
        shown, as far as is known.
        """
        try:
            if reply.text:
                await self._show(event, reply)
            if reply.notice:
                await self._call("POST", "messages", {"user_id": event.address}, _body(reply.notice, ()))
        except MaxRefused as refusal:
            log.info("no answer to %s: %s", event.address, refusal)

    async def _show(self, event: DialogEvent, reply: Reply) -> None:
        """Change the message that the reply names, or send a new one if there is none or it cannot be changed."""
        body = _body(reply.text, reply.buttons)
        if not (reply.edit and await self._is_changed(event.callback, reply.edit, body)):
            await self._call("POST", "messages", {"user_id": event.address}, body)

    async def edit(self, followed: StatusTask, reply: Reply) -> bool:
        """Change a message. Returns False if it cannot be changed, now and later. Raises SendLater, NotSent."""
        return await self._is_changed("", followed.message, _body(reply.text, reply.buttons))

    async def _is_changed(self, press: str, mid: str, body: Json) -> bool:
        """Change a message, as the answer to the press of its button if there was one, so that the button does not
        wait. Returns False if MAX refuses both.
        """
        ways = [("POST", "answers", {"callback_id": press}, {"message": body})] if press else []
        for way in (*ways, ("PUT", "messages", {"message_id": mid}, body)):
            try:
                await self._call(*way)
            except MaxRefused:
                continue
            return True
        return False

    async def _call(self, method: str, path: str, query: Mapping[str, str], body: Json) -> None:
        """Make a call of the API. Raises SendLater, NotSent, MaxRefused."""
        try:
            await self._client.call(method, path, query, body)
        except MaxUnavailable as fault:
            if fault.is_throttle:
                raise SendLater(timedelta(seconds=fault.after or _FIRST_PAUSE)) from None
            raise NotSent(f"MAX did not take a message ({fault})") from None
        except MaxTokenRefused as refusal:
            raise NotSent(str(refusal)) from None


def _body(text: str, buttons: Buttons) -> Json:
    rows = [[callback_button(one.label, one.data) for one in row] for row in buttons]
    return {
        "text": cut_text(text, ParseMode.PLAIN, _LONGEST_TEXT),
        "attachments": [keyboard_of(rows)] if rows else [],
    }
