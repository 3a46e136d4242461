"""The primary at the other end of a connection: checked when a store is opened, and noted on every new connection.

A replica that is promoted may lack the last writes, and a server that lost power its last second: counters have gone
back, and old workers hold tokens that would be given out again. `lua/queue/functions/note_primary.lua` then begins a
new epoch. Nothing is claimed on such a server before, because the note is the first call on each connection.

The note is used by `core.redis.store` as the first call of `core.redis.topology`, and by `core.redis.pipelines` while a
connection leads to a replica, which may be promoted at any moment.
"""

import asyncio
import re
import ssl
from collections.abc import Mapping

from redis.exceptions import OutOfMemoryError, RedisError, ResponseError

from core.errors import SetupError, StoreFull, StoreUnavailable
from core.redis.connection import Reply, ServerAddress, StoreConnection, encoded
from core.redis.keys import KEYS
from core.redis.library import Library, is_loaded, is_missing
from core.redis.library import current as current_library
from core.redis.topology import Topology

GRACE_MS = 5000
"""After a promotion no lease ends for so long: a worker whose extension failed tries again every second."""

_ID = re.compile(r"master_replid:(\w+)")
_OLDEST = 7  # Functions are there since Redis 7.0.
_TIMEOUT = 5.0


class Primary:
    """One per store."""

    def __init__(self, shards: int) -> None:
        self._function = current_library().functions["note_primary"].registered
        self._keys = {shard: KEYS["primary"].at(shard) for shard in range(shards)}
        self.notes = [encoded(*self._call(shard)) for shard in self._keys]

    def _call(self, shard: int) -> tuple[str | int, ...]:
        keys = self._keys[shard], KEYS["guard"].at(shard)
        return ("FCALL", self._function, len(keys), *keys, f"{{{shard}}}", 0, GRACE_MS)

    async def note(self, connection: StoreConnection) -> None:
        """Note the server at the other end, if it is another one than before. Raises RedisError.

        A shard without data is noted at the first start (`core.redis.server_checks`); one that another primary of the
        cluster has is refused by this one. A user who may not read INFO gets no new epoch.
        """
        if connection.is_replica:
            return
        reads = [("INFO", "replication"), *(("HGET", key, "id") for key in self._keys.values())]
        info, *noted = await connection.request_all(reads)
        found = _ID.search(_text(info))
        for shard, known in zip(self._keys, noted, strict=True):
            if found and _text(known) not in ("", found[1]):
                await self._note_in(connection, shard)

    async def _note_in(self, connection: StoreConnection, shard: int) -> None:
        try:
            await connection.request(*self._call(shard))
        except ResponseError as refusal:
            if not is_missing(refusal):
                raise
            await _load(connection, current_library())
            await connection.request(*self._call(shard))


def _text(reply: Reply) -> str:
    """Return a reply as text; "" for an error or nothing. Connections may be set up for bytes."""
    if reply is None or isinstance(reply, RedisError | Mapping):
        return ""
    return reply.decode() if isinstance(reply, bytes) else str(reply)


async def check_primary(primary: Topology, library: Library, shard: int | None) -> None:
    """Load the library. Raises SetupError for an old version; RedisError if the user may not use our keys or the
    functions. `shard`: one that this primary has; None if it has none.

    HELLO and not INFO: a user without rights over the server may send it.
    """
    connection = await primary.open()
    try:
        hello = await connection.request("HELLO")
        _check_version(str(hello["version"]))
        if shard is not None:
            await connection.request("EXISTS", KEYS["counters"].at(shard))
        if not await connection.request("FUNCTION", "LIST", "LIBRARYNAME", library.name):
            await _load_first(connection, library)
        if shard is not None:
            name, key = library.functions["audit_keys"].registered, KEYS["counters"].at(shard)
            await connection.request("FCALL", name, 1, key, f"{{{shard}}}", 0)
    finally:
        connection.close()


async def _load_first(connection: StoreConnection, library: Library) -> None:
    try:
        await _load(connection, library)
    except OutOfMemoryError:  # an earlier version may drain it
        raise StoreUnavailable(f"{StoreFull()} It has no room for the functions of this version of Ada.") from None


async def _load(connection: StoreConnection, library: Library) -> None:
    try:
        await connection.request("FUNCTION", "LOAD", library.text)
    except ResponseError as refusal:
        if not is_loaded(refusal):
            raise


def _check_version(version: str) -> None:
    if int(version.partition(".")[0]) < _OLDEST:
        raise SetupError(f"Redis {version} is too old: Redis 7.0 or Valkey is needed.")


async def is_scheme_wrong(address: ServerAddress) -> bool:
    """Return whether the port answers like Redis without TLS although the URL says rediss://, or with TLS although it
    says redis://. The login is not sent.
    """
    if address.path:
        return False
    try:
        async with asyncio.timeout(_TIMEOUT):
            return (await _answer(address.host, address.port, None if address.tls else _unverified())).startswith(
                (b"+", b"-")
            )
    except (OSError, TimeoutError):
        return False


async def _answer(host: str, port: int, tls: ssl.SSLContext | None) -> bytes:
    reader, writer = await asyncio.open_connection(host, port, ssl=tls)
    try:
        writer.write(b"PING\r\n")
        return await reader.readline()
    finally:
        writer.transport.abort()


def _unverified() -> ssl.SSLContext:
    """Return a context that accepts any certificate: nothing but PING is sent."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context
