"""Telegram through the Bot API with aiogram: channel `telegram-bot`.

It sends as the bot of ADA_BOT_TOKEN to people who have started that bot, and to groups that it is a member of. An
address is the id of a chat, or the @name of a public group. The table of Telegram's answers is in `outcomes.py`.
"""

from couriers.telegram_bot.settings import Settings
from couriers.telegram_bot.sign_in import open  # noqa: A004 - the interface's name

__all__ = ["Settings", "open"]
