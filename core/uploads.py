"""Files that callers upload: stored on the server, so that couriers on any machine find them (docs/decisions/0109).

    POST /v1/files ─▶ Uploads.store ─▶ id ─▶ a delivery names it ─▶ Uploads.keep ─▶ a courier: Uploads.load

Guarantees: an id stands for one name and content, so the same file is stored once, however often it is uploaded. A
file is there with all its bytes or not at all. It expires; a delivery that names it lets it live until the delivery is
due and `KEPT` longer, and so does each attempt. The files of a tenant take at most a set number of bytes.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from pathlib import PurePath
from typing import IO

from msgspec import Struct
from redis.exceptions import RedisError

from core.errors import Conflict, Invalid, NotFound, StoreUnavailable
from core.model.clock import from_ms, in_ms, to_ms
from core.model.content import TYPES_BY_ENDING, AttachmentType
from core.model.user_files import safe_name
from core.redis.keys import KEYS
from core.redis.store import Store

UNUSED = timedelta(days=1)
"""Time to live of a file that no delivery names."""
KEPT = timedelta(days=7)
"""Time to live of a file after its delivery was due, or was attempted last."""

MiB = 2**20
_PART = 256 * 1024
"""Bytes of one key: others on the server have their turn, and a backup reads many keys at once."""
_HASH_BYTES = 16


class Upload(Struct, frozen=True):
    """A file that is there with all its bytes. `expires_at`: when it goes if no further delivery names it."""

    id: str
    name: str
    bytes: int
    expires_at: datetime

    @property
    def type(self) -> AttachmentType:
        """The form in which channels show the file, by the extension of its name."""
        return TYPES_BY_ENDING.get(PurePath(self.name).suffix.lower(), AttachmentType.DOCUMENT)


@dataclass(frozen=True, slots=True)
class _StoredUpload:
    upload: Upload
    parts: int


class Uploads:
    """The files of all tenants; one per process. `tenant_limit`: bytes of all files of a tenant."""

    def __init__(self, store: Store, tenant_limit: int = 256 * MiB) -> None:
        self._store = store
        self._tenant_limit = tenant_limit

    async def store(self, tenant: str, name: str, file: IO[bytes], owner: str = "") -> Upload:
        """Store a file that was received completely; the same one of the same owner again only lives longer. `owner`:
        what it goes with, "" if anybody may use it. Raises Invalid FILE_EMPTY, Conflict FILES_FULL, FILE_DELETED.
        """
        name = safe_name(name)
        upload_id, size = await asyncio.to_thread(_identity, f"{owner}\0{name}" if owner else name, file)
        if not size:
            raise Invalid("FILE_EMPTY", f"The file {name} is empty.")
        parts = -(-size // _PART)
        words = upload_id, name, size, parts, self._tenant_limit, in_ms(UNUSED)
        state, *used = await self._store.run_for_tenant("reserve_upload", tenant, *words)
        if state == "full":
            raise self._full(used[0])
        if state == "new":
            await self._write(tenant, upload_id, file)
        (stored,) = await self.keep(tenant, [upload_id])
        if stored is None:
            raise _deleted_meanwhile(name)
        return stored

    def _full(self, used: int) -> Conflict:
        return Conflict(
            "FILES_FULL",
            f"The uploaded files take {used / MiB:.0f} of {self._tenant_limit // MiB} MB. A file goes {KEPT.days} days"
            " after its last delivery; delete one, or raise ADA_FILES_TOTAL_MB.",
        )

    async def _write(self, tenant: str, upload_id: str, file: IO[bytes]) -> None:
        file.seek(0)
        number = 0
        while part := file.read(_PART):
            if not await self._store.run_for_tenant("write_upload_part", tenant, upload_id, number, part):
                return
            number += 1

    async def keep(self, tenant: str, ids: Sequence[str], until: datetime | None = None) -> list[Upload | None]:
        """Let files live until then at the least; return each, None for a file that is not there."""
        found = await self._keep(tenant, ids, to_ms(until) if until else 0)
        return [stored.upload if stored else None for stored in found]

    async def _keep(self, tenant: str, ids: Sequence[str], until: int) -> list[_StoredUpload | None]:
        rows = await self._store.run_for_tenant("keep_uploads", tenant, until, *ids)
        return [_stored(upload_id, row) if row else None for upload_id, row in zip(ids, rows, strict=True)]

    async def find(self, tenant: str, upload_id: str) -> Upload:
        """Return an uploaded file. Raises NotFound FILE_NOT_FOUND."""
        (found,) = await self.keep(tenant, [upload_id])
        if found is None:
            raise not_found(upload_id)
        return found

    async def load(self, tenant: str, upload_id: str, file: IO[bytes]) -> bool:
        """Write the content to a file, and let it live `KEPT` from now. Returns False if it is not there. Raises
        StoreError.
        """
        (stored,) = await self._keep(tenant, [upload_id], to_ms(datetime.now(UTC) + KEPT))
        if stored is None:
            return False
        try:
            return await self._read_parts(tenant, stored, file)
        except (RedisError, OSError, TimeoutError) as fault:
            raise StoreUnavailable(f"The file {stored.upload.name} could not be read: {fault}") from None

    async def _read_parts(self, tenant: str, stored: _StoredUpload, file: IO[bytes]) -> bool:
        """Read the parts over a connection of its own: its replies are bytes, and the calls of others do not wait
        behind them. Returns False if one is missing.
        """
        shard = self._store.shard_of_tenant(tenant)
        connection = await self._store.shard_map.of(shard).open(encoding=None)
        try:
            for number in range(stored.parts):
                key = KEYS["uploadpart"].at(shard, tenant, stored.upload.id, str(number))
                part = await connection.request("GET", key)
                if part is None:
                    return False
                file.write(part)
        finally:
            connection.close()
        return True

    async def delete(self, tenant: str, upload_id: str) -> None:
        """Remove a file at once; deliveries that name it are sent without it. Raises NotFound FILE_NOT_FOUND."""
        if not await self._store.run_for_tenant("delete_upload", tenant, upload_id):
            raise not_found(upload_id)


def not_found(upload_id: str) -> NotFound:
    return NotFound(
        "FILE_NOT_FOUND", f"There is no file {upload_id}: it was never uploaded, was deleted or has expired."
    )


def _deleted_meanwhile(name: str) -> Conflict:
    return Conflict("FILE_DELETED", f"The file {name} was deleted while it was stored; upload it again.")


def _identity(name: str, file: IO[bytes]) -> tuple[str, int]:
    """Return the id of a name and a content, and the size of the content."""
    hashed, size = blake2b(name.encode() + b"\0", digest_size=_HASH_BYTES), 0
    file.seek(0)
    while piece := file.read(_PART):
        hashed.update(piece)
        size += len(piece)
    return hashed.hexdigest(), size


def _stored(upload_id: str, row: Sequence[str]) -> _StoredUpload:
    name, size, parts, expires = row
    return _StoredUpload(Upload(upload_id, name, int(size), from_ms(expires)), int(parts))


__all__ = ["KEPT", "UNUSED", "Upload", "Uploads"]
