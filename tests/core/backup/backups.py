"""Backups in memory."""

import io
from collections.abc import Callable
from typing import IO

from redis.asyncio import Redis

from core.backup import ArchiveHeader, ArchiveReader, ArchiveWriter, check_archive, restore, take_snapshot
from core.backup.archive import StoredValue
from core.redis.connection import NAME, ServerAddress
from core.redis.keys import layout_of_shards
from tests.support.servers import Server


async def backup(server: Server, layout: int | None = None, shards: int = 1) -> io.BytesIO:
    file = io.BytesIO()
    header = ArchiveHeader(1, layout or layout_of_shards(shards), shards, 0)
    await take_snapshot(ServerAddress.parse(server.url), ArchiveWriter(file, header))
    return file


async def put_back(file: IO[bytes], server: Server, *, replaces: bool = False) -> None:
    """Restore the backup as the command does."""
    check_archive(file, 1)
    await restore(ArchiveReader(file), ServerAddress.parse(server.url), replaces=replaces)


async def has_no_connection_of_ada(client: Redis) -> bool:
    """Return whether the server has seen the end of all."""
    return all(one["name"] != NAME for one in await client.client_list())


class WatchedArchive(ArchiveWriter):
    """Calls `then` with each key it gets. `file`: what was written."""

    def __init__(self, then: Callable[[bytes], object], shards: int = 1) -> None:
        self.file = io.BytesIO()
        super().__init__(self.file, ArchiveHeader(1, layout_of_shards(shards), shards, 0))
        self._then = then

    def add(self, entry: StoredValue) -> None:
        super().add(entry)
        self._then(entry.key)

    def values(self) -> dict[bytes, object]:
        """Return key → the value of its last entry."""
        self.file.seek(0)
        return {one.key: one.value for one in ArchiveReader(self.file)}
