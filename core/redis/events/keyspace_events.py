"""Keyspace events: wakes sleepers when their keys vanish. One connection and one loop per process.

Events are only a wake-up signal. They are lost at every disconnect and every restart of the server, so at each
(re)connect every listener is also called, after the server's `notify-keyspace-events` was checked and set. A lost event
costs at most a worker's floor, never a message.

Called by core.queue.worker. redis-py's own loop is not used: it ends 5 s into an outage, and after a short outage it
subscribes again without a notice.
"""

import logging
from collections.abc import Callable, Mapping

from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError

from core.redis.connection import Connection, Reply, encoded
from core.redis.notifications import ensure_notifications
from core.redis.outage_log import OutageLog
from core.redis.refusals import is_about_rights, missing_rights
from core.redis.store import Store

log = logging.getLogger(__name__)

_EVENTS = frozenset({"del", "expired"})
_FIRST_PAUSE = 0.02
_LONGEST_PAUSE = 1.0


class KeyspaceEvents:
    """`listeners`: key → function to call when the key vanishes (`del` or `expired`), and at every (re)connect. It must
    not block.
    """

    def __init__(self, store: Store, listeners: Mapping[str, Callable[[], None]]) -> None:
        self._topology = store.topology
        self._listeners = {f"__keyspace@{store.address.database}__:{key}": call for key, call in listeners.items()}
        self._unconfirmed = len(self._listeners)
        self._connection: Connection | None = None
        self._outage = OutageLog(log, "no keyspace events, so work is looked for every few seconds")

    async def run(self) -> None:
        """Listen until cancelled."""
        pause, refused = _FIRST_PAUSE, ""
        while True:
            self._unconfirmed = len(self._listeners)
            reason = await self._listen()
            pause = min(pause * 2, _LONGEST_PAUSE) if self._unconfirmed else _FIRST_PAUSE
            if not is_about_rights(reason):
                self._outage.failed(reason)
            elif str(reason) != refused:
                refused = str(reason)
                log.warning("no keyspace events: %s", missing_rights(refused, self._topology.address))
            await self._topology.pause(pause)

    async def _listen(self) -> Exception:
        """Listen on one connection; returns the reason of its end."""
        try:
            self._connection = await self._topology.open(self._take_reply, self._take_push)
        except (RedisError, OSError, TimeoutError) as fault:
            return fault
        try:
            await ensure_notifications(self._connection.request)
            self._connection.write(encoded("SUBSCRIBE", *self._listeners))
            return await self._connection.lost
        except RedisError as fault:
            return fault
        finally:
            self._connection.close()

    def _take_reply(self, reply: Reply) -> None:
        """Cut the connection. A subscription is confirmed by a push; a reply is an error, for example that the user may
        not subscribe.
        """
        assert self._connection
        self._connection.cut(RedisConnectionError(str(reply)))

    def _take_push(self, push: Reply) -> None:
        kind, channel, event = push
        if kind == "subscribe":
            self._unconfirmed -= 1
            if not self._unconfirmed:
                self._outage.ended()
                self._wake_all()
        elif event in _EVENTS:
            self._listeners[channel]()

    def _wake_all(self) -> None:
        for wake in self._listeners.values():
            wake()
