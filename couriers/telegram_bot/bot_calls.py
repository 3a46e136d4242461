"""Answers presses of buttons in Telegram, and shows that the bot is writing."""

import logging
from typing import Any

from core.updates.bot_calls import BotCall, TypingMark
from couriers.telegram_bot.client import BotClient
from couriers.telegram_bot.library import TelegramMethod, exceptions, methods

log = logging.getLogger(__name__)


class TelegramCalls:
    """Makes the calls as one bot."""

    def __init__(self, client: BotClient) -> None:
        self._client = client

    async def make(self, call: BotCall) -> bool:
        """Make a call, which ends the clock on a button, or shows for five seconds that the bot is writing. Returns
        False if Telegram was not reached; a throttle is not waited for: the clock ends by itself.
        """
        try:
            await self._client(_request(call))
        except (exceptions.TelegramBadRequest, exceptions.TelegramRetryAfter) as refusal:
            log.debug("%s: Telegram refused it: %s", call, refusal.message)
        except exceptions.TelegramForbiddenError:
            raise
        except exceptions.AiogramError as fault:  # its text can have the token
            log.debug("%s is repeated: %s", call, type(fault).__name__)
            return False
        return True


def _request(call: BotCall) -> TelegramMethod[Any]:
    if isinstance(call, TypingMark):
        return methods.SendChatAction(chat_id=call.chat_id, action="typing")
    text, alert = call.text or None, call.alert or None
    return methods.AnswerCallbackQuery(callback_query_id=call.id, text=text, show_alert=alert)
