"""The HTTP session: a limit for making a connection, apart from the one for the answer."""

from datetime import timedelta
from typing import Any, cast

from aiogram import Bot
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import TelegramAPIServer
from aiogram.methods import TelegramMethod
from aiohttp import ClientTimeout


class HttpSession(AiohttpSession):
    """Without a limit of its own, a connection that is not made in time would look like a lost answer."""

    def __init__(self, api_url: str, timeout: timedelta) -> None:
        self._seconds = timeout.total_seconds()
        super().__init__(api=TelegramAPIServer.from_base(api_url), timeout=self._seconds)

    async def make_request(self, bot: Bot, method: TelegramMethod[Any], timeout: int | None = None) -> Any:
        """Make a request. `timeout`: seconds for this request, as for a long poll."""
        limits = ClientTimeout(total=timeout or self._seconds, connect=self._seconds / 3)
        # aiogram passes the value on to aiohttp, which takes both forms.
        return await super().make_request(bot, method, timeout=cast(int, limits))
