"""Encrypts what is stored: Fernet of the library `cryptography` (AES-128-CBC with HMAC-SHA256). Pure.

The first key encrypts, all of them decrypt: a new key is put in front of the old one, and the old one is removed when
everything has been written again.
"""

from collections.abc import Sequence

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from core.errors import AdaError, SetupError


class Undecryptable(AdaError):
    """None of the keys fits: the key was lost, or belongs to another installation."""


class Vault:
    """`keys`: each 32 bytes as URL-safe base64, as `new_key` makes them. Raises SetupError for others."""

    def __init__(self, keys: Sequence[str]) -> None:
        try:
            self._fernet = MultiFernet([Fernet(key) for key in keys])
        except ValueError:
            raise SetupError("ADA_SECRET_KEY is not a key: 32 bytes as URL-safe base64, 44 characters") from None

    def encrypt(self, text: str) -> str:
        return self._fernet.encrypt(text.encode()).decode()

    def decrypt(self, stored: str) -> str:
        """Raises Undecryptable."""
        try:
            return self._fernet.decrypt(stored.encode()).decode()
        except InvalidToken:
            raise Undecryptable("what is stored was encrypted with another key") from None


def new_key() -> str:
    return Fernet.generate_key().decode()
