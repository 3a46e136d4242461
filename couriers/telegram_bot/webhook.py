"""The webhook: Telegram posts updates to the HTTP API (`/v1/inbound/telegram`), which puts them into the queue."""

from couriers.receiving.webhook import WebhookReceiver
from couriers.telegram_bot.client import BotClient
from couriers.telegram_bot.events import ALLOWED
from couriers.telegram_bot.library import methods


class TelegramWebhook(WebhookReceiver):
    """The webhook of a bot. Telegram keeps it until it is set again."""

    path = "/v1/inbound/telegram"
    url_setting = "ADA_BOT_WEBHOOK_URL"
    secret_setting = "ADA_INBOUND_TELEGRAM_SECRET"

    async def set(self, client: BotClient) -> None:
        """Set where Telegram posts updates. Any number of processes may do so. Raises AiogramError."""
        await client(methods.SetWebhook(url=self.address, secret_token=self.secret, allowed_updates=list(ALLOWED)))
