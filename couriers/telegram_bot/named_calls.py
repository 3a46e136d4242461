"""Calls of the Bot API by the names of its methods, for parts of Ada that do not know aiogram."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from pydantic import ValidationError

from core.sentence import sentence
from couriers.telegram_bot.client import REFUSALS, BotClient, NoAnswer
from couriers.telegram_bot.errors import BotCallFailed, BotCallRefused, CallThrottled
from couriers.telegram_bot.library import build, exceptions, methods


class NamedCalls:
    """The calls of one bot. No text of an error has the token. Raises SetupError as `BotClient` does."""

    def __init__(self, token: str, api_url: str = "") -> None:
        self._client = BotClient(token, api_url)
        self.id = self._client.id

    async def call(self, name: str, /, **parameters: Any) -> Any:
        """Return the result of a method, as JSON. Raises BotCallFailed."""
        with self._call_errors():
            method = build(getattr(methods, name[:1].upper() + name[1:]))
            return await self._client(method(**parameters))

    async def download(self, path: str, target: IO[bytes]) -> None:
        """Write the file that getFile names. Raises BotCallFailed, and what `target` raises."""
        with self._call_errors():
            await self._client.download(path, target)

    async def close(self) -> None:
        await self._client.close()

    @contextmanager
    def _call_errors(self) -> Iterator[None]:
        try:
            yield
        except exceptions.TelegramRetryAfter as error:
            text = sentence("telegram_asks_to_wait", seconds=error.retry_after)
            raise CallThrottled(text, error.retry_after) from None
        except NoAnswer as error:
            raise BotCallFailed(sentence("telegram_unreachable", why=error.message)) from None
        except REFUSALS as error:
            raise BotCallRefused(self._shown(error.message)) from None
        except exceptions.TelegramAPIError as error:
            raise BotCallFailed(self._shown(error.message)) from None
        except exceptions.AiogramError as error:
            raise BotCallFailed(sentence("telegram_unreachable", why=type(error).__name__)) from None
        except ValidationError as error:
            places = {".".join(map(str, one["loc"])) for one in error.errors()}
            raise BotCallRefused(f"the Bot API does not take this: {', '.join(sorted(places))}") from None

    def _shown(self, description: str) -> str:
        """Return the first line, which has what aiogram says of a group that has moved."""
        return description.partition("\n")[0].replace(self._client.token, "…")
