"""Checks a primary when a store is opened: version, rights, the library of functions; why its port cannot be used.

Called by `core.redis.store`.
"""

import asyncio
import ssl

from redis.exceptions import OutOfMemoryError, ResponseError

from core.errors import SetupError, StoreFull, StoreUnavailable
from core.redis.connection import ServerAddress, StoreConnection
from core.redis.keys import KEYS
from core.redis.library import Library, is_loaded
from core.redis.topology import Topology

_OLDEST = 7  # Functions are there since Redis 7.0.


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
            await _load(connection, library)
        if shard is not None:
            name, key = library.functions["audit_keys"].registered, KEYS["counters"].at(shard)
            await connection.request("FCALL", name, 1, key, f"{{{shard}}}", 0)
    finally:
        connection.close()


async def _load(connection: StoreConnection, library: Library) -> None:
    try:
        await connection.request("FUNCTION", "LOAD", library.text)
    except ResponseError as refusal:
        if isinstance(refusal, OutOfMemoryError):  # an earlier version may drain it
            raise StoreUnavailable(f"{StoreFull()} It has no room for the functions of this version of Ada.") from None
        if not is_loaded(refusal):
            raise


def _check_version(version: str) -> None:
    if int(version.partition(".")[0]) < _OLDEST:
        raise SetupError(f"Redis {version} is too old: Redis 7.0 or Valkey is needed.")


_TIMEOUT = 5.0


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
