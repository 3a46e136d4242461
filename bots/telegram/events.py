"""Updates as events of scenarios: albums and joins are gathered, presses are answered, typing is shown."""

import logging
from datetime import timedelta
from typing import Any

from bots.send_faults import NotSent, SendLater
from bots.services import BotServices
from bots.telegram.mode import Mode, Work
from bots.telegram.sending import call
from core.updates.bot_calls import BotCall, BotCalls, TypingMark
from core.updates.ingress import MAX_AGE
from couriers.inbound import events_ingress, telegram_gathering
from couriers.telegram_bot import CHANNEL
from couriers.telegram_bot.client import BotClient
from couriers.telegram_bot.events import ALLOWED
from couriers.telegram_bot.library import TelegramMethod, exceptions, methods

log = logging.getLogger(__name__)


def events_mode(max_age: timedelta = MAX_AGE) -> Mode:
    """Return how events are read; those older than `max_age` at the start of the process are ignored."""

    async def open_events(bot: BotClient, services: BotServices) -> Work:
        """Return what a bot with scenarios runs. Raises StoreError."""
        store, queue, tenant = services.core.store, services.core.client, services.tenant
        ingress = events_ingress(store, queue, tenant, max_age)[CHANNEL]
        await ingress.open()
        calls = BotCalls(queue, tenant, CHANNEL)
        await calls.open()
        calling = calls.worker(TelegramCalls(bot).make)
        return Work(ingress, [calling], telegram_gathering(store, queue, tenant).worker)

    return Mode(ALLOWED, open_events)


class TelegramCalls:
    """Answers presses and shows typing as one bot."""

    def __init__(self, bot: BotClient) -> None:
        self._bot = bot

    async def make(self, made: BotCall) -> bool:
        """Make a call, which ends the clock on a button, or shows for five seconds that the bot is writing. Returns
        False if Telegram was not reached; SendLater is not waited for: the clock ends by itself.
        """
        try:
            await call(self._bot, _request(made))
        except (exceptions.TelegramBadRequest, SendLater) as refusal:
            log.debug("%s: Telegram refused it: %s", made, refusal)
        except NotSent as fault:
            log.debug("%s is repeated: %s", made, fault)
            return False
        return True


def _request(made: BotCall) -> TelegramMethod[Any]:
    if isinstance(made, TypingMark):
        return methods.SendChatAction(chat_id=made.chat_id, action="typing")
    text, alert = made.text or None, made.alert or None
    return methods.AnswerCallbackQuery(callback_query_id=made.id, text=text, show_alert=alert)
