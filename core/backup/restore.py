"""Restores a backup: all of it in one step, or nothing.

    check the whole file ─▶ look at the database ─▶ write into an empty one beside it ─▶ SWAPDB ─▶ empty the other one

Until the swap nothing in the database of Ada has changed. The other database has a mark, before the swap and after it,
so the next restore removes what an interrupted one has left there.
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import IO

from redis.exceptions import RedisError

from core.backup.archive import (
    PATIENCE,
    ArchiveFault,
    ArchiveReader,
    Command,
    End,
    StoredValue,
    check_bytes,
    check_unused,
    explain,
    writing,
)
from core.backup.key_space import primary_of
from core.errors import SetupError
from core.model.text.characters import counted
from core.redis.connection import Reply, ServerAddress, StoreConnection, Word
from core.redis.keys import is_ours, layout_of_shards
from core.redis.topology import SentinelSet

_MARK = "ada:restore"
"""A key in the database beside that of Ada."""
_MOST_DATABASES = 1024
_PAGE = 500
"""Commands that are sent at once."""
_RIGHTS = "+swapdb +flushdb +client|list"


def check_archive(file: IO[bytes], shards: int) -> End:
    """Read the whole file, twice, and leave it at its start. Raises ArchiveFault if it is damaged, or not for this
    version and these settings.
    """
    file.seek(0)
    archive = ArchiveReader(file)
    layout, needed = archive.header.layout, archive.header.shards
    if layout != (known := layout_of_shards(needed)):
        raise ArchiveFault(
            f"the backup has layout {layout}, this version of Ada works with {known}; use the version that made it"
        )
    if needed != shards:
        raise ArchiveFault(f"the backup has {counted(needed, 'shard')}; set ADA_SHARDS={needed}")
    file.seek(0)
    check_bytes(file)
    file.seek(0)
    archive = ArchiveReader(file)
    for _ in archive:
        pass
    file.seek(0)
    assert archive.end, "the end of the file was read"
    return archive.end


async def restore(
    archive: Iterable[StoredValue], target: ServerAddress | SentinelSet, *, replaces: bool = False
) -> None:
    """Put the entries of a file that was checked into the database of a server, or of the primary that Sentinels name.
    Raises SetupError, StoreUnavailable: then all has changed or nothing. `replaces`: data that are there are removed,
    in the same step.
    """
    address = await primary_of(target) if isinstance(target, SentinelSet) else target
    try:
        connection = await StoreConnection.open(address, encoding=None)
        try:
            await _Target(connection, address.database).restore(archive, replaces=replaces)
        finally:
            connection.close()
    except (RedisError, OSError, TimeoutError) as fault:
        raise explain(fault, address, "restore", _RIGHTS) from None
    if isinstance(target, SentinelSet) and str(await primary_of(target)) != str(address):
        raise SetupError("the primary was replaced during the restore; repeat it")


class _Target:
    """A database of a server, and the one beside it."""

    def __init__(self, connection: StoreConnection, database: int) -> None:
        self._connection = connection
        self._database = database

    async def restore(self, archive: Iterable[StoredValue], *, replaces: bool) -> None:
        await check_unused(self._connection, self._database)
        await self._check_content(replaces)
        beside = await self._prepare_beside()
        try:
            await self._load(archive)
            await check_unused(self._connection, self._database)
            await self._swap(beside)
        except BaseException:  # whatever it is, also a cancellation: no half of a restore stays
            with suppress(RedisError):
                await self._request("FLUSHDB", "ASYNC")
            raise
        await self._request("FLUSHDB", "ASYNC")

    async def _check_content(self, replaces: bool) -> None:
        """Check that the database may be overwritten. Raises SetupError if the database has keys that must stay."""
        size = await self._request("DBSIZE")
        if size and not replaces:
            raise SetupError(f"the database has {counted(size, 'key')}; --replace removes them and restores the backup")
        cursor = b"0"
        while size:
            cursor, keys = await self._request("SCAN", cursor, "COUNT", _PAGE)
            foreign = [key for key in (key.decode(errors="replace") for key in keys) if not is_ours(key)]
            if foreign:
                raise SetupError(
                    f"the database has keys that are not Ada's, such as {foreign[0]!r}; nothing was changed"
                )
            if cursor == b"0":
                return

    async def _prepare_beside(self) -> int:
        """Select an empty database and mark it. Raises SetupError if there is none."""
        for number in range(_MOST_DATABASES):
            if number == self._database:
                continue
            (selected,) = await self._request_all([("SELECT", number)])
            if isinstance(selected, RedisError):
                break
            if await self._request("EXISTS", _MARK):
                await self._request("FLUSHDB")
            if not await self._request("DBSIZE"):
                await self._request("SET", _MARK, "")
                return number
        raise SetupError(
            "the server has no empty database beside that of Ada, which a restore needs for a while; raise"
            " `databases` of the server"
        )

    async def _load(self, archive: Iterable[StoredValue]) -> None:
        for page in _pages(command for entry in archive for command in writing(entry)):
            for reply in await self._request_all(page):
                if isinstance(reply, RedisError):
                    raise reply

    async def _swap(self, beside: int) -> None:
        """Swap the databases in one step. What was in the database is in the marked one then."""
        steps: list[Command] = [
            ("MULTI",),
            ("SELECT", self._database),
            ("SET", _MARK, ""),
            ("SELECT", beside),
            ("DEL", _MARK),
            ("SWAPDB", self._database, beside),
            ("EXEC",),
        ]
        for reply in await self._request_all(steps):
            for one in reply if isinstance(reply, list) else [reply]:
                if isinstance(one, RedisError):
                    raise one

    async def _request(self, *command: Word) -> Reply:
        (reply,) = await self._request_all([command])
        if isinstance(reply, RedisError):
            raise reply
        return reply

    async def _request_all(self, commands: Sequence[Command]) -> list[Reply]:
        async with asyncio.timeout(PATIENCE):
            return await self._connection.request_all(commands)


def _pages(commands: Iterator[Command]) -> Iterator[list[Command]]:
    page: list[Command] = []
    for command in commands:
        page.append(command)
        if len(page) == _PAGE:
            yield page
            page = []
    if page:
        yield page
