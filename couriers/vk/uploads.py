"""Photos and documents as attachments of VK: each file is transferred once for each delivery, not for each recipient.

A video, an animation or a sound is a document. Source: dev.vk.com, "Uploading files to the server".
"""

import re
from collections.abc import Sequence
from typing import Any

from couriers.sending import Attachment, AttachmentType, FileNotLoaded, LoadedFile, MessageFiles, Transfers, label_of
from couriers.vk.repeatable_calls import RepeatableCalls, VkCallRefused

MOST_ATTACHMENTS = 10
"""Of one message."""

_OF_VK = re.compile(r"(?:photo|doc|video|audio|wall|poll|market|story)-?[0-9]+_[0-9]+(?:_\w+)?")


class VkUploads:
    """One per courier."""

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
