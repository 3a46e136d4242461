"""Receivers, and the sending of webhooks in the test process."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from core.model.clock import Backoff
from core.webhooks import runtime as webhook_runtime
from core.webhooks.event_reader import ReadingLimits
from core.webhooks.http_client import WebhookClient
from core.webhooks.registry import Webhooks
from core.webhooks.runtime import RetryRules, WebhookOptions, WebhookRuntime
from core.webhooks.webhook import EventType, Webhook
from tests.core.webhooks.receiver import Receiver
from tests.support.stack import TENANT, FakeCourier, Stack

QUICK = RetryRules(Backoff(timedelta(milliseconds=20), timedelta(milliseconds=100)), timedelta(seconds=30))
"""Pauses short enough for a test."""

NO_LIMITS = ReadingLimits()
BOTH = (EventType.OUTCOME, EventType.FINISHED)


@dataclass
class Installation:
    """Core with webhooks. `start` starts a process that sends them, here as a task."""

    stack: Stack
    client: WebhookClient
    webhooks: Webhooks
    running: dict[WebhookRuntime, "asyncio.Task[None]"] = field(default_factory=dict)

    def start(self, rules: RetryRules = QUICK, limits: ReadingLimits = NO_LIMITS) -> None:
        options = WebhookOptions(rules, limits)
        runtime = WebhookRuntime(self.stack.store, self.webhooks, self.client, options)
        self.running[runtime] = asyncio.create_task(runtime.run())

    async def stop(self) -> None:
        for runtime in self.running:
            runtime.stop()
        await asyncio.gather(*self.running.values())
        self.running.clear()

    async def add(
        self, receiver: Receiver, events: Sequence[EventType] = BOTH, tenant: str = TENANT, path: str = "/hook"
    ) -> Webhook:
        return await self.webhooks.create(tenant, receiver.url(path), events)

    async def courier(self) -> FakeCourier:
        courier = FakeCourier()
        await self.stack.courier(courier)
        return courier


@pytest.fixture(autouse=True)
def _no_long_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first webhook is noticed at once."""
    monkeypatch.setattr(webhook_runtime, "_NO_WEBHOOKS", 0.05)
    monkeypatch.setattr(webhook_runtime, "_POLL", 0.02)


@pytest.fixture
async def installation(stack: Stack) -> AsyncIterator[Installation]:
    async with WebhookClient(allow_private=True, time_limit=timedelta(seconds=2)) as client:
        opened = Installation(stack, client, Webhooks(stack.store, stack.queue, client))
        yield opened
        await opened.stop()


@pytest.fixture
async def new_receiver() -> AsyncIterator[Callable[[], Receiver]]:
    """`await new_receiver().start()`: each has a port of its own."""
    made: list[Receiver] = []

    def make() -> Receiver:
        made.append(Receiver())
        return made[-1]

    yield make
    for receiver in made:
        await receiver.stop()


@pytest.fixture
async def receiver(new_receiver: Callable[[], Receiver]) -> Receiver:
    made = new_receiver()
    await made.start()
    return made
