"""Updates as events of scenarios: albums and joins are gathered, presses of buttons answered."""

import logging
from datetime import timedelta

from bots.send_faults import NotSent, SendLater
from bots.services import BotServices
from bots.telegram.mode import Mode, Work
from bots.telegram.sending import call
from core.updates.ingress import MAX_AGE
from core.updates.presses import Press, Presses
from providers.inbound import events_ingress, telegram_gathering
from providers.telegram_bot import CHANNEL
from providers.telegram_bot.client import Client
from providers.telegram_bot.errors import BadRequest
from providers.telegram_bot.events import ALLOWED

log = logging.getLogger(__name__)


def events_mode(max_age: timedelta = MAX_AGE) -> Mode:
    """Return how events are read; those older than `max_age` at the start of the process are ignored."""

    async def open_events(bot: Client, services: BotServices) -> Work:
        """Return what a bot with scenarios runs. Raises StoreError."""
        store, queue, tenant = services.core.store, services.core.client, services.tenant
        ingress = events_ingress(store, queue, tenant, max_age)[CHANNEL]
        await ingress.open()
        presses = Presses(queue, tenant, CHANNEL)
        await presses.open()
        acknowledging = presses.worker(Acknowledging(bot).acknowledge)
        return Work(ingress, [acknowledging], telegram_gathering(store, queue, tenant).worker)

    return Mode(ALLOWED, open_events)


class Acknowledging:
    """Acknowledges presses as one bot."""

    def __init__(self, bot: Client) -> None:
        self._bot = bot

    async def acknowledge(self, press: Press) -> bool:
        """Answer the press, which ends the clock on the button. Returns False if Telegram was not reached; SendLater is
        not waited for: the clock ends by itself.
        """
        text, alert = press.text or None, press.alert or None
        try:
            await call(self._bot.call("answerCallbackQuery", callback_query_id=press.id, text=text, show_alert=alert))
        except (BadRequest, SendLater) as refusal:
            log.debug("the press %s was not acknowledged: %s", press.id, refusal)
        except NotSent as fault:
            log.debug("the press %s is acknowledged later: %s", press.id, fault)
            return False
        return True
