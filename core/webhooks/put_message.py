"""Puts the message of an event that is not in the event stream, for example of a job: at least once, for each webhook
of the tenant that wants it. A webhook that is disabled, or for which too much waits, does not get it.
"""

import logging
from datetime import datetime
from hashlib import blake2b

from core.queue import Queue
from core.webhooks.event_reader import ReadingLimits, task_of
from core.webhooks.messages import WebhookMessage
from core.webhooks.registry import Webhooks
from core.webhooks.webhook import TUBE, EventType

log = logging.getLogger(__name__)


async def put_message(
    webhooks: Webhooks, queue: Queue, tenant: str, event: EventType, name: str, at: datetime, data: object
) -> None:
    """Put a message for each webhook that wants the event. `name`: of the event; a repeat with the same name has the
    same `webhook-id`. Messages of a name's first word come in order.
    """
    for webhook in await webhooks.of_tenant(tenant):
        if event not in webhook.events or webhook.disabled:
            continue
        if await webhooks.pending(webhook.id) >= ReadingLimits().pending:
            log.warning("webhook %s: too much waits for it, %s of %s is not sent", webhook.id, event, name)
            continue
        digest = blake2b(f"{webhook.id} {name}".encode(), digest_size=16).hexdigest()
        message = WebhookMessage.make(f"msg_{digest}", event, at, data, name.partition(" ")[0])
        await queue.put(TUBE, task_of(webhook, message))
