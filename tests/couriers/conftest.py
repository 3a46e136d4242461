"""The providers that the couriers' tests send to."""

from pathlib import Path

import pytest

from sandbox.state import World
from sandbox.telegram import TelegramServer
from tests.support.kannel import kannel

__all__ = ["kannel"]


@pytest.fixture(scope="session")
def telegram_key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The played Telegram's RSA key, made once: it takes seconds."""
    directory = tmp_path_factory.mktemp("telegram")
    TelegramServer(World(), directory)
    return directory / "server-key.pem"
