"""Sight: hears the bell. One small loop on one connection per process; it wakes sleepers and holds no truth.

Events are lost at every disconnect and every restart of the server, so every (re)connect wakes everybody: whoever was
sleeping claims, and finds what he did not hear of. That is also why a lost event costs at most a worker's floor, never
a message.

redis-py's own keyspace loop ends 5 s into an outage and re-subscribes silently after a short one; hence ours.
"""

import asyncio
import contextlib
import logging
import math
from collections.abc import AsyncIterator, Callable, Mapping

from redis.asyncio.connection import AbstractConnection
from redis.exceptions import RedisError

from core.store import Store

log = logging.getLogger(__name__)

_EVENTS = frozenset({"del", "expired"})
_FIRST_PAUSE = 0.02
_LONGEST_PAUSE = 1.0


class Sight:
    """`listeners`: key → what to call when it vanishes (`del` or `expired`), and at every (re)connect. Calls must not
    block.
    """

    def __init__(self, store: Store, listeners: Mapping[str, Callable[[], None]]) -> None:
        self._store = store
        self._listeners = {f"__keyspace@{store.database}__:{key}": call for key, call in listeners.items()}
        self.heard = 0

    async def run(self) -> None:
        """Until cancelled."""
        pause = _FIRST_PAUSE
        while True:
            try:
                async with self._connection() as connection:
                    await self._subscribe(connection)
                    pause = _FIRST_PAUSE
                    await self._listen(connection)
            except (RedisError, OSError, TimeoutError) as fault:
                log.warning("bell not heard, again in %.2f s: %s", pause, fault)
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    @contextlib.asynccontextmanager
    async def _connection(self) -> AsyncIterator[AbstractConnection]:
        """A connection of its own, in RESP2: there a message is a plain reply, read in the order it comes."""
        pool = self._store.redis.connection_pool
        connection = pool.connection_class(**{**pool.connection_kwargs, "protocol": 2, "socket_timeout": None})
        try:
            await connection.connect()  # type: ignore[no-untyped-call]
            yield connection
        finally:
            await connection.disconnect(nowait=True)

    async def _subscribe(self, connection: AbstractConnection) -> None:
        await connection.send_command("SUBSCRIBE", *self._listeners, check_health=False)
        for _ in self._listeners:
            await connection.read_response(timeout=math.inf)
        for wake in self._listeners.values():
            wake()

    async def _listen(self, connection: AbstractConnection) -> None:
        while True:
            _, channel, event = await connection.read_response(timeout=math.inf)
            if event in _EVENTS:
                self.heard += 1
                self._listeners[channel]()
