"""Puts uploaded files on the disk of this machine while parcels need them, so that couriers see only paths.

Called by `couriers.sending.parcels.parcel_executor`.
"""

import asyncio
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import blake2b
from pathlib import Path

from msgspec.structs import replace

from core.errors import StoreError, StoreUnavailable
from core.model.content import Attachment, Content
from core.model.user_files import safe_name
from core.uploads import Uploads

_PREFIX = "ada-files-"

_Key = tuple[str, str]
"""Tenant and id of a file."""


class UploadedFiles:
    """One per process. A file is there once, however many parcels need it, and is removed after the last of them.
    `close` it at the end; what a killed process has left is removed by the next one.
    """

    def __init__(self, uploads: Uploads) -> None:
        self._uploads = uploads
        self._folder: Path | None = None
        self._users: Counter[_Key] = Counter()
        self._loads: dict[_Key, asyncio.Task[Path]] = {}

    @asynccontextmanager
    async def on_disk(self, tenant: str, content: Content | None) -> AsyncIterator[Content | None]:
        """Yield the content with paths in place of ids. A file that is gone has a path where nothing is, which
        couriers report as not shown. Raises StoreError.
        """
        keys = {(tenant, one.file) for one in content.attachments if one.file} if content else set()
        if content is None or not keys:
            yield content
            return
        self._users.update(keys)
        try:
            yield replace(content, attachments=[await self._with_path(tenant, one) for one in content.attachments])
        finally:
            self._users.subtract(keys)
            self._remove_unused(keys)

    async def _with_path(self, tenant: str, attachment: Attachment) -> Attachment:
        if not attachment.file:
            return attachment
        key = tenant, attachment.file
        if key not in self._loads:
            self._loads[key] = asyncio.create_task(self._load(*key, safe_name(attachment.name)))
        try:
            path = await asyncio.shield(self._loads[key])
        except StoreError:
            self._loads.pop(key, None)
            raise
        return Attachment(attachment.type, path=str(path), name=attachment.name)

    async def _load(self, tenant: str, upload_id: str, name: str) -> Path:
        """Load a file. The path is the same each time: some couriers remember by it what they have transferred."""
        try:
            path = self._root() / blake2b(f"{tenant}\0{upload_id}".encode(), digest_size=16).hexdigest() / name
            path.parent.mkdir(exist_ok=True)
            with path.open("wb") as file:
                is_there = await self._uploads.load(tenant, upload_id, file)
            if not is_there:
                path.unlink()
        except OSError as fault:
            raise StoreUnavailable(f"The file {name} cannot be written on this machine: {fault}") from None
        return path

    def _root(self) -> Path:
        """Return the folder, made at the first file. Its links are followed here: couriers refuse paths with links."""
        if self._folder is None:
            _remove_abandoned()
            self._folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-")).resolve()
        return self._folder

    def _remove_unused(self, keys: set[_Key]) -> None:
        """Remove files without users. A file that is still being loaded stays until its next user, or the end of the
        process.
        """
        for key in keys:
            load = self._loads.get(key)
            if self._users[key] <= 0 and load and load.done():
                del self._users[key], self._loads[key]
                shutil.rmtree(load.result().parent, ignore_errors=True)

    def close(self) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def _remove_abandoned() -> None:
    """Remove the folders of processes that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*-*"):
        try:
            os.kill(int(folder.name.removeprefix(_PREFIX).partition("-")[0]), 0)
        except ProcessLookupError:
            shutil.rmtree(folder, ignore_errors=True)
        except (OSError, ValueError):
            continue  # it runs as another user, or the folder is not ours
