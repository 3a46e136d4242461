"""Sight: hears the bell. One small loop on one connection per process; it wakes sleepers and holds no truth.

Events are lost at every disconnect and every restart of the server, so every (re)connect wakes everybody: whoever was
sleeping claims, and finds what he did not hear of. That is also why a lost event costs at most a worker's floor, never
a message.

redis-py's own keyspace loop ends 5 s into an outage and re-subscribes silently after a short one; hence ours.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping

import hiredis
from redis.exceptions import RedisError

from core.redis.protocol import RedisProtocol, Reply
from core.redis.store import Store

log = logging.getLogger(__name__)

_EVENTS = frozenset({"del", "expired"})
_FIRST_PAUSE = 0.02
_LONGEST_PAUSE = 1.0


class KeyspaceEvents:
    """`listeners`: key → what to call when it vanishes (`del` or `expired`), and at every (re)connect. Calls must not
    block.
    """

    def __init__(self, store: Store, listeners: Mapping[str, Callable[[], None]]) -> None:
        self._store = store
        self._listeners = {f"__keyspace@{store.database}__:{key}": call for key, call in listeners.items()}
        self._unconfirmed = len(self._listeners)
        self._wire: RedisProtocol | None = None
        self.heard = 0

    async def run(self) -> None:
        """Until cancelled."""
        pause = _FIRST_PAUSE
        while True:
            self._unconfirmed = len(self._listeners)
            why = await self._listen()
            pause = min(pause * 2, _LONGEST_PAUSE) if self._unconfirmed else _FIRST_PAUSE
            log.warning("bell not heard, again in %.2f s: %s", pause, why)
            await asyncio.sleep(pause)

    async def _listen(self) -> str:
        """As long as one connection lasts; why it ended. In RESP2 a message is a plain reply, in the order it comes."""
        pool = self._store.redis.connection_pool
        connection = pool.connection_class(**{**pool.connection_kwargs, "protocol": 2, "socket_timeout": None})
        try:
            await connection.connect()  # type: ignore[no-untyped-call]
            self._wire = RedisProtocol(connection, self._hear)
            self._wire.write(hiredis.pack_command(("SUBSCRIBE", *self._listeners)))  # type: ignore[arg-type]
            return await self._wire.lost
        except (RedisError, OSError, TimeoutError) as fault:
            return str(fault) or type(fault).__name__
        finally:
            self._wire = None
            await connection.disconnect(nowait=True)

    def _hear(self, reply: Reply) -> None:
        if isinstance(reply, RedisError):  # such as that the user may not subscribe
            assert self._wire
            self._wire.cut(str(reply))
            return
        kind, channel, event = reply
        if kind == "subscribe":
            self._unconfirmed -= 1
            if not self._unconfirmed:
                self._wake_all()
        elif event in _EVENTS:
            self.heard += 1
            self._listeners[channel]()

    def _wake_all(self) -> None:
        for wake in self._listeners.values():
            wake()
