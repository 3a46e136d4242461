"""Notes on every new connection which server is the primary, before anything else is called on it.

A replica that is promoted may lack the last writes, and a server that lost power its last second: counters have gone
back, and old workers hold tokens that would be given out again. `lua/queue/functions/note_primary.lua` then begins a
new epoch. Nothing is claimed on such a server before.

Used by `core.redis.store` as the first call of `core.redis.topology`, and by `core.redis.pipelines` while a connection
leads to a replica, which may be promoted at any moment.
"""

import re
from collections.abc import Mapping

from redis.exceptions import RedisError, ResponseError

from core.redis import library
from core.redis.connection import Reply, StoreConnection, encoded
from core.redis.keys import KEYS

GRACE_MS = 5000
"""After a promotion no lease ends for so long: a worker whose extension failed tries again every second."""

_ID = re.compile(r"master_replid:(\w+)")


class Primary:
    """One per store."""

    def __init__(self, shards: int) -> None:
        self._function = library.current().functions["note_primary"].registered
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
            if not library.is_missing(refusal):
                raise
            await _load(connection)
            await connection.request(*self._call(shard))


async def _load(connection: StoreConnection) -> None:
    try:
        await connection.request("FUNCTION", "LOAD", library.current().text)
    except ResponseError as refusal:
        if not library.is_loaded(refusal):
            raise


def _text(reply: Reply) -> str:
    """Return a reply as text; "" for an error or nothing. Connections may be set up for bytes."""
    if reply is None or isinstance(reply, RedisError | Mapping):
        return ""
    return reply.decode() if isinstance(reply, bytes) else str(reply)
