"""Sends messages through the Bot API. The table of Telegram's answers is in `answers.py`."""

import re
from collections.abc import Sequence

from aiogram import Bot
from aiogram.exceptions import TelegramMigrateToChat

from core.courier import NEVER, Feature, Message, Outcome, Partly, Reason, Rejected, Sent, split_text
from couriers.telegram_bot import answers
from couriers.telegram_bot.migrations import Migrations

INVALID_ADDRESS = Rejected(Reason.RECIPIENT_UNREACHABLE, "neither the id of a chat nor the @name of a group")
_ADDRESS = re.compile(r"-?[1-9][0-9]{0,15}|@[A-Za-z][A-Za-z0-9_]{3,31}")


class TelegramBot:
    """Implements `core.courier.Courier`. Safe for concurrent attempts."""

    channel = "telegram-bot"
    batch = 1
    parcel = 100
    remembers = NEVER
    shows = frozenset[Feature]()

    def __init__(self, account: str, bot: Bot, migrations: Migrations) -> None:
        self.account = account
        self._bot = bot
        self._migrations = migrations

    async def attempt(self, messages: Sequence[Message]) -> Sequence[Outcome]:
        return [await self._attempt(message) for message in messages]

    async def _attempt(self, message: Message) -> Outcome:
        """Send the parts in order. A part that was sent is not sent again."""
        if not _ADDRESS.fullmatch(message.address):
            return INVALID_ADDRESS
        ids: list[str] = []
        for text in split_text(message.text):
            outcome = await self._send_part(message.address, text, is_first=not ids)
            if not isinstance(outcome, Sent):
                return Partly(outcome, ",".join(ids)) if ids else outcome
            ids.append(outcome.reference)
        return Sent(",".join(ids))

    async def _send_part(self, address: str, text: str, *, is_first: bool) -> Outcome:
        """Send one part; a second time if the group has become a supergroup, because then nothing was sent."""
        chat = self._migrations.current(address)
        try:
            try:
                return await self._send(chat, text)
            except TelegramMigrateToChat as moved:
                chat = str(moved.migrate_to_chat_id)
                self._migrations.store(address, chat)
                return await self._send(chat, text)
        except answers.FAILURES as error:
            return answers.outcome_of(error, chat, is_first_part=is_first)

    async def _send(self, chat: str, text: str) -> Sent:
        sent = await self._bot.send_message(chat, text)
        return Sent(str(sent.message_id))

    async def close(self) -> None:
        await self._bot.session.close()
