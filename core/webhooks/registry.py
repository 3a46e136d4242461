"""The webhooks of each tenant: create, list, delete, test, attempts, replay. A webhook of another tenant looks like one
that does not exist.

Called by `delivery/api/webhooks.py`; `core.webhooks.event_reader` and `core.webhooks.runtime` read from here.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from core.errors import Conflict, Invalid, NotFound
from core.model.clock import from_ms
from core.queue import Queue, TaskFilter
from core.redis.keys import KEYS
from core.redis.store import Store
from core.webhooks import webhook as webhooks
from core.webhooks.http_client import WebhookClient, check_target
from core.webhooks.webhook import AttemptRecord, EventType, Webhook, WebhookState, test_message

MOST_WEBHOOKS = 16
"""Webhooks of one tenant."""

ATTEMPTS_KEPT = 100
_RECENT_SECONDS = 0.5
_VERSION = "version"
_KICKS = 50


async def stored_webhooks(store: Store) -> tuple[str | None, list[Webhook]]:
    """Return the version of the webhooks, and those of all tenants, the oldest first."""
    stored = await store.command("HGETALL", KEYS["webhooks"].at(0))
    found = [webhooks.read_webhook(text) for name, text in stored.items() if name != _VERSION]
    return stored.get(_VERSION), sorted(found, key=lambda one: (one.created, one.id))


class Webhooks:
    """One per process. The webhooks of all tenants are a small registry in shard 0; what is written at each attempt is
    in the shard of the tenant, for 30 days after the last one.
    """

    def __init__(self, store: Store, queue: Queue, client: WebhookClient) -> None:
        self._store = store
        self._queue = queue
        self._client = client
        self._cached: tuple[str | None, list[Webhook]] = (None, [])
        self._by_id: Mapping[str, Webhook] = {}
        self._looked = 0.0

    async def create(self, tenant: str, url: str, events: Sequence[EventType]) -> Webhook:
        """Create a webhook; it receives the events from now on. Raises Invalid WEBHOOK_URL_MALFORMED,
        WEBHOOK_HOST_UNKNOWN, WEBHOOK_TARGET_FORBIDDEN, WEBHOOK_WITHOUT_EVENTS; Conflict TOO_MANY_WEBHOOKS,
        WEBHOOK_EXISTS: the receiver would be called twice for each of these events.
        """
        if not events:
            raise Invalid("WEBHOOK_WITHOUT_EVENTS", "A webhook has at least one kind of event.", "events")
        await check_target(url, allow_private=self._client.allow_private)
        kinds = tuple(dict.fromkeys(events))
        webhook = Webhook(webhooks.new_id(), tenant, url, kinds, await self._now(), webhooks.new_secret())
        match await self._save(webhook, MOST_WEBHOOKS):
            case str(other):
                raise Conflict(
                    "WEBHOOK_EXISTS", f"The webhook {other} has this URL and event already.", "url", about=other
                )
            case 0:
                raise Conflict("TOO_MANY_WEBHOOKS", f"A tenant has at most {MOST_WEBHOOKS} webhooks.")
        return webhook

    async def _save(self, webhook: Webhook, most: int) -> int | str:
        self._looked = 0.0
        record = webhooks.encode(webhook)
        saved: int | str = await self._store.run("store_webhook", 0, webhook.tenant, webhook.id, record, most)
        return saved

    async def _now(self) -> int:
        """Return the ms of the server's clock, which also numbers the events."""
        seconds, micros = await self._store.command("TIME")
        return int(seconds) * 1000 + int(micros) // 1000

    async def of_tenant(self, tenant: str) -> list[Webhook]:
        """Return the webhooks of a tenant, the oldest first."""
        return [webhook for webhook in await self.all() if webhook.tenant == tenant]

    async def all(self) -> list[Webhook]:
        """Return the webhooks of all tenants, the oldest first. They are read again only if one has changed."""
        self._looked = time.monotonic()
        version = await self.version()
        if version != self._cached[0]:
            self._cached = await stored_webhooks(self._store)
            self._by_id = {webhook.id: webhook for webhook in self._cached[1]}
        return self._cached[1]

    async def version(self) -> str | None:
        """Return a value that changes with every change of a webhook; None if there never was one."""
        version: str | None = await self._store.command("HGET", KEYS["webhooks"].at(0), _VERSION)
        return version

    async def find(self, tenant: str, webhook_id: str) -> Webhook:
        """Return a webhook. Raises NotFound WEBHOOK_NOT_FOUND."""
        text = await self._store.command("HGET", KEYS["webhooks"].at(0), f"{tenant}/{webhook_id}")
        if text is None:
            raise NotFound("WEBHOOK_NOT_FOUND", "There is no such webhook.")
        return webhooks.read_webhook(text)

    async def find_recent(self, tenant: str, webhook_id: str) -> Webhook:
        """Return a webhook as it was at most half a second ago, without a call for each message. One that seems to be
        gone or disabled is read again, because that ends the message. Raises NotFound WEBHOOK_NOT_FOUND.
        """
        if time.monotonic() - self._looked > _RECENT_SECONDS:
            await self.all()
        webhook = self._by_id.get(webhook_id)
        if webhook is None or webhook.tenant != tenant or webhook.disabled:
            return await self.find(tenant, webhook_id)
        return webhook

    async def delete(self, tenant: str, webhook_id: str) -> int:
        """Delete a webhook and the messages that wait for it; return how many. Raises NotFound WEBHOOK_NOT_FOUND."""
        self._looked = 0.0
        if not await self._store.run("remove_webhook", 0, tenant, webhook_id):
            raise NotFound("WEBHOOK_NOT_FOUND", "There is no such webhook.")
        await self._store.command("DEL", *(self._key_of(kind, tenant, webhook_id) for kind in ("attempts", "health")))
        cancelled = await self._queue.cancel_by(TaskFilter(user=webhook_id, tube=webhooks.TUBE))
        return cancelled.cancelled + cancelled.flagged

    def _key_of(self, kind: str, tenant: str, webhook_id: str) -> str:
        return KEYS[kind].at(self._store.shard_of_tenant(tenant), webhook_id)

    async def disable(self, webhook: Webhook) -> None:
        """Send nothing more to this webhook until a replay."""
        await self._save(replace(webhook, disabled=await self._now()), 0)

    async def test(self, tenant: str, webhook_id: str) -> AttemptRecord:
        """Send a test message at once, without retries. Raises NotFound WEBHOOK_NOT_FOUND."""
        webhook = await self.find(tenant, webhook_id)
        record, _ = await self._client.call(webhook, test_message(webhook, from_ms(await self._now())), 1)
        await self.record(webhook, record)
        return record

    async def record(self, webhook: Webhook, attempt: AttemptRecord) -> tuple[int, int, int]:
        """Note an attempt. Returns the server's ms now, of the last success and of the last replay (0: none)."""
        shard = self._store.shard_of_tenant(webhook.tenant)
        arguments = webhook.id, webhooks.encode(attempt), int(attempt.succeeded), ATTEMPTS_KEPT
        now, succeeded, replayed = await self._store.run("record_attempt", shard, *arguments)
        return now, succeeded, replayed

    async def state(self, tenant: str, webhook_id: str) -> WebhookState:
        """Return what waits, and the last attempts. Raises NotFound WEBHOOK_NOT_FOUND."""
        await self.find(tenant, webhook_id)
        texts = await self._store.command("LRANGE", self._key_of("attempts", tenant, webhook_id), 0, -1)
        pending = await self.pending(webhook_id)
        dead = len(await self._dead(webhook_id))
        return WebhookState(max(0, pending - dead), dead, [webhooks.read_attempt(text) for text in texts])

    async def pending(self, webhook_id: str) -> int:
        """Return how many messages wait for a webhook, dead letters included: they stand in the shards of its lanes."""
        keys = [KEYS["by"].at(shard, "user", webhook_id) for shard in range(self._store.shards)]
        return sum([int(await self._store.command("ZCARD", key)) for key in keys])

    async def replay(self, tenant: str, webhook_id: str) -> int:
        """Send all dead letters again, each with all its attempts, and enable a webhook that was disabled. Returns how
        many. Raises NotFound WEBHOOK_NOT_FOUND.
        """
        webhook = await self.find(tenant, webhook_id)
        await self._store.run("note_replay", self._store.shard_of_tenant(tenant), webhook_id)
        if webhook.disabled:
            await self._save(replace(webhook, disabled=0), 0)
        dead = await self._dead(webhook_id)
        for start in range(0, len(dead), _KICKS):
            await asyncio.gather(*(self._kick(task_id) for task_id in dead[start : start + _KICKS]))
        return len(dead)

    async def _kick(self, task_id: str) -> None:
        with suppress(Conflict, NotFound):  # another replay was faster
            await self._queue.kick(task_id)

    async def _dead(self, webhook_id: str) -> list[str]:
        """Return the ids of the dead letters, in the order of the messages."""
        found = []
        for shard in range(self._store.shards):
            keys = KEYS["by"].at(shard, "user", webhook_id), KEYS["buried"].at(shard)
            names = await self._store.command("ZINTER", 2, *keys, "WEIGHTS", 1, 0)
            found += [f"{shard}.{name}" for name in names]
        return found

    async def drop_dead(self, webhook_id: str, kept: int) -> int:
        """Drop the oldest dead letters, so that at most `kept` stay. Returns how many were dropped."""
        dead = await self._dead(webhook_id)
        dropped = dead[: max(0, len(dead) - kept)]
        for task_id in dropped:
            with suppress(NotFound):
                await self._queue.cancel(task_id)
        return len(dropped)
