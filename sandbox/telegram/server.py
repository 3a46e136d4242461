"""TelegramServer: the port that clients connect to, and the handles by which people act."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

from sandbox.state import World
from sandbox.telegram import updates as news
from sandbox.telegram.accounts import Accounts
from sandbox.telegram.connection import Connection
from sandbox.telegram.hub import Platform
from sandbox.telegram.key_store import Vault


class TelegramServer:
    """Plays Telegram's MTProto servers on one address.

    `directory` keeps the RSA key and the sessions, so a client that signed in once is signed in after a restart too.
    The first start in an empty directory makes the RSA key, which takes a second. `clock` measures flood waits.
    """

    def __init__(
        self,
        world: World,
        directory: Path,
        host: str = "127.0.0.1",
        port: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.host, self.port = host, port
        vault = Vault(directory)
        self.public_key_pem = vault.public_key_pem
        self._platform = Platform(world, vault, clock, Accounts(vault))
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Listen; afterwards `port` is the real one. Raises OSError when the address is taken."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: Connection(self._platform), self.host, self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Stop listening and close all connections."""
        if self._server is not None:
            self._server.close()
            for client in list(self._platform.clients):
                client.abort()
            await self._server.wait_closed()
            self._server = None

    def disconnect(self) -> None:
        """Cut all connections, as an outage of the network would; clients may come back at once."""
        for client in list(self._platform.clients):
            client.close()

    def mark_read(self, address: str) -> int:
        """Let a person read all that was sent to him; returns how many accounts were told (a bot never is)."""
        return news.read_by(self._platform, int(address))

    def write(self, address: str, text: str, account: int | None = None) -> None:
        """Let a person write to one account, or to every account there is."""
        for each in self._platform.accounts.all():
            if account in (None, each.id):
                news.written_by(self._platform, int(address), text, each)
