"""Answers presses of buttons in Telegram, shows that the bot is writing, and changes buttons."""

import logging
from typing import Any

from core.updates.bot_calls import BotCall, ButtonChange, TypingMark
from couriers.telegram_bot.client import BotClient
from couriers.telegram_bot.library import TelegramMethod, exceptions, methods
from couriers.telegram_bot.requests import inline_keyboard

log = logging.getLogger(__name__)

_LONGEST = 200
"""Characters of the answer to a press."""


class TelegramCalls:
    """Makes the calls as one bot."""

    def __init__(self, client: BotClient) -> None:
        self._client = client

    async def make(self, call: BotCall) -> bool:
        """Make a call, which ends the clock on a button, shows for five seconds that the bot is writing, or changes
        buttons. Returns False if Telegram was not reached; a throttle is waited for only to change buttons: the clock
        ends by itself.
        """
        try:
            await self._client(_request(call))
        except (exceptions.TelegramBadRequest, exceptions.TelegramRetryAfter) as refusal:
            log.debug("%s: Telegram refused it: %s", call, refusal.message)
            return not (isinstance(call, ButtonChange) and isinstance(refusal, exceptions.TelegramRetryAfter))
        except exceptions.TelegramForbiddenError:
            raise
        except exceptions.AiogramError as fault:  # its text can have the token
            log.debug("%s is repeated: %s", call, type(fault).__name__)
            return False
        return True


def _request(call: BotCall) -> TelegramMethod[Any]:
    if isinstance(call, TypingMark):
        return methods.SendChatAction(chat_id=call.chat_id, action="typing")
    if isinstance(call, ButtonChange):
        message, markup = int(call.message_id), inline_keyboard(call.rows)
        return methods.EditMessageReplyMarkup(chat_id=call.chat_id, message_id=message, reply_markup=markup)
    text, alert = call.text[:_LONGEST] or None, call.alert or None
    return methods.AnswerCallbackQuery(callback_query_id=call.id, text=text, show_alert=alert)
