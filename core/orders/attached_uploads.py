"""Lets uploaded files live until the deliveries that name them have ended, and refuses those that are gone."""

from collections.abc import Callable, Sequence
from datetime import datetime

from msgspec.structs import replace

from core.errors import Conflict, Invalid
from core.model.content import Attachment, Content
from core.uploads import KEPT, Upload, Uploads


class AttachedUploads:
    """One per process."""

    def __init__(self, uploads: Uploads, clock: Callable[[], datetime]) -> None:
        self._uploads = uploads
        self._clock = clock

    async def keep(self, tenant: str, content: Content, due: datetime | None) -> Content:
        """Return the content of a new delivery with the names of its files. Raises Invalid FILE_NOT_FOUND."""
        found = dict(await self._kept(tenant, content, due))
        for number, one in enumerate(content.attachments):
            if one.file and found[one.file] is None:
                detail = f"There is no file {one.file}: it was never uploaded, was deleted or has expired."
                raise Invalid("FILE_NOT_FOUND", detail, f"content.attachments.{number}.file")
        named = [_named(one, found.get(one.file)) for one in content.attachments]
        return replace(content, attachments=named) if found else content

    async def keep_again(self, tenant: str, content: Content, due: datetime | None) -> None:
        """Keep the files of a delivery for longer. Raises Conflict FILE_GONE for a delivery that is moved or retried
        without one of its files.
        """
        names = {one.file: one.name for one in content.attachments}
        for file, upload in await self._kept(tenant, content, due):
            if upload is None:
                raise Conflict("FILE_GONE", f"The file {names[file]} was deleted or has expired; send it anew.")

    async def _kept(self, tenant: str, content: Content, due: datetime | None) -> Sequence[tuple[str, Upload | None]]:
        """Return the files that are named, each None if it is not there."""
        if not (files := files_in(content)):
            return []
        now = self._clock()
        return list(zip(files, await self._uploads.keep(tenant, files, max(due or now, now) + KEPT), strict=True))


def files_in(content: Content) -> Sequence[str]:
    """Return the ids of the uploaded files of a content, each once."""
    return list(dict.fromkeys(one.file for one in content.attachments if one.file))


def _named(attachment: Attachment, upload: Upload | None) -> Attachment:
    return replace(attachment, name=upload.name) if upload else attachment
