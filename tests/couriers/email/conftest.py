"""Fixtures of the tests of mail: SMTP servers with and without TLS."""

import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trustme

from sandbox.mail import SmtpServer
from sandbox.state import SandboxState
from tests.support.serving import serving


class Certificates:
    """An authority, and a server's TLS settings with a certificate of it for 127.0.0.1."""

    def __init__(self, directory: Path) -> None:
        authority = self.authority = trustme.CA()
        self.ca = directory / "ca.pem"
        authority.cert_pem.write_to_path(str(self.ca))
        self.server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1").configure_cert(self.server)


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def state() -> SandboxState:
    return SandboxState()


@pytest.fixture
async def smtp(state: SandboxState) -> AsyncIterator[SmtpServer]:
    """A server without encryption."""
    async with serving(SmtpServer(state)) as server:
        yield server
