"""One process of the Telegram bot: polls or stands by, and works on what it gets in one of two modes."""

import asyncio
from collections.abc import Callable
from datetime import timedelta

from aiogram import Bot
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import TelegramAPIServer
from aiogram.exceptions import TelegramNotFound, TelegramUnauthorizedError
from aiogram.utils.token import TokenValidationError

from bots.poller_lease import PollerLease
from bots.services import BotServices
from bots.telegram.dialogs import DIALOGS
from bots.telegram.mode import Mode
from bots.telegram.polling import TOKEN_REFUSED, Polling
from bots.telegram.sending import FAILURES
from bots.telegram.webhook import Webhook
from core.errors import SetupError
from core.redis.cancel_and_wait import cancel_and_wait

TELEGRAM = "https://api.telegram.org"
_TIMEOUT = 15.0
_GRACE = timedelta(seconds=5)


class TelegramBot:
    """To `run()` and to `stop()`."""

    def __init__(self, bot: Bot, account: str, services: BotServices, webhook: Webhook | None, mode: Mode) -> None:
        self._bot = bot
        self._webhook = webhook
        self._mode = mode
        self.account = account
        self._services = services
        self._stopping = asyncio.Event()

    async def run(self, on_ready: Callable[[], None]) -> None:
        """Work until `stop()`. Raises TokenRefused."""
        work = await self._mode.open(self._bot, self._services)
        lease = PollerLease(self._services.core.store, self.account)
        polling = Polling(self._bot, work.ingress, lease, self._mode.allowed, work.gatherer)
        workers = [*work.workers, *([work.gatherer()] if self._webhook and work.gatherer else [])]
        parts = [asyncio.create_task(worker.run()) for worker in workers]
        polls = asyncio.create_task(self._webhook.keep() if self._webhook else polling.run())
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            on_ready()
            done, _ = await asyncio.wait({*parts, polls, stopping}, return_when=asyncio.FIRST_COMPLETED)
            await cancel_and_wait(polls)
            await polling.release()
            for worker in workers:
                worker.stop(_GRACE)
            await asyncio.gather(*parts)
            for ended in done:
                ended.result()
        finally:
            await cancel_and_wait(polls, stopping, *parts)

    def stop(self) -> None:
        """End `run`: what is in progress is finished, what is in the queue stays there."""
        self._stopping.set()

    async def close(self) -> None:
        await self._bot.session.close()


async def open_bot(
    token: str, api_url: str, services: BotServices, webhook: Webhook | None = None, mode: Mode = DIALOGS
) -> TelegramBot:
    """Check the token; set the `webhook`, or end one, beside which Telegram refuses polling. Raises SetupError."""
    bot = _client(token, api_url)
    try:
        account = str((await bot.get_me()).id)
        await (webhook.set(bot, mode.allowed) if webhook else bot.delete_webhook())
    except (TelegramUnauthorizedError, TelegramNotFound):
        await bot.session.close()
        raise SetupError(TOKEN_REFUSED) from None
    except FAILURES as fault:
        await bot.session.close()
        name = type(fault).__name__
        raise SetupError(f"the Bot API cannot be reached ({name}): check the network and ADA_BOT_API_URL") from None
    return TelegramBot(bot, account, services, webhook, mode)


def _client(token: str, api_url: str) -> Bot:
    """The client. It has no parse_mode, so that a text is shown letter for letter."""
    if not api_url.startswith(("http://", "https://")):
        raise SetupError("ADA_BOT_API_URL is not a URL: it must begin with http:// or https://")
    try:
        session = AiohttpSession(api=TelegramAPIServer.from_base(api_url), timeout=_TIMEOUT)
        return Bot(token, session=session)
    except TokenValidationError:
        raise SetupError("ADA_BOT_TOKEN is not a token: @BotFather shows it, for example 123456:ABC…") from None
