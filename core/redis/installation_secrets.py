"""The secrets of this installation, with which it signs and hashes; and short texts that leave it and come back, sealed
with one: encrypted with AES-SIV (RFC 5297), authenticated with 128 bits.
"""

import secrets

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

from core.redis.keys import KEYS
from core.redis.store import Store


class InstallationSecret:
    """Made by the first process that reads it, and never changed. Methods raise StoreError."""

    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        self._key = KEYS["secret"].at(0, name)
        self._read = ""

    async def hex(self) -> str:
        """Return the secret: 256 random bits in 64 digits."""
        if not self._read:
            await self._store.command("SET", self._key, secrets.token_hex(32), "NX")
            self._read = str(await self._store.command("GET", self._key))
        return self._read

    async def key(self) -> bytes:
        """Return the digits as a key of HMAC."""
        return (await self.hex()).encode()


class Sealing:
    """Uses the secret of the installation with this name. The same text is always sealed as the same bytes, 16 more
    than it has. Methods raise StoreError.
    """

    def __init__(self, store: Store, name: str) -> None:
        self._secret = InstallationSecret(store, name)
        self._cipher: AESSIV | None = None

    async def seal(self, plain: bytes) -> bytes:
        return (await self._opened()).encrypt(plain, None)

    async def open(self, sealed: bytes) -> bytes:
        """Return the text. Raises ValueError if it was not sealed here."""
        cipher = await self._opened()
        try:
            return cipher.decrypt(sealed, None)
        except InvalidTag:
            raise ValueError("not sealed here") from None

    async def _opened(self) -> AESSIV:
        if self._cipher is None:
            self._cipher = AESSIV(bytes.fromhex(await self._secret.hex()))
        return self._cipher
