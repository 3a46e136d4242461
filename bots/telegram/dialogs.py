"""The teachers' dialogs in Telegram."""

from bots.button_bot import button_workers
from bots.services import BotServices
from bots.telegram.mode import Mode, Work
from bots.telegram.sending import Replies
from couriers.inbound import dialogs_ingress
from couriers.telegram_bot import CHANNEL
from couriers.telegram_bot.client import BotClient


async def open_dialogs(bot: BotClient, services: BotServices) -> Work:
    """Return what a bot with dialogs runs. Raises StoreError."""
    replies = Replies(bot)
    ingress = dialogs_ingress(services.core.client, services.tenant)[CHANNEL]
    await ingress.open()
    return Work(ingress, await button_workers(services, CHANNEL, replies.send, replies.edit))


ALLOWED = ("message", "callback_query")
"""The kinds of updates that dialogs ask for."""

DIALOGS = Mode(ALLOWED, open_dialogs)
