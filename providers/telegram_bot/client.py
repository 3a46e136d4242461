"""The client of the Bot API, and the check of its token. Every SetupError names what to change and shows no token."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from aiogram import Bot
from aiogram.exceptions import TelegramNetworkError, TelegramNotFound, TelegramUnauthorizedError
from aiogram.utils.token import TokenValidationError
from yarl import URL

from core.errors import SetupError
from providers.telegram_bot import API_URL
from providers.telegram_bot.errors import FAILURES, TOKEN_REFUSED
from providers.telegram_bot.http_session import HttpSession


def new_client(token: str, api_url: str = "", timeout: timedelta = timedelta(seconds=15)) -> Bot:
    """Return the client, which calls nothing by itself; `bot.session.close()` closes it. It has no parse_mode, so that
    a text arrives letter for letter. Raises SetupError if the token or the URL is malformed.
    """
    if not _is_http(api_url or API_URL):
        raise SetupError("ADA_BOT_API_URL is not a URL: it must begin with http:// or https://")
    try:
        return Bot(token, session=HttpSession(api_url or API_URL, timeout))
    except TokenValidationError:
        raise SetupError("ADA_BOT_TOKEN is not a token: @BotFather shows it, for example 123456:ABC…") from None


async def check_token(bot: Bot) -> str:
    """Return the bot's id; it is the account. Raises SetupError."""
    with setup_errors():
        return str((await bot.get_me()).id)


@contextmanager
def setup_errors() -> Iterator[None]:
    """Turn what a request raises into a SetupError."""
    try:
        yield
    except (TelegramUnauthorizedError, TelegramNotFound):
        raise SetupError(TOKEN_REFUSED) from None
    except TelegramNetworkError as error:
        name = type(error.__cause__).__name__
        raise SetupError(f"the Bot API cannot be reached ({name}): check the network and ADA_BOT_API_URL") from None
    except FAILURES as error:
        name = type(error).__name__
        raise SetupError(f"the Bot API does not answer as expected ({name}): check ADA_BOT_API_URL") from None


def _is_http(text: str) -> bool:
    try:
        url = URL(text)
    except ValueError:
        return False
    return url.scheme in ("http", "https") and bool(url.host)
