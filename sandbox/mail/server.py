"""The SMTP server on one port."""

import asyncio
import logging
import ssl
from collections.abc import Mapping, Sequence
from urllib.parse import quote
from weakref import WeakSet

from aiosmtpd.smtp import SMTP

from sandbox.mail.handler import Handler
from sandbox.state import SandboxState

USERNAME, PASSWORD, SENDER = "ada", "sandbox", "Ada <ada@sandbox.example>"


class SmtpServer:
    """Listens from `start` to `stop`. Port 0 takes a free one.

    With `tls` it offers STARTTLS, or with `is_implicit` every connection is encrypted from the first byte.
    """

    def __init__(
        self,
        state: SandboxState,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        username: str = USERNAME,
        password: str = PASSWORD,
        tls: ssl.SSLContext | None = None,
        is_implicit: bool = False,
        accepts_utf8: bool = True,
    ) -> None:
        self._state = state
        self.host = host
        self.port = port
        self._handler = Handler(state, username, password)
        self._tls, self._is_implicit, self._accepts_utf8 = tls, is_implicit, accepts_utf8
        self._server: asyncio.Server | None = None
        self._connections: WeakSet[SMTP] = WeakSet()

    async def start(self) -> None:
        """Listen. Raises OSError if the port is taken."""
        logging.getLogger("mail.log").setLevel(logging.ERROR)  # aiosmtpd logs every command
        self._server = await asyncio.get_running_loop().create_server(
            self._accept, self.host, self.port, ssl=self._tls if self._is_implicit else None
        )
        self.port = self._server.sockets[0].getsockname()[1]

    def _accept(self) -> SMTP:
        self._state.count("email", "connections")
        self._state.count("email", "encrypted", int(self._is_implicit))
        connection = SMTP(
            self._handler,
            hostname="sandbox.example",
            ident="sandbox",
            enable_SMTPUTF8=self._accepts_utf8,
            tls_context=None if self._is_implicit else self._tls,
            auth_require_tls=False,
            authenticator=self._handler.sign_in,
            loop=asyncio.get_running_loop(),
        )
        self._connections.add(connection)
        return connection

    async def stop(self) -> None:
        """Stop listening and close all connections; safe to repeat."""
        if self._server is None:
            return
        self._server.close()
        self.disconnect_all()
        await self._server.wait_closed()
        self._server = None

    def disconnect_all(self) -> None:
        """Close all connections, as a server does with those that are idle."""
        for connection in list(self._connections):
            if connection.transport is not None:
                connection.transport.close()

    @property
    def contents(self) -> Sequence[bytes]:
        """The newest mails as they were transferred, oldest first."""
        return self._handler.contents

    @property
    def received(self) -> Mapping[int, bytes]:
        """The newest mails that have arrived, by the number of their message in the inbox."""
        return self._handler.received

    @property
    def url(self) -> str:
        """ADA_SMTP_URL of a client, without encryption."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"smtp://{USERNAME}:{PASSWORD}@{host}:{self.port}?starttls=off&from={quote(SENDER)}"
