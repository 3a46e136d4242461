"""Sends the messages that wait in the tube `webhooks`, and decides what follows from a failure.

A message is tried again for a day. It is given up earlier if the receiver takes other messages meanwhile, so that one
message that it cannot handle does not stop the others behind it. A message that is given up is buried: a dead letter,
until it is replayed. 410 Gone disables the webhook.

Called by `core.webhooks.runtime` through a worker of the queue.
"""

import logging
from dataclasses import dataclass, field, replace
from datetime import timedelta

from core.errors import NotFound
from core.model.clock import Backoff
from core.queue import Attempt, Bury, Done, Result, Retry
from core.queue.task_ids import put_ms
from core.webhooks.http_client import WebhookClient
from core.webhooks.messages import WebhookMessage
from core.webhooks.registry import Webhooks
from core.webhooks.webhook import Webhook

log = logging.getLogger(__name__)

_GONE = 410


@dataclass(frozen=True, slots=True)
class RetryRules:
    """`longest`: how long a message is tried. `attempts`: after so many it is given up if others got through."""

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
        log.debug("webhook %s: %s not sent, attempt %s: %s %s", webhook.id, message.id, record.attempt, record.error,
                  record.status or "")  # fmt: skip
        if record.status == _GONE:
            await self._webhooks.disable(webhook)
            log.warning("webhook %s is disabled: its receiver answered 410", webhook.id)
            return Bury("its receiver answered 410 Gone")
        first = int(attempt.checkpoint or 0)
        first = first if first > replayed else now
        since = max(int(put_ms(attempt.task.id) or 0), replayed)
        result = decide(WebhookFailure(record.attempt, now, since, first, succeeded, wait), self._rules)
        return replace(result, error=f"{record.error} {record.status or ''}".strip())
