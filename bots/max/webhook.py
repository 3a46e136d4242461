"""The webhook: MAX posts updates to the HTTP API (`/v1/updates/max`), which puts them into the queue."""

import asyncio
import logging
import re
from dataclasses import dataclass, field
from datetime import timedelta

from core.errors import SetupError
from providers.max.client import Client
from providers.max.errors import MaxRefused, MaxUnavailable
from providers.max.updates import subscribe, subscribed

log = logging.getLogger(__name__)

PATH = "/v1/updates/max"
LOOKS_EVERY = timedelta(minutes=5)
"""MAX drops a subscription after eight hours without a success."""

_SECRET = re.compile(r"[A-Za-z0-9_-]{5,256}")


@dataclass(frozen=True)
class Webhook:
    """`url`: the HTTP API as MAX reaches it, without a path. `secret`: what MAX proves itself with."""

    url: str
    secret: str = field(repr=False)

    def __post_init__(self) -> None:
        """Raises SetupError."""
        if not self.url.startswith("https://") and not self.url.startswith("http://"):
            raise SetupError("ADA_MAX_WEBHOOK_URL is not a URL: it must begin with https://")
        if not _SECRET.fullmatch(self.secret):
            raise SetupError("ADA_MAX_WEBHOOK_SECRET must have 5 to 256 letters, digits, _ and - for a webhook")

    async def keep(self, client: Client, every: timedelta = LOOKS_EVERY) -> None:
        """Subscribe, and again whenever MAX has dropped the subscription. Any number of processes may do so. Raises
        TokenRefused.
        """
        url = self.url.rstrip("/") + PATH
        is_set = False  # at first it is always made: the secret may be a new one
        while True:
            try:
                if not is_set or url not in await subscribed(client):
                    await subscribe(client, url, self.secret)
                    log.info("MAX posts updates to %s", url)
                is_set = True
            except (MaxUnavailable, MaxRefused) as fault:
                log.warning("the subscription of MAX is looked at later: %s", fault)
            await asyncio.sleep(every.total_seconds())
