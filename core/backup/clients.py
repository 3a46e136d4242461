"""Refuses a server that processes of Ada use."""

import asyncio
import re

from core.backup.refusals import PATIENCE
from core.errors import SetupError
from core.model.text.plurals import counted
from core.redis.connection import NAME, StoreConnection


async def check_unused(connection: StoreConnection, database: int) -> None:
    """Check that no other connection of Ada uses the database. Raises SetupError, RedisError, TimeoutError."""
    async with asyncio.timeout(PATIENCE):
        own = await connection.request("CLIENT", "ID")
        clients = (await connection.request("CLIENT", "LIST")).decode(errors="replace").splitlines()
    users = [one for one in map(_fields, clients) if one["name"] == NAME and one["db"] == str(database)]
    others = len([one for one in users if one["id"] != str(own)])
    if others:
        raise SetupError(f"Ada uses this database over {counted(others, 'connection')}; stop all its processes first")


def _fields(client: str) -> dict[str, str]:
    """Return the fields of a line of CLIENT LIST."""
    return dict(found for found in re.findall(r"(\S+?)=(\S*)", client))
