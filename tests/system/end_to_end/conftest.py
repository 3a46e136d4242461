"""A whole installation on its own server."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sandbox.sandbox import Sandbox
from tests.support.servers import Server
from tests.system.crash.installation import Installation
from tests.system.end_to_end.campus import Campus


@pytest.fixture
async def campus(own_server: Server, tmp_path: Path) -> AsyncIterator[Campus]:
    sandbox = Sandbox(tmp_path / "sandbox")
    await sandbox.start()
    installation = await Installation.open(own_server, sandbox, tmp_path)
    yield Campus(installation)
    await installation.close()
    await sandbox.stop()
