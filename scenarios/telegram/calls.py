"""Calls of Telegram's Bot API by actions about groups: what they need, its refusals and its waits, in one place.

A short wait (429) is waited out, a longer one fails the action. No text of an error contains the token.
"""

import asyncio
from datetime import timedelta
from typing import Any

from core import errors
from core.errors import Conflict
from couriers.telegram_bot import CHANNEL, BotCallFailed, CallThrottled
from scenarios.bot.data import Data
from scenarios.context import Context, Telegram
from scenarios.words import Text, sentence

LONGEST_WAIT = 5
"""Seconds of one call in which it waits for Telegram; meanwhile the person's next events wait."""


class TelegramRefused(errors.Refused):
    """Telegram did not do it; the text is that of Telegram. `retry_after`: when it asks for a repeat."""

    def __init__(self, detail: Text, seconds: int | None = None) -> None:
        super().__init__("TELEGRAM_REFUSED", detail)
        self.retry_after = None if seconds is None else timedelta(seconds=seconds)


async def call(context: Context, method: str, **parameters: Data) -> Any:
    """Return the result of a method of the Bot API. Raises Conflict NOT_TELEGRAM, NO_BOT; TelegramRefused."""
    bot = required_bot(context)
    waited = 0
    while True:
        try:
            return await bot.call(method, **parameters)
        except CallThrottled as error:
            waited += error.retry_after
            if waited > LONGEST_WAIT:
                raise TelegramRefused(error.said, error.retry_after) from None
            await asyncio.sleep(error.retry_after)
        except BotCallFailed as error:
            raise TelegramRefused(error.said) from None


def required_bot(context: Context) -> Telegram:
    """Return the client of the Bot API. Raises Conflict NOT_TELEGRAM or NO_BOT."""
    action = context.step.action.type
    if context.channel != CHANNEL:
        raise Conflict("NOT_TELEGRAM", sentence("works_only_telegram", action=action, channel=context.channel))
    if context.services.telegram is None:
        raise Conflict("NO_BOT", sentence("needs_bot_telegram_ada_bot_token", action=action))
    return context.services.telegram


def required_group(context: Context, chat: str) -> int | str:
    """Return the group with this id or @name. Raises Conflict NOT_A_GROUP."""
    if chat.startswith("@"):
        return chat
    if not chat.removeprefix("-").isdecimal() or not chat.startswith("-"):
        raise Conflict("NOT_A_GROUP", sentence("works_only_group", action=context.step.action.type))
    return int(chat)
