"""Reads all keys of Ada in a database as they are at one moment, while others write.

    CLIENT TRACKING ─▶ read every key ─▶ read again what has changed … ─▶ CLIENT PAUSE WRITE ─▶ read the rest ─▶ go on

The server names every key that changes, expires or goes (client-side caching, broadcast mode). What was read before its
last change is read again, so each key's last entry is its value at the end. Writers wait only for the last round: some
milliseconds, whatever the size of the data. In a cluster the writers of all primaries wait together, so it is one
moment there, too.

Invariant: no name of a changed key is outstanding when the snapshot ends: a PING after the last read is answered behind
all of them (tests/core/backup/test_snapshot.py). A key whose slot moves meanwhile may be missed on both primaries, so
such a backup ends with an error. So does one during which another server became the primary: the old one does not know
it at once, and what it has is older than its moment.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress

from redis.exceptions import RedisError

from core.backup.archive import GONE, PATIENCE, ArchiveWriter, Command, End, StoredValue, explain, read_entry, reading
from core.backup.key_space import owners, primary_of, whole_view
from core.errors import SetupError, StoreUnavailable
from core.redis.cluster import ClusterNodes, ClusterView, Place, view_of
from core.redis.connection import Reply, ServerAddress, StoreConnection, Word
from core.redis.keys import is_ours
from core.redis.refusals import is_about_rights, is_about_slot
from core.redis.topology import SentinelSet

_PAGE = 100
"""Keys that are read at once."""
_FEW = 500
"""Changed keys that are read while writers wait."""
_MOST_ROUNDS = 20
"""Until then on a server whose keys change as fast as they are read."""
_PAUSE_MS = 5000
"""Writers go on after this time at the latest, also if this process ends."""
_RIGHTS = "+client|tracking +client|pause +client|unpause"
_REPLACED = "the primary was replaced during the backup; repeat it"
_MOVED = "slots of the cluster moved, or a primary was replaced, during the backup; repeat it"


async def take_snapshot(source: ServerAddress | SentinelSet | ClusterNodes, archive: ArchiveWriter) -> End:
    """Write every key of a server, of the primary that Sentinels name, or of all primaries of a cluster, to the
    archive, and its end, which is returned. Raises StoreUnavailable, SetupError, PrimaryNotFound.
    """
    if isinstance(source, ServerAddress):
        return archive.close(*await _read_primaries([source], archive, is_alone=True))
    if isinstance(source, SentinelSet):
        primary = await primary_of(source)
        found = await _read_primaries([primary], archive)
        if str(await primary_of(source)) != str(primary):
            raise SetupError(_REPLACED)
        return archive.close(*found)
    view = await whole_view(source)
    places = sorted({one.owner for one in view.slots})
    found = await _read_primaries([ServerAddress.parse(source.url_of(place)) for place in places], archive)
    if await _have_moved(source, view, places):
        raise SetupError(_MOVED)
    return archive.close(*found)


async def _have_moved(nodes: ClusterNodes, before: ClusterView, places: Sequence[Place]) -> bool:
    """Return whether one of these primaries sees other owners of the slots than before."""
    try:
        views = await asyncio.gather(*(view_of(nodes, place) for place in places))
    except (RedisError, OSError, TimeoutError):
        return True
    return any(owners(view) != owners(before) for view in views)


async def _read_primaries(
    addresses: Sequence[ServerAddress], archive: ArchiveWriter, *, is_alone: bool = False
) -> tuple[int, int]:
    """Return how many keys there are, and the moment in ms. `is_alone`: no other server takes the place of one that is
    lost.
    """
    try:
        async with AsyncExitStack() as stack:
            readers = [await stack.enter_async_context(_open_reader(one, archive)) for one in addresses]
            for reader in readers:
                await reader.read_all()
            for _ in range(_MOST_ROUNDS):
                for reader in readers:
                    if len(reader.changed) > _FEW:
                        await reader.read_changed()
            return await _read_last(readers)
    except (RedisError, OSError, TimeoutError) as fault:
        if is_about_slot(fault):
            raise SetupError(_MOVED) from None
        if not is_alone and not is_about_rights(fault):
            raise StoreUnavailable(
                f"a primary was lost during the backup ({str(fault) or 'no answer'}); repeat it"
            ) from None
        raise explain(fault, addresses[0], "backup", _RIGHTS) from None


async def _read_last(readers: "Sequence[_ServerReader]") -> tuple[int, int]:
    """Read what is left while the writers of all primaries wait. Return how many keys there are, and the moment."""
    try:
        while True:
            await asyncio.gather(*(reader.pause() for reader in readers))
            if not any(reader.changed for reader in readers):
                break
            for reader in readers:
                await reader.read_changed()
        seconds, micros = await readers[0].request("TIME")
        keys = sum([await reader.request("DBSIZE") for reader in readers])
        return keys, int(seconds) * 1000 + int(micros) // 1000
    finally:
        for reader in readers:
            with suppress(RedisError):  # its pause ends by itself
                await reader.request("CLIENT", "UNPAUSE")


@asynccontextmanager
async def _open_reader(address: ServerAddress, archive: ArchiveWriter) -> "AsyncIterator[_ServerReader]":
    reader = _ServerReader(archive)
    reader.connection = await StoreConnection.open(address, on_push=reader.note, encoding=None)
    try:
        await reader.request("CLIENT", "TRACKING", "ON", "BCAST")
        yield reader
    finally:
        reader.connection.close()


class _ServerReader:
    """Reads keys over one connection into the archive. `changed`: those whose last entry is older than their value."""

    connection: StoreConnection

    def __init__(self, archive: ArchiveWriter) -> None:
        self.changed: set[bytes] = set()
        self._archive = archive
        self._is_emptied = False

    def note(self, push: Reply) -> None:
        """Take what the server sends unasked: the names of changed keys; None if a database was emptied."""
        kind, names = push
        if kind == b"invalidate":
            self._is_emptied = self._is_emptied or names is None
            self.changed.update(names or ())

    async def read_all(self) -> None:
        cursor = b"0"
        while True:
            cursor, keys = await self.request("SCAN", cursor, "COUNT", _PAGE)
            await self._read(keys)
            if cursor == b"0":
                return

    async def read_changed(self) -> None:
        """Read the keys that have changed until now."""
        changed, self.changed = list(self.changed), set()
        for start in range(0, len(changed), _PAGE):
            await self._read(changed[start : start + _PAGE])

    async def pause(self) -> None:
        """Make writers wait. `changed` has every key that changed before."""
        await self.request("CLIENT", "PAUSE", _PAUSE_MS, "WRITE")
        await self.request("PING")  # the names of what was changed before the pause come first
        if self._is_emptied:
            raise SetupError("a database of the server was emptied during the backup; repeat it")

    async def _read(self, keys: Collection[bytes]) -> None:
        ours = [key for key in keys if is_ours(key.decode(errors="replace"))]
        kinds = [_kind(reply) for reply in await self._request_all([("TYPE", key) for key in ours])]
        present = [(key, kind) for key, kind in zip(ours, kinds, strict=True) if kind != GONE]
        for entry in await self._entries(present):
            self._archive.add(entry)
        for key, kind in zip(ours, kinds, strict=True):
            if kind == GONE:
                self._archive.add(StoredValue(key, GONE, 0, None))

    async def _entries(self, keys: Sequence[tuple[bytes, str]]) -> list[StoredValue]:
        commands = [_reading(key, kind) for key, kind in keys]
        replies = iter(await self._request_all([one for some in commands for one in some]))
        return [
            read_entry(key, kind, [next(replies) for _ in some])
            for (key, kind), some in zip(keys, commands, strict=True)
        ]

    async def request(self, *command: Word) -> Reply:
        """Send a command and return its reply. Raises RedisError, TimeoutError."""
        (reply,) = await self._request_all([command])
        if isinstance(reply, RedisError):
            raise reply
        return reply

    async def _request_all(self, commands: Sequence[Command]) -> list[Reply]:
        if not commands:
            return []
        async with asyncio.timeout(PATIENCE):
            return await self.connection.request_all(commands)


def _kind(reply: Reply) -> str:
    if isinstance(reply, RedisError):
        raise reply
    return str(reply.decode())


def _reading(key: bytes, kind: str) -> list[Command]:
    try:
        return reading(key, kind)
    except KeyError:
        raise SetupError(
            f"the key {key.decode(errors='replace')!r} has the type {kind}, which Ada does not use"
        ) from None
