"""Leases are renewed by a thread with a connection of its own, so that a busy event loop loses no task (K-39).

What is held longer than a third of its lease is extended, until `longest`: a handler that has not come back by then is
taken for hung, and its lease runs out (K-04).

Before: `core.queue.worker` holds and drops. After: `lua/queue/extend.lua`.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import redis
from redis.asyncio.connection import SSLConnection
from redis.exceptions import NoScriptError, RedisError

from core.queue.queue import extension
from core.queue.task import Extension, Task
from core.redis import scripts
from core.redis.keys import KEYS
from core.redis.store import Store

log = logging.getLogger(__name__)

_RENEWALS = 3
_CONNECTION = (
    "host",
    "port",
    "db",
    "username",
    "password",
    "ssl_ca_certs",
    "ssl_certfile",
    "ssl_keyfile",
    "ssl_cert_reqs",
)
_PATIENCE = 5.0

OnLease = Callable[[Task, Extension], None]


@dataclass(frozen=True, slots=True)
class _Lease:
    task: Task
    since: float


class Heartbeat:
    """`hear` is called in the event loop with what an extension told of a task: lost, or cancelled."""

    def __init__(self, store: Store, lease: timedelta, longest: timedelta, hear: OnLease | None = None) -> None:
        self._store = store
        self._lease = lease.total_seconds()
        self._longest = longest.total_seconds()
        self._hear = hear
        self._held: dict[tuple[int, str], _Lease] = {}
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def hold(self, task: Task) -> None:
        """From now on the lease of this task is renewed."""
        self._held[task.shard, task.token] = _Lease(task, time.monotonic())

    def drop(self, task: Task) -> None:
        """No more."""
        self._held.pop((task.shard, task.token), None)

    def start(self) -> None:
        """Begin, in the event loop that is to hear."""
        loop = asyncio.get_running_loop()
        self._over.clear()
        self._thread = threading.Thread(target=self._run, args=(loop,), name="renewal of leases", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End; what is held is left to its lease."""
        self._over.set()

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        client = _client(self._store)
        while not self._over.wait(self._lease / _RENEWALS):
            try:
                self._renew(client, loop)
            except RedisError as fault:
                log.warning("leases not renewed, again soon: %s", fault)
        client.close()

    def _renew(self, client: "redis.Redis", loop: asyncio.AbstractEventLoop) -> None:
        old = self._old_enough()
        if not old:
            return
        for task, reply in zip(old, self._extend(client, old), strict=True):
            if isinstance(reply, RedisError):
                raise reply
            told = extension(reply)
            if self._hear and (told.cancelled or not told.lease_valid) and not self._over.is_set():
                loop.call_soon_threadsafe(self._hear, task, told)
            if not told.lease_valid:
                self.drop(task)

    def _old_enough(self) -> list[Task]:
        now = time.monotonic()
        spans = [(held.task, now - held.since) for held in list(self._held.values())]
        return [task for task, span in spans if self._lease / _RENEWALS / 2 < span < self._longest]

    def _extend(self, client: "redis.Redis", tasks: Sequence[Task]) -> list[Any]:
        script = scripts.load("extend", self._store.flags)
        replies = self._send(client, script, tasks)
        if any(isinstance(reply, NoScriptError) for reply in replies):
            client.script_load(script.text)
            replies = self._send(client, script, tasks)
        return replies

    def _send(self, client: "redis.Redis", script: scripts.Script, tasks: Sequence[Task]) -> list[Any]:
        with client.pipeline(transaction=False) as pipe:
            for task in tasks:
                facts = (task.id, task.token, int(self._lease * 1000), "", "[]")
                words = (KEYS["counters"].at(task.shard), f"{{{task.shard}}}", self._store.clock_offset_ms, *facts)
                pipe.execute_command("EVALSHA", script.sha, 1, *words)  # type: ignore[no-untyped-call]
            return list(pipe.execute(raise_on_error=False))


def _client(store: Store) -> "redis.Redis":
    """A connection as the store's, for a thread."""
    pool = store.redis.connection_pool
    given = {name: pool.connection_kwargs[name] for name in _CONNECTION if name in pool.connection_kwargs}
    if path := pool.connection_kwargs.get("path"):
        given["unix_socket_path"] = path
    secure = issubclass(pool.connection_class, SSLConnection)
    return redis.Redis(**given, ssl=secure, decode_responses=True, socket_timeout=_PATIENCE)
