"""The content of a message besides its text, as parameters of messages.send, and the calls before it: uploads, edits
and removals.

These calls may be made twice, so an error of theirs never leaves open whether the message was sent.

Messages of a dialog are named by their number in it (`conversation_message_id`): a press names nothing else. A button
below a message is a callback button: a press is an event, and the message can be edited. Its data is in the payload,
`{"data": …}`. Source: dev.vk.com, methods messages.send, messages.edit, messages.delete,
messages.getByConversationMessageId, "Keyboards for bots".
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from couriers.sending import (
    Attachment,
    AttachmentType,
    Button,
    Content,
    Deferred,
    Feature,
    FileNotLoaded,
    Halted,
    LoadedFile,
    MessageFiles,
    Outcome,
    ParseMode,
    Reason,
    Rejected,
    Scope,
    Sent,
    Transfers,
    cut_text,
    label_of,
)
from couriers.vk import outcomes
from couriers.vk.calls import MessageKey, Parameters
from couriers.vk.channel import KEYBOARD
from couriers.vk.client import FAILURES, VkClient, VkError

LONGEST_TEXT = 4096

MOST_ATTACHMENTS = 10
"""Of one message."""

_OF_VK = re.compile(r"(?:photo|doc|video|audio|wall|poll|market|story)-?[0-9]+_[0-9]+(?:_\w+)?")


class VkCallRefused(Exception):
    """VK refuses this call for good; other calls may go on."""


class VkCallDeferred(Exception):
    """This call cannot be made now, so the message is not sent now. `outcome`: what that means for the message."""

    def __init__(self, outcome: Deferred | Halted) -> None:
        super().__init__(outcome.detail)
        self.outcome = outcome


class RepeatableCalls:
    """Makes the calls, and turns a failure into what it means for the message."""

    def __init__(self, client: VkClient) -> None:
        self._client = client

    async def call(self, method: str, **parameters: Any) -> Any:
        """Return the response of a call. Raises CallRefused, CallDeferred."""
        outcome: Outcome = outcomes.NO_ANSWER
        try:
            body: Any = await self._client.request(method, parameters)
            if isinstance(body, dict) and "response" in body:
                return body["response"]
        except VkError as error:
            outcome = outcomes.peer_outcome(error.code)
        except FAILURES as error:
            outcome = outcomes.outcome_of_error(error)
        if isinstance(outcome, Rejected):
            raise VkCallRefused(outcome.detail)
        raise VkCallDeferred(_repeatable(outcome))

    async def upload(self, url: str, field: str, name: str, media_type: str, data: bytes) -> dict[str, Any]:
        """Transfer a file to an address that VK named. Raises CallRefused, CallDeferred."""
        try:
            answer = await self._client.upload(url, field, name, media_type, data)
        except FAILURES as error:
            raise VkCallDeferred(_no_host(error)) from None
        if not isinstance(answer, dict) or answer.get("error"):
            raise VkCallRefused("the upload was refused")
        return answer


def _no_host(error: Exception) -> Deferred:
    """Return the outcome for a host of uploads that cannot be reached: other messages go on, by another host."""
    return Deferred(Reason.PROVIDER_DOWN, None, Scope.RECIPIENT, type(error).__name__)


def _repeatable(outcome: Outcome) -> Deferred | Halted:
    """Return what an outcome means if the call may be made twice: nothing is unclear then. A limit per chat is meant
    for messages.send.
    """
    match outcome:
        case Halted():
            return outcome
        case Deferred(scope=Scope.CHAT):
            return replace(outcome, scope=Scope.ACCOUNT, is_guess=False)
        case Deferred():
            return outcome
    return Deferred(Reason.PROVIDER_DOWN, None, Scope.RECIPIENT, getattr(outcome, "detail", ""))


class VkUploads:
    """Makes attachments of files: each is transferred once for each delivery, not for each recipient. A video, an
    animation or a sound is a document. Source: dev.vk.com, "Uploading files to the server".
    """

    def __init__(self, calls: RepeatableCalls, files: MessageFiles) -> None:
        self._calls = calls
        self._files = files
        self._transfers = Transfers[str]()

    async def attach(self, seed: str, attachments: Sequence[Attachment], peer: int) -> tuple[str, list[str]]:
        """Return the parameter `attachment`, and the files that are not shown. Raises CallDeferred."""
        named = [await self._named(seed, one, peer) for one in attachments[:MOST_ATTACHMENTS]]
        missing = [one for one, name in zip(attachments, named, strict=False) if not name]
        return ",".join(filter(None, named)), [label_of(one) for one in (*missing, *attachments[MOST_ATTACHMENTS:])]

    async def _named(self, seed: str, attachment: Attachment, peer: int) -> str:
        """Return the attachment's name at VK; "" if it cannot be shown. Raises CallDeferred."""
        if attachment.provider_id:
            return attachment.provider_id if _OF_VK.fullmatch(attachment.provider_id) else ""
        return await self._transfers.get(seed, attachment, lambda: self._transfer(attachment, peer))

    async def _transfer(self, attachment: Attachment, peer: int) -> str:
        try:
            file = await self._files.load(attachment)
            if attachment.type is AttachmentType.PHOTO and file.media_type.startswith("image/"):
                return await self._photo(file, peer)
            return await self._document(file, attachment, peer)
        except (FileNotLoaded, VkCallRefused, LookupError, TypeError):  # the last two: VK answers something else
            return ""

    async def _photo(self, file: LoadedFile, peer: int) -> str:
        server = await self._calls.call("photos.getMessagesUploadServer", peer_id=peer)
        uploaded = await self._calls.upload(server["upload_url"], "photo", file.name, file.media_type, file.data)
        fields = {name: uploaded[name] for name in ("server", "photo", "hash")}
        (saved,) = await self._calls.call("photos.saveMessagesPhoto", **fields)
        return _name("photo", saved)

    async def _document(self, file: LoadedFile, attachment: Attachment, peer: int) -> str:
        kind = "audio_message" if attachment.type is AttachmentType.VOICE else "doc"
        server = await self._calls.call("docs.getMessagesUploadServer", type=kind, peer_id=peer)
        uploaded = await self._calls.upload(server["upload_url"], "file", file.name, file.media_type, file.data)
        saved = await self._calls.call("docs.save", file=uploaded["file"], title=file.name)
        return _name("doc", saved[saved["type"]])


def attached(attachment: dict[str, Any]) -> str:
    """Return an attachment of a message as an edit that keeps it names it; "" for one without an id, such as the
    preview of a link. A voice is a document.
    """
    kind = str(attachment["type"])
    file = attachment.get(kind) or {}
    return _name("doc" if kind == "audio_message" else kind, file) if {"owner_id", "id"} <= file.keys() else ""


def _name(kind: str, saved: dict[str, object]) -> str:
    key = saved.get("access_key")
    return f"{kind}{saved['owner_id']}_{saved['id']}" + (f"_{key}" if key else "")


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
    if not number.isdecimal():
        return ()
    replied = {"peer_id": peer, "conversation_message_ids": [int(number)], "is_reply": True}
    return (("forward", json.dumps(replied)),)
