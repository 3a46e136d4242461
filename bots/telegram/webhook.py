"""The webhook: Telegram posts updates to the HTTP API (`/v1/inbound/telegram`), which puts them into the queue."""

import asyncio
from collections.abc import Sequence

from couriers.receiving import webhook
from couriers.telegram_bot.client import BotClient
from couriers.telegram_bot.library import methods


class Webhook(webhook.WebhookReceiver):
    """The webhook of a bot. Telegram keeps it until it is set again."""

    path = "/v1/inbound/telegram"
    url_setting = "ADA_BOT_WEBHOOK_URL"
    secret_setting = "ADA_INBOUND_TELEGRAM_SECRET"

    async def set(self, bot: BotClient, allowed: Sequence[str]) -> None:
        """Set where Telegram posts which kinds of updates. Any number of processes may do so. Raises AiogramError."""
        await bot(methods.SetWebhook(url=self.address, secret_token=self.secret, allowed_updates=list(allowed)))

    async def keep(self) -> None:
        """Wait until cancelled: the HTTP API receives the updates."""
        await asyncio.Event().wait()
