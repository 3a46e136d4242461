"""Seals short texts that leave the installation and come back: encrypted with AES-SIV (RFC 5297), authenticated with
128 bits.
"""

import secrets

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

from core.redis.keys import KEYS
from core.redis.store import Store


class Sealing:
    """Uses the secret of the installation with this name. The same text is always sealed as the same bytes, 16 more
    than it has. Methods raise StoreError.
    """

    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        self._name = name
        self._cipher: AESSIV | None = None

    async def seal(self, plain: bytes) -> bytes:
        """Return the sealed text."""
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
            name = KEYS["secret"].at(0, self._name)
            await self._store.command("SET", name, secrets.token_hex(32), "NX")
            self._cipher = AESSIV(bytes.fromhex(str(await self._store.command("GET", name))))
        return self._cipher
