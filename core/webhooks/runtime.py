"""The part of a process that sends webhooks: reads the events and works off the tube `webhooks`.

Any number of processes share the work. Until there is a webhook, it reads one field every few seconds and nothing else.
"""

import asyncio
import logging
from dataclasses import dataclass, field
from datetime import timedelta

from core.errors import StoreError
from core.queue import Queue, Tubes, Worker, WorkerOptions
from core.queue.executor import Executor
from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.store import Store
from core.webhooks.event_reader import EventReader, Limits
from core.webhooks.http_client import WebhookClient
from core.webhooks.registry import Webhooks
from core.webhooks.sender import RetryRules, Sender
from core.webhooks.webhook import TUBE

log = logging.getLogger(__name__)

# After the death of a process the messages that it was sending wait so long.
_LEASE = timedelta(seconds=10)
_GRACE = timedelta(seconds=2)
_NO_WEBHOOKS = 2.0
_POLL = 0.25
_AFTER_A_FAULT = 1.0


@dataclass(frozen=True, slots=True)
class WebhookOptions:
    """`concurrency`: how many messages one process sends at once."""

    rules: RetryRules = field(default_factory=RetryRules)
    limits: Limits = field(default_factory=Limits)
    concurrency: int = 128


class WebhookRuntime:
    """One per process."""

    def __init__(
        self, store: Store, webhooks: Webhooks, client: WebhookClient, options: WebhookOptions = WebhookOptions()
    ) -> None:
        self._store = store
        self._webhooks = webhooks
        self._options = options
        self._queue = Queue(store)
        self._sender = Sender(webhooks, client, options.rules)
        self._stopping = asyncio.Event()

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
        try:
            done, _ = await asyncio.wait({working, reading, stopping}, return_when=asyncio.FIRST_COMPLETED)
            for ended in done:
                ended.result()  # raises its fault
            await cancel_and_wait(reading)
            worker.stop(_GRACE)
            await self._release(readers)
            await working
        finally:
            await cancel_and_wait(working, reading, stopping)

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
        """Whether there ever was a webhook."""
        try:
            return await self._webhooks.version() is not None
        except StoreError:
            return False

    def _worker(self) -> Worker:
        executor = Executor(self._queue, Tubes(self._store), TUBE, self._sender.handle, _LEASE)
        many = self._options.concurrency
        options = WorkerOptions(lease=_LEASE, max_tasks=many, max_entries=many)
        worker = Worker(self._store, TUBE, executor.execute, options=options, on_extension=executor.on_extension)
        executor.is_stopping = lambda: worker.stopping
        return worker

    async def _read(self, readers: list[EventReader]) -> None:
        while True:
            try:
                more = [await reader.step() for reader in readers]
            except StoreError as fault:
                log.warning("events for webhooks not read, again in %s s: %s", _AFTER_A_FAULT, fault)
                await asyncio.sleep(_AFTER_A_FAULT)
            else:
                await asyncio.sleep(0 if any(more) else _POLL)

    async def _release(self, readers: list[EventReader]) -> None:
        """Let other processes read at once. If the server is down, the right to read runs out by itself."""
        try:
            async with asyncio.timeout(1):
                for reader in readers:
                    await reader.release()
        except (StoreError, TimeoutError):
            pass
