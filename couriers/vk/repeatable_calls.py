"""Calls of VK's API that may be made twice, with what their errors mean for the message."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from couriers.sending import (
    Attachment,
    AttachmentType,
    Deferred,
    FileNotLoaded,
    Halted,
    LoadedFile,
    MessageFiles,
    Outcome,
    Reason,
    Rejected,
    Scope,
    Transfers,
    label_of,
)
from couriers.vk import outcomes
from couriers.vk.client import FAILURES, VkClient
from couriers.vk.library import VKAPIError

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
        except VKAPIError as error:
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
