"""Polls the loft for arrived pigeons."""

from typing import Any

import aiohttp

from couriers.receiving.poller import Page
from couriers.receiving.receiver import Receiver


class Loft:
    """Implements `couriers.receiving.poller.Source`."""

    faults: tuple[type[Exception], ...] = (aiohttp.ClientError, OSError)

    def __init__(self, settings: Any) -> None:
        self._settings = settings
        self._session: aiohttp.ClientSession | None = None

    async def sign_in(self) -> str:
        self._session = aiohttp.ClientSession(headers={"Authorization": self._settings.token})
        return "pigeon.loft"

    async def poll(self, position: str) -> Page:
        assert self._session
        address = f"{self._settings.url}/arrived"
        async with self._session.get(address, params={"after": position}) as response:
            found = await response.json()
        return Page(found, str(found[-1]["id"]) if found else position)

    async def close(self) -> None:
        if self._session:
            await self._session.close()


def open_receiver(settings: Any, *, polls: bool) -> Receiver:
    loft = Loft(settings)
    return Receiver(loft, PermissionError, loft.close, source=loft)
