"""Explains why a server cannot be backed up or restored, and refuses one that processes of Ada use."""

import asyncio
import re

from redis.exceptions import RedisError

from core.errors import AdaError, SetupError, StoreUnavailable
from core.model.text.plurals import counted
from core.redis.connection import NAME, ServerAddress, StoreConnection
from core.redis.refusals import explained, is_about_rights

PATIENCE = 60.0
"""Seconds without an answer of the server."""


def explain(fault: RedisError | OSError | TimeoutError, address: ServerAddress, work: str, rights: str) -> AdaError:
    """Return the error for a fault of `work`, which needs `rights` beside the usual ones."""
    if is_about_rights(fault):
        return SetupError(
            f"the Redis user {address.username!r} lacks a right that a {work} needs. Grant it as an administrator:"
            f" redis-cli ACL SETUSER {address.username} {rights}"
        )
    if isinstance(fault, TimeoutError):
        return StoreUnavailable(f"Redis at {address} did not answer within {PATIENCE:.0f} s.")
    return explained(fault, address)


async def check_unused(connection: StoreConnection, database: int) -> None:
    """Check that no other connection of Ada uses the database. Raises SetupError, RedisError, TimeoutError."""
    async with asyncio.timeout(PATIENCE):
        own = await connection.request("CLIENT", "ID")
        clients = (await connection.request("CLIENT", "LIST")).decode(errors="replace").splitlines()
    users = [client for client in map(_fields, clients) if client["name"] == NAME and client["db"] == str(database)]
    others = len([client for client in users if client["id"] != str(own)])
    if others:
        raise SetupError(f"Ada uses this database over {counted(others, 'connection')}; stop all its processes first")


def _fields(client: str) -> dict[str, str]:
    """Return the fields of a line of CLIENT LIST."""
    return dict(re.findall(r"(\S+?)=(\S*)", client))
