"""The protocol of the Telegram Bot API client that scenarios use; `cli` supplies the client."""

from typing import IO, Any, Protocol

from scenarios.bot.data import Data


class Telegram(Protocol):
    """The calls of one bot by the names of their methods. `id`: of the bot."""

    id: int

    async def call(self, name: str, /, **parameters: Data) -> Any:
        """Return the result of a method, as JSON. Raises CallFailed of `couriers.telegram_bot.errors`."""

    async def download(self, path: str, target: IO[bytes]) -> None:
        """Write the file that getFile names. Raises CallFailed, and what `target` raises."""

    async def close(self) -> None:
        """Close the connections."""
