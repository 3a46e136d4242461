"""Keyspace events: wakes sleepers when their keys vanish. One connection to each primary that has one of the keys.

Events are only a wake-up signal. They are lost at every disconnect and every restart of the server, so at each
(re)connect every listener is also called. A lost event costs at most a worker's floor, never a message.

Without our flags in the setting `notify-keyspace-events` no sleeper is woken, and a server that restarts without
`CONFIG REWRITE` loses them. Therefore they are checked, and set if they are missing, at every connect here, by
`connect`, by `/readyz` and by `doctor`. Other flags are kept.

Called by core.queue.workers.worker. redis-py's own loop is not used: it ends 5 s into an outage, and after a short
one it subscribes again without a notice.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError, ResponseError

from core.errors import FunctionFault
from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.cluster import ShardMap
from core.redis.connection import OutageLog, Reply, StoreConnection, encoded
from core.redis.refusals import is_about_rights, missing_rights
from core.redis.store import Store
from core.redis.topology import Topology

log = logging.getLogger(__name__)

SETTING = "notify-keyspace-events"

# K: keyspace channels; g: del, expire, …; x: expired.
_OURS = "Kgx"

Command = Callable[..., Awaitable[Any]]
"""Sends a command. Raises ResponseError or FunctionFault if the server refuses it."""


@dataclass(frozen=True, slots=True)
class Notifications:
    """`found`: the flags before; None if the server does not show them. `missing`: ours that it does not have now.
    `refusal`: why they could not be read or set.
    """

    found: str | None
    missing: str = ""
    refusal: str = ""

    @property
    def changed(self) -> str:
        """Return what was changed, in a sentence; "" if nothing."""
        if self.found is None or self.missing or merged_flags(self.found) == self.found:
            return ""
        return f"{SETTING} was {self.found or 'empty'} and was set to {merged_flags(self.found)}"


def merged_flags(found: str) -> str:
    """Return the flags with ours added; none is removed. `A` means all classes, `g` and `x` included."""
    return found + missing_flags(found)


def missing_flags(found: str) -> str:
    return "".join(flag for flag in _OURS if flag not in found and not (flag in "gx" and "A" in found))


async def ensure_notifications(command: Command) -> Notifications:
    """Set the flags that are missing; log a change and a refusal."""
    try:
        found = flags_of(await command("CONFIG", "GET", SETTING))
    except (ResponseError, FunctionFault) as refusal:
        return Notifications(None, refusal=str(refusal))
    if found is None or not missing_flags(found):
        return Notifications(found)
    try:
        await command("CONFIG", "SET", SETTING, merged_flags(found))
    except (ResponseError, FunctionFault) as refusal:
        log.warning("%s lacks %s and cannot be set: %s", SETTING, missing_flags(found), refusal)
        return Notifications(found, missing_flags(found), str(refusal))
    state = Notifications(found)
    log.warning("%s; write it to the server's configuration: CONFIG REWRITE", state.changed)
    return state


def flags_of(answer: Any) -> str | None:
    """Return the flags in an answer to CONFIG GET: a map in RESP3, a flat list in RESP2."""
    pairs = answer if isinstance(answer, dict) else dict(zip(answer[::2], answer[1::2], strict=True))
    found = pairs.get(SETTING)
    return None if found is None else str(found)


log = logging.getLogger(__name__)

_EVENTS = frozenset({"del", "expired"})
_SIGNAL = "ada:slot:{{{0}}}"
_FIRST_PAUSE = 0.02
_LONGEST_PAUSE = 1.0


class KeyspaceEvents:
    """`listeners`: key → function to call when the key vanishes (`del` or `expired`), and at every (re)connect. It must
    not block.
    """

    def __init__(self, store: Store, listeners: Mapping[str, Callable[[], None]]) -> None:
        self._shard_map = store.shard_map
        self._listeners: dict[int, dict[str, Callable[[], None]]] = defaultdict(dict)
        for key, call in listeners.items():
            channel = f"__keyspace@{store.address.database}__:{key}"
            self._listeners[store.home_of("SUBSCRIBE", key)][channel] = call

    async def run(self) -> None:
        """Listen until cancelled, on every primary that has one of the keys."""
        while True:
            moved = asyncio.ensure_future(self._shard_map.next_change())
            listening = [asyncio.create_task(one.run()) for one in self._parts()]
            try:
                await moved
            finally:
                await cancel_and_wait(moved, *listening)

    def _parts(self) -> Iterator["_Listener"]:
        for primary, homes in self._shard_map.primaries().items():
            ours = {home: self._listeners[home] for home in homes if home in self._listeners}
            if ours:
                yield _Listener(self._shard_map, primary, ours)


class _Listener:
    """Listens on one primary. `by_home`: home → channel → function to call.

    A keyspace subscription stays silent when its slot has moved. The server closes a sharded one then, so there is one
    beside it for each home.
    """

    def __init__(
        self, shard_map: ShardMap, primary: Topology, by_home: Mapping[int, Mapping[str, Callable[[], None]]]
    ) -> None:
        self._shard_map = shard_map
        self._primary = primary
        self._signals = [_SIGNAL.format(home) for home in by_home] if shard_map.cluster else []
        self._listeners = {channel: call for listeners in by_home.values() for channel, call in listeners.items()}
        self._unconfirmed = len(self._listeners)
        self._connection: StoreConnection | None = None
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
                log.warning("no keyspace events: %s", missing_rights(refused, self._primary.address))
            await self._shard_map.pause(self._primary, pause)

    async def _listen(self) -> Exception:
        """Listen on one connection; returns the reason of its end."""
        try:
            self._connection = await self._primary.open(self._take_reply, self._take_push)
        except (RedisError, OSError, TimeoutError) as fault:
            return fault
        try:
            await ensure_notifications(self._connection.request)
            signals = b"".join(encoded("SSUBSCRIBE", signal) for signal in self._signals)
            self._connection.write(signals + encoded("SUBSCRIBE", *self._listeners))
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
        elif kind == "sunsubscribe" and self._connection:
            self._connection.cut(RedisConnectionError("a slot has moved"))
        elif event in _EVENTS:
            self._listeners[channel]()

    def _wake_all(self) -> None:
        for wake in self._listeners.values():
            wake()
