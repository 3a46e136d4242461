"""Fixtures for all couriers' tests."""

from pathlib import Path

import pytest

from sandbox.state import SandboxState
from sandbox.telegram import TelegramServer
from tests.support.kannel import kannel

__all__ = ["kannel"]


@pytest.fixture(scope="session")
def telegram_key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Telegram sandbox's RSA key, generated once: it takes a second."""
    directory = tmp_path_factory.mktemp("telegram")
    TelegramServer(SandboxState(), directory)
    return directory / "server-key.pem"
