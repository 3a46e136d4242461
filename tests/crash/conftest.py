"""Whole installations for the crash tests."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sandbox.sandbox import Sandbox
from tests.crash.installation import Installation
from tests.support.servers import Server


@pytest.fixture(scope="session")
def sandbox_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One directory for all sandboxes of a worker: the RSA key in it is made once."""
    return tmp_path_factory.mktemp("sandbox")


@pytest.fixture
async def sandbox(sandbox_directory: Path) -> AsyncIterator[Sandbox]:
    played = Sandbox(sandbox_directory)
    await played.start()
    yield played
    await played.stop()


@pytest.fixture
async def installation(server: Server, sandbox: Sandbox, tmp_path: Path) -> AsyncIterator[Installation]:
    """On the worker's server."""
    opened = await Installation.open(server, sandbox, tmp_path)
    yield opened
    await opened.close()


@pytest.fixture
async def own_house(own_server: Server, sandbox: Sandbox, tmp_path: Path) -> AsyncIterator[Installation]:
    """On a server of its own, which may be killed."""
    opened = await Installation.open(own_server, sandbox, tmp_path)
    yield opened
    await opened.close()
