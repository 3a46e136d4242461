"""Telegram through the Bot API: channel `telegram-bot`.

It sends as the bot of ADA_BOT_TOKEN to people who have started that bot, and to groups that it is a member of. An
address is the id of a chat, or the @name of a public group. The table of Telegram's answers is in `outcomes.py`.
"""

from pathlib import Path

from couriers.sending import KnownIds
from couriers.telegram_bot.client import BotClient, check_token
from couriers.telegram_bot.courier import TelegramBot
from couriers.telegram_bot.settings import Settings

__all__ = ["Settings", "open"]


async def open(settings: Settings, directory: Path) -> TelegramBot:  # noqa: A001 - the interface's name
    """Check the token and return the courier. `directory` keeps the ids of groups that became supergroups.

    Raises SetupError if the Bot API cannot be reached or refuses the token.
    """
    bot = BotClient(settings.token, settings.api_url, settings.timeout)
    try:
        account = await check_token(bot)
    except BaseException:  # whatever it is, also a cancellation: the connections are closed
        await bot.close()
        raise
    return TelegramBot(account, bot, KnownIds(directory / "migrated-groups"))
