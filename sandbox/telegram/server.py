"""TelegramServer: listens for clients, and simulates actions of recipients."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from telethon.crypto import rsa
from telethon.sessions.abstract import Session

from sandbox.state import SandboxState
from sandbox.telegram.connection import Connection
from sandbox.telegram.methods import media, updates
from sandbox.telegram.methods.config import DC
from sandbox.telegram.protocol.handshake import public_key_pem
from sandbox.telegram.protocol.key_store import KeyStore
from sandbox.telegram.state.accounts import Account, Accounts
from sandbox.telegram.state.dialogs import DialogMessage, StoredFile
from sandbox.telegram.state.hub import Hub


class TelegramServer:
    """Simulates Telegram's MTProto servers on one address.

    `directory` keeps the sessions, so clients stay signed in over a restart. `clock` measures flood waits, in seconds.
    """

    def __init__(
        self,
        state: SandboxState,
        directory: Path,
        host: str = "127.0.0.1",
        port: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.host, self.port = host, port
        key_store = KeyStore(directory)
        self.public_key_pem = public_key_pem()
        self._hub = Hub(state, key_store, clock, Accounts(key_store))
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Listen and set `port` to the real one. Raises OSError if the address is taken."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: Connection(self._hub), self.host, self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Stop listening and close all connections."""
        if self._server is not None:
            self._server.close()
            for client in list(self._hub.clients):
                client.abort()
            await self._server.wait_closed()
            self._server = None

    def disconnect(self) -> None:
        """Close all connections, as a network failure would; clients may reconnect at once."""
        for client in list(self._hub.clients):
            client.close()

    def messages(self, address: str) -> list[DialogMessage]:
        """Return the messages of all accounts with this address, in their current state."""
        return [message for account in self._hub.accounts.all() for message in account.dialogs.of(address)]

    def mark_read(self, address: str) -> int:
        """Simulate that a user reads all messages; return how many accounts are notified (bots never are)."""
        self._hub.state.mark_read("telegram", address)
        return updates.mark_read(self._hub, int(address))

    def write(
        self,
        address: str,
        text: str,
        account: int | None = None,
        *,
        reply_to: int = 0,
        file: StoredFile | None = None,
        **more: Any,
    ) -> list[int]:
        """Simulate that a user writes to one account, or to all accounts; return the ids of the messages. `reply_to`:
        the id of a message. `more`: further fields of the message, such as `grouped_id` of an album.
        """
        self._hub.state.write("telegram", address, text)
        ids = []
        for each in self._accounts(account):
            if file:
                more["media"] = media.media_of(each.uploads, file)
            ids.append(updates.write_message(self._hub, int(address), text, each, reply_to=reply_to, **more))
        return ids

    def edit(self, address: str, message: int, text: str, account: int | None = None) -> None:
        """Simulate that a user edits a message to one account, or to the only one. Raises LookupError."""
        for each in self._accounts(account):
            updates.edit_message(self._hub, int(address), message, text, each)

    def press(self, address: str, message: int, label: str, account: int | None = None) -> int:
        """Simulate that a user presses a button; return the id of the query. Raises LookupError."""
        return next(
            updates.press_button(self._hub, int(address), message, label, each) for each in self._accounts(account)
        )

    def press_answer(self, query: int) -> str | None:
        """Return the answer to a press; None if there is none yet."""
        found = (one.press_answers.get(query) for one in self._hub.accounts.all())
        return next((one for one in found if one is not None), None)

    def _accounts(self, account: int | None) -> list[Account]:
        return [one for one in self._hub.accounts.all() if account in (None, one.id)]


def trust_server_key(public_key_pem: str) -> None:
    """Make this process's Telethon accept the server's RSA key, beside Telegram's own. Safe to repeat."""
    rsa.add_key(public_key_pem.encode(), old=False)


def set_server(session: Session, host: str, port: int) -> None:
    """Point a session to the server. An authorization key for another server is dropped."""
    session.set_dc(DC, host, port)
