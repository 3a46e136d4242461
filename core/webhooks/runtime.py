"""The part of a process that sends webhooks: reads the events and works off the tube `webhooks`.

Any number of processes share the work. Until there is a webhook, it reads one field every few seconds and nothing else;
afterwards it sleeps until an event of a delivery wakes it.
"""

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta

from core.errors import StoreError
from core.queue import Queue, Tubes, Worker, WorkerOptions
from core.queue.executor import Executor
from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.keys import KEYS
from core.redis.store import Store
from core.redis.stream_reader import StreamReader
from core.webhooks.event_reader import EventReader, ReadingLimits
from core.webhooks.http_client import WebhookClient
from core.webhooks.registry import Webhooks
from core.webhooks.sender import RetryRules, WebhookSender
from core.webhooks.webhook import TUBE

log = logging.getLogger(__name__)

# After the death of a process the messages that it was sending wait so long.
_LEASE = timedelta(seconds=10)
_GRACE = timedelta(seconds=2)
_NO_WEBHOOKS = 3.0
# An event wakes the reader. It waits for those that follow at once, and reads now and then in case one was missed.
_GATHER = 0.05
_POLL = 2.0


@dataclass(frozen=True, slots=True)
class WebhookOptions:
    """`concurrency`: how many messages one process sends at once."""

    rules: RetryRules = field(default_factory=RetryRules)
    limits: ReadingLimits = field(default_factory=ReadingLimits)
    concurrency: int = 128


class WebhookRuntime:
    """Reads the events of all shards and sends their messages, until `stop`."""

    def __init__(
        self, store: Store, webhooks: Webhooks, client: WebhookClient, options: WebhookOptions = WebhookOptions()
    ) -> None:
        self._store = store
        self._webhooks = webhooks
        self._options = options
        self._queue = Queue(store)
        self._sender = WebhookSender(webhooks, client, options.rules)
        self._stopping = asyncio.Event()
        self._news = asyncio.Event()

    async def run(self) -> None:
        """Send until `stop`. Messages that are being sent then have two seconds; the others stay in the queue."""
        while not await self._is_needed():
            if await self._stops_within(_NO_WEBHOOKS):
                return
        worker = self._worker()
        readers = [EventReader(self._store, shard, self._queue, self._webhooks, self._options.limits)
                   for shard in range(self._store.shards)]  # fmt: skip
        working = asyncio.create_task(worker.run(), name="webhooks")
        reading = asyncio.create_task(self._read(readers), name="events for webhooks")
        stopping = asyncio.create_task(self._stopping.wait())
        listening = [asyncio.create_task(self._listener(shard).run()) for shard in range(self._store.shards)]
        try:
            done, _ = await asyncio.wait({working, reading, stopping}, return_when=asyncio.FIRST_COMPLETED)
            for ended in done:
                ended.result()  # raises its fault
            await cancel_and_wait(reading)
            worker.stop(_GRACE)
            await self._release(readers)
            await working
        finally:
            await cancel_and_wait(working, reading, stopping, *listening)

    def stop(self) -> None:
        """End `run`."""
        self._stopping.set()

    async def _stops_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            return False
        return True

    async def _is_needed(self) -> bool:
        """Return whether there ever was a webhook."""
        try:
            return await self._webhooks.version() is not None
        except StoreError:
            return False

    def _worker(self) -> Worker:
        many = self._options.concurrency
        options = WorkerOptions(lease=_LEASE, max_tasks=many, max_entries=many)
        return Executor(self._store, self._queue, Tubes(self._store), TUBE, self._sender.handle, options).worker

    def _listener(self, shard: int) -> StreamReader:
        """Wake the reader at each new event."""
        return StreamReader(self._store, KEYS["events"].at(shard), "$", lambda *_: self._news.set(), self._news.set)

    async def _read(self, readers: list[EventReader]) -> None:
        while True:
            self._news.clear()  # before the step: an event during it leads to another one
            more = [await _step(reader) for reader in readers]
            if not any(more):
                await self._wait_for_events()

    async def _wait_for_events(self) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._news.wait(), _POLL)
            await asyncio.sleep(_GATHER)

    async def _release(self, readers: list[EventReader]) -> None:
        """Let other processes read at once. If the server is down, the right to read runs out by itself."""
        try:
            async with asyncio.timeout(1):
                for reader in readers:
                    await reader.release()
        except (StoreError, TimeoutError):
            pass


async def _step(reader: EventReader) -> bool:
    """Return whether there may be more to do at once. A shard that fails holds up no other."""
    try:
        return await reader.step()
    except StoreError as fault:
        log.warning("events for webhooks not read, again in %s s: %s", _POLL, fault)
        return False
