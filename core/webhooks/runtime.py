"""The part of a process that sends webhooks: reads the events and works off the tube `webhooks`.

Any number of processes share the work. Until there is a webhook, it reads one field every few seconds and nothing else;
afterwards it sleeps until an event of a delivery wakes it.

A message is tried again for a day. It is given up earlier if the receiver takes other messages meanwhile, so that one
message that it cannot handle does not stop the others behind it. A message that is given up is buried: a dead letter,
until it is replayed. 410 Gone disables the webhook.
"""

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta

from core.errors import NotFound, StoreError
from core.model.clock import Backoff
from core.queue import Attempt, Bury, Done, Queue, Result, Retry, Tubes, Worker, WorkerOptions
from core.queue.executor import Executor
from core.queue.task_ids import put_ms
from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.store import Store
from core.redis.stream_reader import FROM_NOW, StreamReader
from core.webhooks.event_reader import EventReader, ReadingLimits
from core.webhooks.http_client import WebhookClient
from core.webhooks.registry import Webhooks
from core.webhooks.webhook import TUBE, Webhook, WebhookMessage

log = logging.getLogger(__name__)

_GONE = 410
# After the death of a process the messages that it was sending wait so long.
_LEASE = timedelta(seconds=10)
_GRACE = timedelta(seconds=2)
_NO_WEBHOOKS = 3.0
# An event wakes the reader. It waits for those that follow at once, and reads now and then in case one was missed.
_GATHER = 0.05
_POLL = 2.0


@dataclass(frozen=True, slots=True)
class RetryRules:
    """`longest`: how long a message is tried. `attempts`: after so many it is given up if others arrived."""

    backoff: Backoff = field(default_factory=lambda: Backoff(timedelta(seconds=5), timedelta(minutes=5)))
    longest: timedelta = timedelta(days=1)
    attempts: int = 8


@dataclass(frozen=True, slots=True)
class WebhookFailure:
    """A failed attempt. Times are the server's ms. `since`: when the message was put, or replayed. `first`: its
    first failure. `succeeded`: the last success of the webhook. `wait`: seconds that the receiver asked for.
    """

    attempt: int
    now: int
    since: int
    first: int
    succeeded: int
    wait: int = 0


def decide(failure: WebhookFailure, rules: RetryRules) -> Retry | Bury:
    """Return whether a message is sent again. Pure."""
    age = timedelta(milliseconds=failure.now - failure.since)
    others_got_through = failure.succeeded > failure.first
    if age >= rules.longest or (failure.attempt >= rules.attempts and others_got_through):
        return Bury()
    pause = max(rules.backoff.pause(failure.attempt), timedelta(seconds=failure.wait))
    return Retry(pause, checkpoint=str(failure.first))


class WebhookSender:
    """The handler of the tube `webhooks`. A task's `user` is the id of the webhook, its body the message."""

    def __init__(self, webhooks: Webhooks, client: WebhookClient, rules: RetryRules) -> None:
        self._webhooks = webhooks
        self._client = client
        self._rules = rules

    async def handle(self, attempt: Attempt) -> Result:
        task = attempt.task
        try:
            webhook = await self._webhooks.find_recent(task.tenant, task.user)
        except NotFound:
            return Done("the webhook was deleted")
        if webhook.disabled:
            return Bury("the webhook is disabled")
        return await self._send(webhook, attempt)

    async def _send(self, webhook: Webhook, attempt: Attempt) -> Result:
        message = WebhookMessage.read(attempt.body)
        record, wait = await self._client.call(webhook, message, attempt.task.attempts)
        now, succeeded, replayed = await self._webhooks.record(webhook, record)
        if record.succeeded:
            return Done()
        log.debug("webhook %s: %s not sent, attempt %s: %s", webhook.id, message.id, record.attempt, record.fault)
        if record.status == _GONE:
            await self._webhooks.disable(webhook)
            log.warning("webhook %s is disabled: its receiver answered 410", webhook.id)
            return Bury("its receiver answered 410 Gone")
        first = int(attempt.checkpoint or 0)
        first = first if first > replayed else now
        since = max(int(put_ms(attempt.task.id) or 0), replayed)
        result = decide(WebhookFailure(record.attempt, now, since, first, succeeded, wait), self._rules)
        return replace(result, error=record.fault)


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
        listening = asyncio.create_task(self._listener().run(), name="new events for webhooks")
        try:
            done, _ = await asyncio.wait({working, reading, stopping}, return_when=asyncio.FIRST_COMPLETED)
            for ended in done:
                ended.result()  # raises its fault
            await cancel_and_wait(reading)
            worker.stop(_GRACE)
            await self._release(readers)
            await working
        finally:
            await cancel_and_wait(working, reading, stopping, listening)

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

    def _listener(self) -> StreamReader:
        """Wake the reader at each new event."""
        streams = dict.fromkeys(self._store.keys_of_shards("events"), FROM_NOW)
        return StreamReader(self._store, streams, lambda *_: self._news.set(), self._news.set)

    async def _read(self, readers: list[EventReader]) -> None:
        while True:
            self._news.clear()  # before the step: an event during it leads to another one
            more = await asyncio.gather(*map(_step, readers))
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
