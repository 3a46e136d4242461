"""The settings of the Bot API. The fields are ADA_BOT_TOKEN and so on."""

from dataclasses import dataclass, field
from datetime import timedelta

from couriers.telegram_bot import API_URL


@dataclass(frozen=True)
class Settings:
    """The token is a part of each URL, so no URL may be shown."""

    token: str = field(repr=False)
    api_url: str = API_URL
    timeout: timedelta = timedelta(seconds=30)  # of one request; after it the outcome is unknown
    webhook_url: str | None = field(default=None, metadata={"setting": "ADA_BOT_WEBHOOK_URL"})
    webhook_secret: str | None = field(default=None, repr=False, metadata={"setting": "ADA_INBOUND_TELEGRAM_SECRET"})
