"""A Bot API server with an unmodified aiogram; `bot_api` is the fixture."""

from collections.abc import AsyncIterator, Awaitable
from dataclasses import dataclass

import pytest

from couriers.telegram_bot.client import NamedCalls
from sandbox.bot_api import BotApiServer
from sandbox.events import Fault, Rule
from sandbox.state import SandboxState
from tests.support.whole_aiogram import AiohttpSession, Bot, TelegramAPIServer, exceptions

__all__ = ["ANNA", "BORIS", "GROUP", "BotApi", "bot_api", "refusal", "session"]

ANNA, BORIS, GROUP = 100_001, 100_002, -1_000_000_000_123


@dataclass
class BotApi:
    """The server and a client of it."""

    state: SandboxState
    server: BotApiServer
    bot: Bot

    def client(self, token: str = "") -> Bot:
        """Return another client, as another process would have it."""
        return Bot(token or self.server.token, session=session(self.server))

    def named_calls(self, token: str = "") -> NamedCalls:
        """Return the calls of scenarios; the caller closes them."""
        return NamedCalls(token or self.server.token, self.server.url)

    def inject_fault(self, name: str, value: int | None = None, *, address: str = "*", method: str = "*") -> None:
        self.state.add_rule(Rule("telegram-bot", Fault(name, value), address, method, times=1))

    def texts(self, chat: int) -> list[str]:
        return [received.text for received in self.state.inbox("telegram-bot", str(chat))]


def session(server: BotApiServer, timeout: float = 10) -> AiohttpSession:
    return AiohttpSession(api=TelegramAPIServer.from_base(server.url), timeout=timeout)


async def refusal(call: Awaitable[object]) -> str:
    """Return the description of the error with which a call fails."""
    with pytest.raises(exceptions.TelegramAPIError) as error:
        await call
    return error.value.message


@pytest.fixture
async def bot_api() -> AsyncIterator[BotApi]:
    state = SandboxState()
    server = BotApiServer(state, webhook_pause=0.05)
    await server.start()
    opened = BotApi(state, server, Bot(server.token, session=session(server)))
    yield opened
    await opened.bot.session.close()
    await server.stop()
