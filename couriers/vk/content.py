"""The content of a message besides its text, as parameters of messages.send, and the edits and removals before it.

Messages of a dialog are named by their number in it (`conversation_message_id`): a press names nothing else. A button
below a message is a callback button: a press is an event, and the message can be edited. Its data is in the payload,
`{"data": …}`. Source: dev.vk.com, methods messages.send, messages.edit, messages.delete,
messages.getByConversationMessageId, "Keyboards for bots".
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from couriers.sending import Button, Content, Feature, Outcome, ParseMode, Sent, cut_text
from couriers.vk.calls import MessageKey, Parameters
from couriers.vk.channel import KEYBOARD
from couriers.vk.repeatable_calls import RepeatableCalls, VkCallDeferred, VkCallRefused, VkUploads, attached

LONGEST_TEXT = 4096


def keyboard(content: Content) -> str:
    """Return the parameter `keyboard` of messages.send; "" to leave the keyboard as it is. Inline buttons win."""
    if rows := KEYBOARD.rows(content.inline):
        return _json([[_inline_button(button) for button in row] for row in rows], inline=True)
    if content.reply is not None:
        return _json([[_text_button(label) for label in row] for row in KEYBOARD.rows(content.reply)], inline=False)
    return ""


def _json(rows: Sequence[Any], *, inline: bool) -> str:
    return json.dumps({"inline": inline, "one_time": False, "buttons": rows}, ensure_ascii=False)


def _payload(button: Button) -> str:
    return json.dumps({"data": button.data}, ensure_ascii=False)


def _inline_button(button: Button) -> Mapping[str, Any]:
    if button.url:
        return {"action": {"type": "open_link", "label": button.text, "link": button.url}}
    return {"action": {"type": "callback", "label": button.text, "payload": _payload(button)}}


def _text_button(label: str) -> Mapping[str, Any]:
    return {"action": {"type": "text", "label": label}}


@dataclass(frozen=True, slots=True)
class VkDraft:
    """A message to send. `not_shown`: as in `couriers.sending.Sent`. `otherwise`: what to send if VK refuses it because
    of the message it replies to.
    """

    key: MessageKey
    not_shown: tuple[str, ...] = ()
    otherwise: "VkDraft | None" = None


@dataclass(frozen=True, slots=True)
class _Shared:
    """The parameters that all recipients of a delivery share."""

    seed: str
    content: Content
    more: Parameters
    not_shown: tuple[str, ...]


class Contents:
    """Makes drafts of messages; edits and removes those before them."""

    def __init__(self, calls: RepeatableCalls, uploads: VkUploads) -> None:
        self._calls = calls
        self._uploads = uploads
        self._last: _Shared | None = None

    async def draft(self, key: MessageKey, content: Content, seed: str) -> VkDraft | Outcome:
        """Upload the files, remove and edit; the draft of what is still to be sent, otherwise the outcome."""
        try:
            return await self._draft(key, content, seed)
        except VkCallDeferred as deferred:
            return deferred.outcome

    async def _draft(self, key: MessageKey, content: Content, seed: str) -> VkDraft | Outcome:
        shared = self._last
        if shared is None or shared.seed != seed or shared.content != content:
            shared = self._last = await self._share(key.peer, content, seed)
        not_shown = shared.not_shown
        text = cut_text(key.text, ParseMode.PLAIN, LONGEST_TEXT)
        if text != key.text:
            not_shown += (Feature.TEXT_END,)
        if content.remove and not await self._is_removed(key.peer, content.remove):
            not_shown += (Feature.REMOVE,)
        key = replace(key, text=text, more=shared.more)
        if content.edit and await self._is_edited(key, content.edit):
            return Sent(content.edit, not_shown=not_shown)
        if reply := _reply(key.peer, content.reply_to):
            return VkDraft(replace(key, more=key.more + reply), not_shown, VkDraft(key, (*not_shown, Feature.REPLY_TO)))
        return VkDraft(key, not_shown)

    async def _share(self, peer: int, content: Content, seed: str) -> _Shared:
        attachment, not_shown = await self._uploads.attach(seed, content.attachments, peer)
        if content.inline and content.reply is not None:
            not_shown.append(Feature.REPLY)
        parameters = {"attachment": attachment, "keyboard": keyboard(content)}
        more = tuple((name, value) for name, value in parameters.items() if value)
        return _Shared(seed, content, more, tuple(not_shown))

    async def _is_edited(self, key: MessageKey, number: str) -> bool:
        """Edit a message; return False if VK refuses: it is too old, or not of the community. Without files it keeps
        those that are there.
        """
        message = {"peer_id": key.peer, "conversation_message_id": number, "message": key.text}
        more = dict(key.more)
        try:
            if "attachment" not in more and (kept := await self._files_of(key.peer, number)):
                more["attachment"] = kept
            await self._calls.call("messages.edit", **message, **more)
        except VkCallRefused:
            return False
        return True

    async def _files_of(self, peer: int, number: str) -> str:
        """Return the files of a message as the parameter `attachment`. Raises CallRefused, CallDeferred."""
        found = await self._calls.call(
            "messages.getByConversationMessageId", peer_id=peer, conversation_message_ids=number
        )
        named = [attached(one) for item in found["items"] for one in item.get("attachments") or ()]
        return ",".join(filter(None, named))

    async def _is_removed(self, peer: int, number: str) -> bool:
        try:
            removed = await self._calls.call("messages.delete", peer_id=peer, cmids=number, delete_for_all=1)
        except VkCallRefused:
            return False
        return isinstance(removed, list) and all(one.get("response") == 1 for one in removed)


def _reply(peer: int, number: str) -> Parameters:
    """Return the parameter that makes a message a reply."""
    if not number.isdecimal():
        return ()
    replied = {"peer_id": peer, "conversation_message_ids": [int(number)], "is_reply": True}
    return (("forward", json.dumps(replied)),)
