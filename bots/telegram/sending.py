"""Sends replies through the Bot API, and decides what each of its refusals means.

No error that leaves this module has the text or the cause of a library's error: they can contain the token.
"""

import asyncio
import logging
from datetime import timedelta
from typing import Any

from bots.dialog_event import DialogEvent
from bots.replies import Buttons, Reply
from core.orders.following import NotSent, SendLater, StatusTask
from couriers.telegram_bot.client import REFUSALS, BotClient
from couriers.telegram_bot.library import TelegramMethod, exceptions, methods, types

log = logging.getLogger(__name__)

_MAX_NOTICE = 200
_UNCHANGED = "message is not modified"


class Replies:
    """Sends as one bot."""

    def __init__(self, bot: BotClient) -> None:
        self._bot = bot

    async def send(self, event: DialogEvent, reply: Reply) -> None:
        """Send one reply, and answer the press of a button. Raises SendLater, NotSent: then nothing was shown, as far
        as is known.
        """
        calls = [self._show(event.address, reply)] if reply.text else []
        calls += [self._answer(event, reply)] if event.callback else []
        for result in await asyncio.gather(*calls, return_exceptions=True):
            if isinstance(result, BaseException):
                raise result

    async def edit(self, followed: StatusTask, reply: Reply) -> bool:
        """Change a message. Returns False if it cannot be changed, now and later. Raises SendLater, NotSent."""
        try:
            await call(self._bot, _edit(followed.address, followed.message, reply))
        except REFUSALS as refusal:
            return _UNCHANGED in refusal.message
        return True

    async def _answer(self, event: DialogEvent, reply: Reply) -> None:
        """Answer the press of a button, so that its clock stops. Telegram refuses it after some minutes. Raises
        SendLater, NotSent if there is nothing else to show; a message is never sent again because of the press.
        """
        notice = reply.notice[:_MAX_NOTICE] or None
        try:
            answer = methods.AnswerCallbackQuery(
                callback_query_id=event.callback, text=notice, show_alert=notice is not None
            )
            await call(self._bot, answer)
        except exceptions.TelegramBadRequest as refusal:
            log.info("event %s: the press was not answered: %s", event.id, refusal.message)
        except (SendLater, NotSent) as fault:
            if not reply.text:
                raise
            log.info("event %s: the press was not answered: %s", event.id, fault)

    async def _show(self, address: str, reply: Reply) -> None:
        """Change the message that the reply names, or send a new one if there is none or it cannot be changed."""
        try:
            if reply.edit:
                try:
                    return await call(self._bot, _edit(address, reply.edit, reply))
                except exceptions.TelegramBadRequest as refusal:
                    if _UNCHANGED in refusal.message:
                        return None
            markup = keyboard(reply.buttons)
            await call(self._bot, methods.SendMessage(chat_id=int(address), text=reply.text, reply_markup=markup))
        except REFUSALS as refusal:
            log.info("no answer to %s: %s", address, refusal.message)


def _edit(address: str, message: str, reply: Reply) -> methods.EditMessageText:
    return methods.EditMessageText(
        chat_id=int(address), message_id=int(message), text=reply.text, reply_markup=keyboard(reply.buttons)
    )


def keyboard(buttons: Buttons) -> types.InlineKeyboardMarkup | None:
    """Return the inline keyboard of a message."""
    if not buttons:
        return None
    rows = [[types.InlineKeyboardButton(text=one.label, callback_data=one.data) for one in row] for row in buttons]
    return types.InlineKeyboardMarkup(inline_keyboard=rows)


async def call(bot: BotClient, method: TelegramMethod[Any]) -> None:
    """Make a call of the Bot API. Raises SendLater, NotSent, REFUSALS."""
    try:
        await bot(method)
    except exceptions.TelegramRetryAfter as refusal:
        raise SendLater(timedelta(seconds=refusal.retry_after)) from None
    except REFUSALS:
        raise
    except exceptions.AiogramError as fault:
        raise NotSent(f"the Bot API did not take a message ({type(fault).__name__})") from None
