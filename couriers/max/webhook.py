"""The webhook: MAX posts updates to the HTTP API (`/v1/updates/max`), which puts them into the queue."""

import asyncio
import logging
from datetime import timedelta

from couriers.max.client import MaxClient
from couriers.max.errors import MaxRefused, MaxUnavailable
from couriers.max.updates import subscribe, subscribed
from couriers.receiving import webhook

log = logging.getLogger(__name__)

LOOKS_EVERY = timedelta(minutes=5)
"""MAX drops a subscription after eight hours without a success."""


class MaxWebhook(webhook.WebhookReceiver):
    """The subscription of a bot."""

    path = "/v1/updates/max"
    url_setting = "ADA_MAX_WEBHOOK_URL"
    secret_setting = "ADA_MAX_WEBHOOK_SECRET"
    shortest_secret = 5

    async def keep(self, client: MaxClient, every: timedelta = LOOKS_EVERY) -> None:
        """Subscribe, and again whenever MAX has dropped the subscription. Any number of processes may do so. Raises
        TokenRefused.
        """
        is_set = False  # at first it is always made: the secret may be a new one
        while True:
            try:
                if not is_set or self.address not in await subscribed(client):
                    await subscribe(client, self.address, self.secret)
                    log.info("MAX posts updates to %s", self.address)
                is_set = True
            except (MaxUnavailable, MaxRefused) as fault:
                log.warning("the subscription of MAX is looked at later: %s", fault)
            await asyncio.sleep(every.total_seconds())
