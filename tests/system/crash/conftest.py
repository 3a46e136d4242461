"""Complete installations for the crash tests."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sandbox.sandbox import Sandbox
from tests.support.replica_set import ReplicaSet
from tests.support.servers import Server
from tests.support.serving import serving
from tests.system.crash.installation import Installation


@pytest.fixture(scope="session")
def sandbox_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One directory for all sandboxes of a worker, so that its RSA key is generated once."""
    return tmp_path_factory.mktemp("sandbox")


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """The seed of a storm: its parameter, and what `--seed` adds to it."""
    return int(request.param) + int(request.config.getoption("--seed"))


@pytest.fixture
async def sandbox(sandbox_directory: Path) -> AsyncIterator[Sandbox]:
    async with serving(Sandbox(sandbox_directory)) as sandbox:
        yield sandbox


@pytest.fixture
async def installation(server: Server, sandbox: Sandbox, tmp_path: Path) -> AsyncIterator[Installation]:
    """On the server that the tests of this worker share."""
    opened = await Installation.open(server, sandbox, tmp_path)
    yield opened
    await opened.close()


@pytest.fixture
async def own_installation(own_server: Server, sandbox: Sandbox, tmp_path: Path) -> AsyncIterator[Installation]:
    """On its own server, which a test may kill."""
    opened = await Installation.open(own_server, sandbox, tmp_path)
    yield opened
    await opened.close()


@pytest.fixture
async def available_installation(
    replica_set: ReplicaSet, sandbox: Sandbox, tmp_path: Path
) -> AsyncIterator[Installation]:
    """On a primary that may be lost: Sentinels promote one of its replicas."""
    opened = await Installation.open_behind_sentinels(replica_set, sandbox, tmp_path)
    yield opened
    await opened.close()
