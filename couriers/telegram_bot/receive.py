"""Receives what people write to a bot in Telegram: by long poll, or by the webhook of ADA_BOT_WEBHOOK_URL."""

from functools import partial
from operator import itemgetter

from couriers.receiving.receiver import Receiver
from couriers.telegram_bot.bot_calls import TelegramCalls
from couriers.telegram_bot.client import BotClient, check_token, setup_errors
from couriers.telegram_bot.errors import BotTokenRefused
from couriers.telegram_bot.long_poll import TelegramLongPoll
from couriers.telegram_bot.settings import Settings
from couriers.telegram_bot.webhook import TelegramWebhook


def open_receiver(settings: Settings, *, polls: bool) -> Receiver:
    """Return the bot; without a webhook, or with `polls`, it is polled. Raises SetupError for a malformed token, and
    for a webhook whose URL or secret cannot be used.
    """
    url = None if polls else settings.webhook_url
    webhook = TelegramWebhook(url, settings.webhook_secret or "") if url else None
    client = BotClient(settings.token, settings.api_url)
    source = TelegramLongPoll(client)
    return Receiver(
        client,
        BotTokenRefused,
        client.close,
        source=None if webhook else source,
        make=TelegramCalls(client).make,
        begin=partial(_begin, client, webhook, source),
        keeps_position=True,
        id_of=itemgetter("update_id"),
        caught_up=None if webhook else source.caught_up,
    )


async def _begin(client: BotClient, webhook: TelegramWebhook | None, source: TelegramLongPoll) -> str:
    """Check the token; set the webhook, or end one, beside which Telegram refuses polling. Raises SetupError."""
    account = await check_token(client)
    with setup_errors():
        await (webhook.set(client) if webhook else source.end_webhook())
    return account
