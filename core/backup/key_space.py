"""The keys of Ada on one server, or on all primaries of a cluster, as plain data."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from redis.crc import key_slot
from redis.exceptions import RedisError

from core.backup.archive import GONE, PATIENCE, Command, StoredValue, explain, read_entry, reading, writing
from core.errors import StoreUnavailable
from core.redis.cluster import ClusterNodes, ClusterView, Place, newest_view
from core.redis.connection import Reply, ServerAddress, StoreConnection, Word
from core.redis.keys import is_ours
from core.redis.topology import PrimaryNotFound, SentinelSet, find_primary

_PAGE = 100
"""Keys that are read at once."""
_SLOTS = 16384


@dataclass(frozen=True, slots=True)
class KeySpace:
    """`name`: the URL without the password; `setting`: where it was given, for errors; `owner_of`: returns the
    connection to the primary of a key; `is_replaced`: whether another server is a primary by now. Every method raises
    StoreUnavailable and SetupError.
    """

    name: str
    setting: str
    address: ServerAddress
    connections: Sequence[StoreConnection]
    owner_of: Callable[[bytes], StoreConnection]
    is_replaced: Callable[[], Awaitable[bool]]

    async def pages(self) -> AsyncIterator[list[bytes]]:
        """Emit the names of all keys of Ada, some at a time, each at least once."""
        for connection in self.connections:
            cursor = b"0"
            while True:
                ((cursor, keys),) = await self._ask(connection, [("SCAN", cursor, "COUNT", _PAGE)])
                yield [key for key in keys if is_ours(key.decode(errors="replace"))]
                if cursor == b"0":
                    break

    async def size(self) -> int:
        """Return the number of keys, with those of other programs."""
        return sum([(await self._ask(connection, [("DBSIZE",)]))[0] for connection in self.connections])

    async def read(self, keys: Sequence[bytes]) -> list[StoredValue]:
        """Return the entries of the keys in order, GONE for a key that is not there."""
        kinds = [kind.decode() for (kind,) in await self._each([(key, [("TYPE", key)]) for key in keys])]
        commands = [(key, reading(key, kind) if kind != GONE else []) for key, kind in zip(keys, kinds, strict=True)]
        replies = await self._each(commands)
        return [
            read_entry(key, kind, found) if found else StoredValue(key, GONE, 0, None)
            for key, kind, found in zip(keys, kinds, replies, strict=True)
        ]

    async def write(self, entries: Sequence[StoredValue]) -> None:
        """Make the keys what they are in the entries. Interrupted, it may leave a part of a key."""
        await self._each([(entry.key, list(writing(entry))) for entry in entries])

    async def command(self, name: str, key: str, *words: Word) -> Reply:
        ((reply,),) = await self._each([(key.encode(), [(name, key, *words)])])
        return reply

    async def _each(self, calls: Sequence[tuple[bytes, Sequence[Command]]]) -> list[list[Reply]]:
        """Send the commands of each key to its primary. Return the replies by call."""
        of_owner: dict[StoreConnection, list[Command]] = {}
        for key, commands in calls:
            of_owner.setdefault(self.owner_of(key), []).extend(commands)
        replies = {owner: iter(await self._ask(owner, commands)) for owner, commands in of_owner.items()}
        return [[next(replies[self.owner_of(key)]) for _ in commands] for key, commands in calls]

    async def _ask(self, connection: StoreConnection, commands: Sequence[Command]) -> list[Reply]:
        if not commands:
            return []
        try:
            async with asyncio.timeout(PATIENCE):
                replies = await connection.request_all(commands)
        except (RedisError, OSError, TimeoutError) as fault:
            raise explained(fault, self.address, self.setting) from None
        for reply in replies:
            if isinstance(reply, RedisError):
                raise explained(reply, self.address, self.setting)
        return replies


def explained(fault: RedisError | OSError | TimeoutError, address: ServerAddress, setting: str) -> Exception:
    """Return the error for a fault at the server that this setting names."""
    error = explain(fault, address, "migration", "+client|list")
    text = str(error).replace(", or unset ADA_REDIS_URL to use the embedded one", "")
    return type(error)(text.replace("ADA_REDIS_URL", setting))


@asynccontextmanager
async def open_server(server: ServerAddress | SentinelSet, setting: str) -> AsyncIterator[KeySpace]:
    """Open a server, or the primary that Sentinels name, until the end of the block. Raises StoreUnavailable,
    SetupError.
    """
    address = await primary_of(server) if isinstance(server, SentinelSet) else server

    async def is_replaced() -> bool:
        return isinstance(server, SentinelSet) and str(await primary_of(server)) != str(address)

    connection = await _open(address, setting)
    try:
        yield KeySpace(str(address), setting, address, [connection], lambda key: connection, is_replaced)
    finally:
        connection.close()


async def primary_of(sentinels: SentinelSet) -> ServerAddress:
    """Return the address of the primary that Sentinels name. Raises StoreUnavailable."""
    try:
        _, host, port = await find_primary(sentinels)
    except PrimaryNotFound as fault:
        raise StoreUnavailable(str(fault)) from None
    return ServerAddress.parse(sentinels.url_of(host, port))


async def whole_view(nodes: ClusterNodes) -> ClusterView:
    """Return the newest view of a cluster. Raises PrimaryNotFound, StoreUnavailable if a slot has no primary."""
    view = await newest_view(nodes, nodes.places)
    if sum(one.last - one.first + 1 for one in view.slots) < _SLOTS:
        raise StoreUnavailable(f"not every slot of {nodes} has a primary; see CLUSTER SLOTS of its nodes")
    return view


def owners(view: ClusterView) -> set[tuple[int, int, Place]]:
    """Return first slot, last slot and primary of each range."""
    return {(one.first, one.last, one.owner) for one in view.slots}


@asynccontextmanager
async def open_cluster(nodes: ClusterNodes, setting: str) -> AsyncIterator[KeySpace]:
    """Open all primaries until the end of the block. Raises StoreUnavailable, also if a slot has none; SetupError."""
    view = await whole_view(nodes)
    primaries: dict[tuple[str, int], StoreConnection] = {}
    address = ServerAddress.parse(nodes.url_of(nodes.places[0]))
    try:
        for place in sorted({one.owner for one in view.slots}):
            primaries[place] = await _open(ServerAddress.parse(nodes.url_of(place)), setting)

        def owner_of(key: bytes) -> StoreConnection:
            place = view.owner_of(key_slot(key))
            assert place, "every slot has a primary"
            return primaries[place]

        async def is_replaced() -> bool:
            return owners(await whole_view(nodes)) != owners(view)

        yield KeySpace(str(nodes), setting, address, list(primaries.values()), owner_of, is_replaced)
    finally:
        for connection in primaries.values():
            connection.close()


async def _open(address: ServerAddress, setting: str) -> StoreConnection:
    try:
        return await StoreConnection.open(address, encoding=None)
    except (RedisError, OSError, TimeoutError) as fault:
        raise explained(fault, address, setting) from None
