"""Downloads the files of a message by the addresses that the provider gives."""

from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple

from core.model.content import Attachment, AttachmentType
from core.threads.files import ReceivedFile
from couriers.sending.content.files import FileNotLoaded, MessageFiles


class LinkedFile(NamedTuple):
    """`url`: "" if the provider gives none. `name`: "" for none."""

    type: AttachmentType
    name: str
    url: str


async def download(files: MessageFiles, linked: Sequence[LinkedFile]) -> AsyncIterator[ReceivedFile]:
    """Emit the files that can be downloaded and are not too large."""
    for one in linked:
        if one.url:
            try:
                loaded = await files.load(Attachment(one.type, url=one.url))
            except FileNotLoaded:
                continue
            yield ReceivedFile(one.type, one.name, loaded.data)
