"""One process of the Telegram bot: polls or stands by, and works on what it gets in one of two modes."""

import asyncio
from collections.abc import Callable
from datetime import timedelta

from bots.services import BotServices
from bots.telegram.dialogs import DIALOGS
from bots.telegram.mode import Mode
from bots.telegram.polling import Polling
from bots.telegram.webhook import Webhook
from core.redis.cancel_and_wait import cancel_and_wait
from couriers.receiving.poller_lease import PollerLease
from couriers.telegram_bot.client import BotClient, check_token, setup_errors
from couriers.telegram_bot.library import methods

_GRACE = timedelta(seconds=5)


class TelegramBot:
    """To `run()` and to `stop()`."""

    def __init__(
        self, bot: BotClient, account: str, services: BotServices, webhook: Webhook | None, mode: Mode
    ) -> None:
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
        await self._bot.close()


async def open_bot(
    token: str, api_url: str, services: BotServices, webhook: Webhook | None = None, mode: Mode = DIALOGS
) -> TelegramBot:
    """Check the token; set the `webhook`, or end one, beside which Telegram refuses polling. Raises SetupError."""
    bot = BotClient(token, api_url)
    try:
        account = await check_token(bot)
        with setup_errors():
            await (webhook.set(bot, mode.allowed) if webhook else bot(methods.DeleteWebhook()))
    except BaseException:  # whatever it is, also a cancellation: the connections are closed
        await bot.close()
        raise
    return TelegramBot(bot, account, services, webhook, mode)
