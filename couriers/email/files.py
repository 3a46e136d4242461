"""The files of a delivery as parts of its mails, read once for all recipients."""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from couriers.email import Invalid, MailFile
from couriers.sending import Attachment, FileNotLoaded, MessageFiles, label_of


class Attached(NamedTuple):
    """`not_shown`: as in `couriers.sending.Sent`."""

    files: Sequence[MailFile] = ()
    not_shown: Sequence[str] = ()


class MailFiles:
    """One per courier. The files of the delivery used last are kept. `most_bytes`: of all files of one mail."""

    def __init__(self, files: MessageFiles) -> None:
        self._files = files
        self._last: tuple[str, asyncio.Task[Attached]] | None = None

    async def of(self, seed: str, attachments: Sequence[Attachment]) -> Attached:
        if not attachments:
            return Attached()
        if self._last is None or self._last[0] != seed:
            self._last = seed, asyncio.create_task(self._load(attachments))
        return await asyncio.shield(self._last[1])

    async def _load(self, attachments: Sequence[Attachment]) -> Attached:
        loaded: list[MailFile] = []
        missing: list[str] = []
        for attachment in attachments:
            try:
                loaded.append(await self._part(attachment, sum(len(file.data) for file in loaded)))
            except (FileNotLoaded, Invalid):
                missing.append(label_of(attachment))
        return Attached(loaded, missing)

    async def _part(self, attachment: Attachment, used: int) -> MailFile:
        file = await self._files.load(attachment)
        if used + len(file.data) > self._files.most_bytes:
            raise FileNotLoaded("the mail would be too large")
        return MailFile(file.name, file.media_type, file.data)
