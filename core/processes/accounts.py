"""The accounts of channels that were set at the console: their settings, encrypted by the writer.

A setting of the environment, of .env or of settings.yaml is used in place of the stored one (`cli.services.accounts`).
"""

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from core.errors import Conflict
from core.redis.keys import KEYS
from core.redis.store import Store

_KEY = KEYS["accounts"].at(0)
_VERSION = ":version"


class StoredAccount(Struct, frozen=True):
    """`settings`: name → encrypted text. `by`: who stored them, `at`: when, Unix ms."""

    settings: Mapping[str, str]
    by: str
    at: int


class StoredAccounts:
    """The accounts of all channels. Methods raise StoreError."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def all(self) -> Mapping[str, StoredAccount]:
        """Return the accounts by channel."""
        stored = (await self._store.command("HGETALL", _KEY)).items()
        return {
            channel: msgspec.json.decode(text, type=StoredAccount)
            for channel, text in stored
            if not channel.endswith(_VERSION)
        }

    async def versions(self) -> Mapping[str, int]:
        """Return how often the account of each channel has changed; a channel that is missing has never had one."""
        stored = (await self._store.command("HGETALL", _KEY)).items()
        return {name.removesuffix(_VERSION): int(text) for name, text in stored if name.endswith(_VERSION)}

    async def change(self, channel: str, version: int, account: StoredAccount | None) -> int:
        """Store or remove an account; return the new version. `version`: of what the caller has read. Raises Conflict
        ACCOUNT_CHANGED if it is another one by now.
        """
        text = msgspec.json.encode(account).decode() if account else ""
        new = int(await self._store.run("change_account", 0, channel, version, text))
        if not new:
            raise Conflict("ACCOUNT_CHANGED", "Somebody else has changed this account meanwhile. Look at it again.")
        return new
