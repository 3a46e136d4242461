"""Receives what people write to a VK community: by long poll, or by callbacks to the HTTP API.

Answers presses of buttons, shows that the bot is writing, changes buttons, and fetches files.
"""

import json
import logging
from collections.abc import AsyncIterator

from msgspec.structs import replace

from core.threads.files import MOST_BYTES, FilesUnavailable, ReceivedFile
from core.updates.bot_calls import BotCall, ButtonChange, PressAnswer, TypingMark
from core.updates.events import Event
from couriers.receiving.receiver import Receiver, download_linked
from couriers.sending import Content
from couriers.sending.files import MessageFiles
from couriers.vk.channel import LONGEST_LABEL
from couriers.vk.client import TokenRefused, VkClient, VkLongPoll, VkRefused, VkUnavailable
from couriers.vk.content import attached, keyboard
from couriers.vk.courier import Settings
from couriers.vk.events import files_of, url_of

log = logging.getLogger(__name__)

_LONGEST = 90
"""Characters of a snackbar."""


class VkCalls:
    """Makes the calls as one community."""

    def __init__(self, client: VkClient) -> None:
        self._client = client

    async def make(self, call: BotCall) -> bool:
        """Answer a press, which ends the wait that the button shows, show that the bot is writing, or change the
        buttons of a message. Returns False if VK was not reached. What VK refuses is only logged. Raises TokenRefused.
        """
        try:
            method, parameters = await self._edit(call) if isinstance(call, ButtonChange) else _request(call)
            await self._client.call(method, **parameters)
        except VkRefused as refusal:
            log.debug("%s: VK refused it: %s", call, refusal)
        except VkUnavailable as fault:
            log.debug("%s is repeated: %s", call, fault)
            return False
        return True

    async def _edit(self, call: ButtonChange) -> tuple[str, dict[str, str | int]]:
        """Return the edit of a message that keeps its text and its files: VK removes what an edit does not name."""
        place: dict[str, str | int] = {"peer_id": call.chat_id, "conversation_message_ids": call.message_id}
        found = await self._client.call("messages.getByConversationMessageId", **place)
        (message,) = found["items"]
        files = ",".join(filter(None, map(attached, message.get("attachments") or ())))
        place = {"peer_id": call.chat_id, "conversation_message_id": call.message_id}
        rows = [[replace(one, text=one.text[:LONGEST_LABEL]) for one in row] for row in call.rows]
        kept = {"message": message.get("text") or "", **({"attachment": files} if files else {})}
        buttons = {"keyboard": keyboard(Content(inline=rows))} if rows else {}
        return "messages.edit", {**place, **kept, **buttons}


def _request(call: PressAnswer | TypingMark) -> tuple[str, dict[str, str | int]]:
    """Return the method and its parameters."""
    if isinstance(call, TypingMark):
        return "messages.setActivity", {"peer_id": call.chat_id, "type": "typing"}
    answer = {"event_id": call.id, "user_id": call.user_id, "peer_id": call.chat_id}
    if call.text:
        answer["event_data"] = json.dumps({"type": "show_snackbar", "text": call.text[:_LONGEST]}, ensure_ascii=False)
    return "messages.sendMessageEventAnswer", answer


class VkFiles:
    """Fetches the files of messages to one community. VK gives no address of a video."""

    def __init__(self, client: VkClient, files: MessageFiles) -> None:
        self._client = client
        self._files = files

    async def fetch(self, event: Event, most: int) -> AsyncIterator[ReceivedFile]:
        """Emit the first files of a message. Raises FilesUnavailable."""
        place = {"peer_id": event["chat_id"], "conversation_message_ids": event["message_id"]}
        try:
            found = await self._client.call("messages.getByConversationMessageId", **place)
        except VkRefused:
            return
        except VkUnavailable as fault:
            raise FilesUnavailable(str(fault)) from None
        urls = [url_of(file) for item in found["items"] for file in files_of(item)]
        async for one in download_linked(self._files, event, most, urls):
            yield one

    async def close(self) -> None:
        await self._files.close()
        await self._client.close()


def open_receiver(settings: Settings, *, polls: bool) -> Receiver:
    """Return the community; with ADA_VK_LONG_POLL, or `polls`, it is polled."""
    client = VkClient(settings.token, settings.api_url)
    source = VkLongPoll(client) if polls or settings.long_poll else None
    files = VkFiles(client, MessageFiles(MOST_BYTES, allow_private=settings.allow_private))
    return Receiver(client, TokenRefused, files.close, source=source, make=VkCalls(client).make, fetch=files.fetch)
