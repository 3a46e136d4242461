"""Files as attachments of MAX: each is transferred once for each delivery, not for each recipient.

The address of an upload is on another host. Source: dev.max.ru, POST/uploads.
"""

import re
from collections.abc import Sequence
from typing import Any

from couriers.max.calls import MaxCaller, MaxCallRefused
from couriers.sending import Attachment, AttachmentType, FileNotLoaded, MessageFiles, Transfers, label_of

_TYPES = {
    AttachmentType.PHOTO: ("image",),
    AttachmentType.ANIMATION: ("image", "video"),
    AttachmentType.VIDEO: ("video",),
    AttachmentType.AUDIO: ("audio",),
    AttachmentType.VOICE: ("audio",),
}
"""The types in which MAX shows a file, if its media type is one of them too; otherwise it is a `file`."""

_TOKEN = re.compile(r"[!-~]{1,512}")

Json = dict[str, Any]


class MaxUploads:
    """One per courier."""

    def __init__(self, calls: MaxCaller, files: MessageFiles) -> None:
        self._calls = calls
        self._files = files
        self._transfers = Transfers[Json | None]()

    async def attach(self, seed: str, attachments: Sequence[Attachment]) -> tuple[list[Json], list[str]]:
        """Return the attachments of a message, and the files that are not shown. Raises CallDeferred."""
        named = [await self._named(seed, one) for one in attachments]
        missing = [label_of(one) for one, name in zip(attachments, named, strict=True) if name is None]
        return [one for one in named if one is not None], missing

    async def _named(self, seed: str, attachment: Attachment) -> Json | None:
        """Return one attachment; None if it cannot be shown. Raises CallDeferred."""
        if not attachment.provider_id:
            return await self._transfers.get(seed, attachment, lambda: self._transfer(attachment))
        if not _TOKEN.fullmatch(attachment.provider_id):
            return None
        return _attachment(_TYPES.get(attachment.type, ("file",))[0], attachment.provider_id)

    async def _transfer(self, attachment: Attachment) -> Json | None:
        try:
            file = await self._files.load(attachment)
            main = file.media_type.partition("/")[0]
            kind = main if main in _TYPES.get(attachment.type, ()) else "file"
            server = await self._calls.call("POST", "uploads", {"type": kind})
            body = await self._calls.upload(str(server["url"]), file.name, file.media_type, file.data)
            return _attachment(kind, _token_of(server, body))
        except (FileNotLoaded, MaxCallRefused, LookupError, TypeError):  # the last two: MAX answers something else
            return None


def _attachment(kind: str, token: str) -> Json:
    return {"type": kind, "payload": {"token": token}}


def _token_of(server: Json, body: Any) -> str:
    """Return the token of a file: of a video or sound from the first step, of a picture in `photos`. Raises
    LookupError, TypeError.
    """
    if "token" in server:
        return str(server["token"])
    if photos := body.get("photos") if isinstance(body, dict) else None:
        return str(next(iter(photos.values()))["token"])
    return str(body["token"])
