"""The bot of one tenant beside others in one process, with scenarios."""

import asyncio
import logging
from datetime import timedelta

from bots.telegram.events import TelegramCalls
from bots.telegram.polling import Polling
from core.services import Services
from core.updates.ingress import MAX_AGE
from couriers.inbound import events_ingress
from couriers.receiving.accounts import Account
from couriers.receiving.poller_lease import Lease
from couriers.telegram_bot import CHANNEL
from couriers.telegram_bot.client import WRONG_TOKEN, BotClient
from couriers.telegram_bot.errors import TOKEN_REFUSED, BotTokenRefused
from couriers.telegram_bot.events import ALLOWED
from couriers.telegram_bot.library import exceptions, methods

log = logging.getLogger(__name__)

_PAUSE = 5.0
"""Seconds until Telegram is asked again to end a webhook."""


def open_account(
    token: str, api_url: str, services: Services, tenant: str, lease: Lease, max_age: timedelta = MAX_AGE
) -> Account:
    """Return the account; its updates are got by polling. Raises SetupError for what is no token."""
    bot = BotClient(token, api_url)
    ingress = events_ingress(services.store, services.client, tenant, max_age)[CHANNEL]
    polling = Polling(bot, ingress, lease, ALLOWED)

    async def poll() -> None:
        await _end_webhook(bot)
        await polling.run()

    return Account(poll, BotTokenRefused, TelegramCalls(bot).make, bot.close, polling.caught_up)


async def _end_webhook(bot: BotClient) -> None:
    """End a webhook, beside which Telegram refuses polling, as soon as Telegram can be reached. Raises TokenRefused."""
    while True:
        try:
            return await bot(methods.DeleteWebhook())  # type: ignore[no-any-return]
        except WRONG_TOKEN:
            raise BotTokenRefused(TOKEN_REFUSED) from None
        except exceptions.AiogramError as fault:
            log.warning("Telegram is asked again (%s)", type(fault).__name__)
            await asyncio.sleep(_PAUSE)
