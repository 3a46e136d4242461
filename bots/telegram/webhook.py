"""The webhook: Telegram posts updates to the HTTP API (`/v1/inbound/telegram`), which puts them into the queue."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from aiogram import Bot

from core.errors import SetupError

PATH = "/v1/inbound/telegram"
_SECRET = re.compile(r"[A-Za-z0-9_-]{1,256}")


@dataclass(frozen=True)
class Webhook:
    """`url`: the HTTP API as Telegram reaches it, without a path. `secret`: what Telegram proves itself with."""

    url: str
    secret: str = field(repr=False)

    def __post_init__(self) -> None:
        """Raises SetupError."""
        if not self.url.startswith("https://") and not self.url.startswith("http://"):
            raise SetupError("ADA_BOT_WEBHOOK_URL is not a URL: it must begin with https://")
        if not _SECRET.fullmatch(self.secret):
            raise SetupError("ADA_INBOUND_TELEGRAM_SECRET must have 1 to 256 letters, digits, _ and - for a webhook")

    async def set(self, bot: Bot, allowed: Sequence[str]) -> None:
        """Set where Telegram posts which kinds of updates. Any number of processes may do so. Raises what aiogram
        raises.
        """
        url = self.url.rstrip("/") + PATH
        await bot.set_webhook(url, secret_token=self.secret, allowed_updates=list(allowed))

    async def keep(self) -> None:
        """Nothing is left to do in this process: the HTTP API receives the updates."""
        await asyncio.Event().wait()
