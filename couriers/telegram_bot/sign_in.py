"""Opens the courier: checks the token. Every SetupError names what to change and shows no token."""

from pathlib import Path

from aiogram import Bot
from aiogram.exceptions import TelegramNetworkError, TelegramNotFound, TelegramUnauthorizedError
from aiogram.utils.token import TokenValidationError
from yarl import URL

from core.courier import SetupError
from couriers.telegram_bot import outcomes
from couriers.telegram_bot.courier import TelegramBot
from couriers.telegram_bot.migrations import Migrations
from couriers.telegram_bot.session import Session
from couriers.telegram_bot.settings import Settings


async def open(settings: Settings, directory: Path) -> TelegramBot:  # noqa: A001 - the interface's name
    """Check the token and return the courier. `directory` keeps the ids of groups that became supergroups.

    Raises SetupError if the Bot API cannot be reached or refuses the token.
    """
    bot = _bot(settings)
    try:
        account = await _sign_in(bot)
    except BaseException:
        await bot.session.close()
        raise
    return TelegramBot(account, bot, Migrations(directory / "migrated-groups"))


def _bot(settings: Settings) -> Bot:
    """Return the client. It has no parse_mode, so that a text arrives letter for letter."""
    if not _is_http(settings.api_url):
        raise SetupError("ADA_BOT_API_URL is not a URL: it must begin with http:// or https://")
    try:
        return Bot(settings.token, session=Session(settings.api_url, settings.timeout))
    except TokenValidationError:
        raise SetupError("ADA_BOT_TOKEN is not a token: @BotFather shows it, for example 123456:ABC…") from None


def _is_http(text: str) -> bool:
    try:
        url = URL(text)
    except ValueError:
        return False
    return url.scheme in ("http", "https") and bool(url.host)


async def _sign_in(bot: Bot) -> str:
    """Return the bot's id; it is the account."""
    try:
        return str((await bot.get_me()).id)
    except (TelegramUnauthorizedError, TelegramNotFound):
        raise SetupError(outcomes.TOKEN_REFUSED) from None
    except TelegramNetworkError as error:
        # The error's own text is left out: it can contain the URL and with it the token.
        name = type(error.__cause__).__name__
        raise SetupError(f"the Bot API cannot be reached ({name}): check the network and ADA_BOT_API_URL") from None
    except outcomes.FAILURES as error:
        name = type(error).__name__
        raise SetupError(f"the Bot API does not answer as expected ({name}): check ADA_BOT_API_URL") from None
