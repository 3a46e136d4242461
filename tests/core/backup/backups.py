"""Backups in memory."""

import io
from typing import IO

from core.backup import ArchiveHeader, ArchiveReader, ArchiveWriter, check_archive, restore, take_snapshot
from core.redis.connection import ServerAddress
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
